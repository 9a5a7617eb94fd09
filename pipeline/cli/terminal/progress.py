"""Progress of a build for people: a bar on a terminal, now and then a plain line in a log. Only reads events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import IO, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gramline.pipeline.events import (
    BuildFinished,
    BuildStarted,
    Event,
    Listener,
    TileChecked,
    TileDone,
    TileFailed,
    silent,
)

LINE_EVERY = 30.0  # seconds between two lines in a log


@contextmanager
def shown(wanted: bool = True, terminal: IO[str] | None = None, log: IO[str] | None = None) -> Iterator[Listener]:
    """A listener for `build_gram(progress=...)`: a bar if `terminal` (stderr) is one, else lines in `log` (stdout).

    Nothing at all when not `wanted`.
    """
    screen, paper = terminal or sys.stderr, log or sys.stdout
    if not wanted:
        yield silent
    elif screen.isatty():
        bar = Bar(screen)
        try:
            yield bar
        finally:
            bar.stop()
    else:
        yield Lines(lambda line: _write(paper, line))


def _write(stream: IO[str], line: str) -> None:
    stream.write(line + "\n")
    stream.flush()


class Pace:
    """Tiles, bytes, rate and time left, from the events so far; cells decide, because tiles differ in size."""

    def __init__(self, started: BuildStarted, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self.started = started
        self.n_todo = started.n_tiles - started.n_present
        self.n_done = 0
        self.n_failed = 0
        self.cells = 0
        self._warm: tuple[float, int] | None = None  # when the first tiles were done, and their cells

    def add(self, event: TileDone | TileFailed) -> None:
        if isinstance(event, TileDone):
            self.n_done += 1
            self.cells += event.cells
            if self.n_done <= self.started.n_threads:
                self._warm = self._clock(), self.cells
        else:
            self.n_failed += 1

    @property
    def seconds(self) -> float:
        return self._clock() - self._begin

    @property
    def bytes_done(self) -> int:
        return self.n_done * self.started.tile_bytes

    @property
    def bytes_per_second(self) -> float:
        return self.bytes_done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None until something is known."""
        if self._warm is None:
            return None
        # The first tile of every thread pays for starting and compiling; it says nothing about the others.
        seconds, cells = self._clock() - self._warm[0], self.cells - self._warm[1]
        return max(0, self.started.cells - self.cells) * seconds / cells if cells else None

    def line(self) -> str:
        left = self.seconds_left
        text = (
            f"{self.n_done:,} of {self.n_todo:,} tiles, {self.bytes_done / 1e6:,.0f} MB, "
            f"{self.bytes_per_second / 1e6:,.0f} MB/s"
        )
        text += f", {self.n_failed} failed" if self.n_failed else ""
        return text if left is None else f"{text}, {_clock_time(left)} left"


class Lines:
    """A plain line when it starts and every LINE_EVERY seconds; nothing when there is nothing to do."""

    def __init__(
        self, write: Callable[[str], None], every: float = LINE_EVERY, clock: Callable[[], float] = monotonic
    ) -> None:
        self._write, self._every, self._clock = write, every, clock
        self._pace: Pace | None = None
        self._said = clock()

    def __call__(self, event: Event) -> None:
        if isinstance(event, BuildStarted):
            self._pace, self._said = Pace(event, self._clock), self._clock()
            if self._pace.n_todo:
                self._write(
                    f"{event.store}: {event.n_tiles - event.n_present:,} of {event.n_tiles:,} tiles to compute on "
                    f"{event.n_threads} thread{'' if event.n_threads == 1 else 's'}"
                )
        elif isinstance(event, TileDone | TileFailed) and self._pace is not None:
            self._pace.add(event)
            if isinstance(event, TileFailed):
                self._write(f"tile ({event.i}, {event.j}) failed: {event.error}")
            elif self._clock() - self._said >= self._every:
                self._said = self._clock()
                self._write(self._pace.line())
        elif isinstance(event, TileChecked) and self._clock() - self._said >= self._every:
            self._said = self._clock()
            self._write(f"{event.n_done:,} of {event.n_tiles:,} tiles checked")


class Bar:
    """A rich progress bar: tiles, bytes, rate, time left."""

    def __init__(self, stream: IO[str]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[text]}"),
            console=Console(file=stream, highlight=False),
            refresh_per_second=5,
            transient=True,
        )
        self._pace: Pace | None = None
        self._task: Any = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, BuildStarted):
            self._pace = Pace(event)
            if self._pace.n_todo:
                self._progress.start()
                self._task = self._progress.add_task("tiles", total=event.cells, text=self._pace.line())
        elif isinstance(event, TileDone | TileFailed) and self._pace is not None:
            self._pace.add(event)
            if self._task is not None:
                self._progress.update(self._task, completed=self._pace.cells, text=self._pace.line())
            if isinstance(event, TileFailed):
                self._progress.console.print(f"tile ({event.i}, {event.j}) failed: {event.error}", markup=False)
        elif isinstance(event, TileChecked):
            if self._task is None:
                self._progress.start()
                self._task = self._progress.add_task("tiles", total=event.n_tiles, text="")
            text = f"{event.n_done:,} of {event.n_tiles:,} checked"
            self._progress.update(self._task, completed=event.n_done, text=text)
            if event.n_done == event.n_tiles:
                self._close()
        elif isinstance(event, BuildFinished):
            self._close()

    def _close(self) -> None:
        if self._task is not None:
            self._progress.refresh()
            self._progress.remove_task(self._task)
            self._task = None
        self.stop()

    def stop(self) -> None:
        """Give the terminal back, also after an error or Ctrl-C."""
        self._progress.stop()


def _clock_time(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
