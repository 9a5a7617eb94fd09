"""Progress for people: a bar on a terminal, now and then a plain line in a log. Only reads events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from gramline.pipeline.events import (
    BuildFinished,
    BuildStarted,
    Event,
    JobStarted,
    Listener,
    Message,
    ProblemsSolved,
    RoundDone,
    SentenceParsed,
    TileChecked,
    TileDone,
    TileFailed,
    TilesRead,
    TrainingStarted,
    silent,
)

LINE_EVERY = 30.0  # seconds between two lines in a log


@contextmanager
def show_progress(
    wanted: bool = True, terminal: IO[str] | None = None, log: IO[str] | None = None
) -> Iterator[Listener]:
    """A listener for `progress=`: a bar if `terminal` (stderr) is one, else lines in `log` (stdout).

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
        yield LogLines(lambda line: _write(paper, line))


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


class JobPace:
    """Problems solved and the time left; the time of training decides."""

    def __init__(self, started: JobStarted, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._begin = clock()
        self.n_problems, self.n_done = started.n_problems, started.n_solved
        self._seconds, self._n_timed = 0.0, 0
        self._is_warm = False  # the first of many waits for workers to start and code to compile: no measure

    def begin(self) -> None:
        self._begin = self._clock()

    def add(self, n_problems: int) -> None:
        now = self._clock()
        if n_problems > 1 or self._is_warm:
            self._seconds += now - self._begin
            self._n_timed += n_problems
        self._is_warm, self._begin = True, now
        self.n_done += n_problems

    @property
    def seconds_left(self) -> float | None:
        """None until enough problems were solved to tell."""
        return self._seconds / self._n_timed * (self.n_problems - self.n_done) if self._n_timed else None

    def line(self) -> str:
        left = self.seconds_left
        rest = f", about {round(left):,} s left" if left else ""
        return f"{self.n_done:,} of {self.n_problems:,} problems solved{rest}"


@dataclass(frozen=True)
class Step:
    """How far the work is: a `milestone` is a line of its own, `text` changes all the time."""

    text: str = ""
    milestone: str = ""
    unit: str = "tiles"
    n_done: float = 0
    n_total: float | None = None  # None: nobody knows

    @property
    def is_last(self) -> bool:
        return self.n_total is not None and self.n_done >= self.n_total


class Narrator:
    """Turns events into steps."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._build: Pace | None = None
        self._job = JobPace(JobStarted(0, 0), clock)

    def __call__(self, event: Event) -> Step | None:
        match event:
            case BuildStarted() | TileDone() | TileFailed() | BuildFinished():
                return self._of_build(event)
            case TileChecked(n_done=n_done, n_tiles=n_tiles):
                return Step(f"{n_done:,} of {n_tiles:,} tiles checked", n_done=n_done, n_total=n_tiles)
            case SentenceParsed(n_done=n_done, n_sentences=n_sentences):
                text = f"{n_done:,} of {n_sentences:,} sentences"
                return Step(text, unit="sentences", n_done=n_done, n_total=n_sentences)
            case TilesRead(n_reads=n_reads, n_tiles=n_tiles):
                passes = f"{n_reads / n_tiles:.1f} passes over the {n_tiles:,} stored ones"
                return Step(f"{n_reads:,} tiles read, {passes}, {event.bytes_per_second / 1e9:.1f} GB/s")
            case Message(text=text):
                return Step(milestone=text)
        return self._of_job(event)

    def _of_build(self, event: BuildStarted | TileDone | TileFailed | BuildFinished) -> Step | None:
        if isinstance(event, BuildStarted):
            self._build = Pace(event, self._clock)
            if not self._build.n_todo:
                return None
            threads = f"{event.n_threads} thread{'' if event.n_threads == 1 else 's'}"
            todo = f"{self._build.n_todo:,} of {event.n_tiles:,} tiles to compute on {threads}"
            return Step(self._build.line(), f"{event.store}: {todo}", n_total=event.cells)
        if self._build is None or not self._build.n_todo:
            return None
        cells = self._build.started.cells
        if isinstance(event, BuildFinished):
            return Step(n_done=cells, n_total=cells)
        self._build.add(event)
        failure = f"tile ({event.i}, {event.j}) failed: {event.error}" if isinstance(event, TileFailed) else ""
        n_done = min(self._build.cells, cells - 0.5)  # BuildFinished ends it
        return Step(self._build.line(), failure, n_done=n_done, n_total=cells)

    def _of_job(self, event: JobStarted | TrainingStarted | RoundDone | ProblemsSolved) -> Step:
        text = milestone = ""
        if isinstance(event, JobStarted):
            self._job = JobPace(event, self._clock)
            if event.n_solved:
                milestone = f"{event.n_solved:,} of {event.n_problems:,} problems were solved before"
            return Step(milestone=milestone)
        if isinstance(event, TrainingStarted):
            self._job.begin()
            milestone = f"training {event.learner}: {event.n_problems:,} problems (settings x folds)"
        elif isinstance(event, RoundDone):
            text = f"round {event.number}: {event.mistakes:,} mistakes in all problems together"
        else:
            self._job.add(event.n_problems)
            text = self._job.line()
            if event.n_problems > 1 or self._job.n_done == self._job.n_problems:
                milestone = text
        return Step(text, milestone, "problems", self._job.n_done, self._job.n_problems)


class LogLines:
    """A plain line for every milestone, and every LINE_EVERY seconds how far it is."""

    def __init__(
        self, write: Callable[[str], None], every: float = LINE_EVERY, clock: Callable[[], float] = monotonic
    ) -> None:
        self._write, self._every, self._clock = write, every, clock
        self._narrator = Narrator(clock)
        self._written = clock()

    def __call__(self, event: Event) -> None:
        step = self._narrator(event)
        if step is None:
            return
        line = step.milestone or (step.text if self._clock() - self._written >= self._every else "")
        if line:
            self._written = self._clock()
            self._write(line)


class Bar:
    """A rich progress bar with what is being done and how far it is."""

    def __init__(self, stream: IO[str]) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[text]}"),
            console=Console(file=stream, highlight=False),
            refresh_per_second=5,
            transient=True,
        )
        self._narrator = Narrator()
        self._task: TaskID | None = None

    def __call__(self, event: Event) -> None:
        step = self._narrator(event)
        if step is None:
            return
        if step.milestone:
            self._progress.console.print(step.milestone, markup=False)
        if step.text or step.n_total is not None:
            self._update(step)

    def _update(self, step: Step) -> None:
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task(step.unit, total=step.n_total, text=step.text)
        self._progress.update(self._task, description=step.unit, completed=step.n_done)
        if step.text:
            self._progress.update(self._task, total=step.n_total, text=step.text)
        if step.is_last:
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
