"""Progress for people: a bar on a terminal, now and then a plain line in a log. Only reads events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import IO, TypeAlias

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from gramline.pipeline.cli.terminal.output import count, duration, folded, short_path
from gramline.pipeline.events import (
    BuildFinished,
    BuildPlanned,
    BuildStarted,
    Event,
    JobStarted,
    Listener,
    Message,
    ProblemsSolved,
    RoundDone,
    SentenceParsed,
    TaskRetried,
    TileChecked,
    TileDone,
    TileFailed,
    TilesRead,
    TrainingStarted,
    WorkerLost,
    silent,
)

LINE_EVERY = 30.0  # seconds between two lines in a log
Clock: TypeAlias = Callable[[], float]
Number: TypeAlias = DownloadColumn | TransferSpeedColumn
MEMORY = 3600.0  # seconds that the rate and the time left are estimated from: single tiles and problems may take long


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
        return
    console = Console(file=screen, highlight=False) if screen.isatty() else None
    reporter = Reporter(lambda line: print(folded(line), file=paper, flush=True), console)
    try:
        yield reporter
    finally:
        reporter.stop()  # gives the terminal back, also after an error or Ctrl-C


class Work:
    """One piece of work as a task of rich's, which measures the rate and the time left; a bar if there is a console."""

    def __init__(self, total: float | None, console: Console | None, clock: Clock, *numbers: Number) -> None:
        self._numbers, self._left = numbers, TimeRemainingColumn(compact=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=None),
            *numbers,
            self._left,
            console=console,
            get_time=clock,
            speed_estimate_period=MEMORY,
            refresh_per_second=5,
            transient=True,
            disable=console is None,
        )
        self._id = self._progress.add_task("", total=total)
        self._progress.start()

    @property
    def task(self) -> Task:
        return self._progress.tasks[0]

    def begin(self, done: float) -> None:
        """What was `done` until now has no say in the rate."""
        self._progress.reset(self._id, completed=int(done))

    def step(self, text: str, done: float | None = None) -> None:
        self._progress.update(self._id, description=text, completed=done)

    def line(self) -> str:
        """What the bar says, as text."""
        parts = [column.render(self.task).plain for column in self._numbers if self.task.speed]
        if self.task.time_remaining:
            parts.append(f"{self._left.render(self.task).plain} left")
        return ", ".join([self.task.description, *parts])

    def stop(self) -> None:
        """Give the terminal back."""
        self._progress.refresh()
        self._progress.stop()


class Reporter:
    """Turns events into lines, and into a bar on `console`; without one, its line is written now and then."""

    def __init__(self, write: Callable[[str], None], console: Console | None = None, clock: Clock = monotonic) -> None:
        self._write, self._console, self._clock = write, console, clock
        self._written = clock()
        self._work: Work | None = None
        self._build: BuildStarted | None = None  # None where no tile is to be computed
        self._n_failed = 0
        self._job = JobStarted(0, 0)

    def __call__(self, event: Event) -> None:
        match event:
            case BuildStarted():
                self._begin_build(event)
            case BuildPlanned(seconds=seconds):
                self._say(f"it will take about {duration(seconds)} in all, as the first tiles tell")
            case TileDone() if self._build is not None and self._work is not None:
                self._add_tile(event, self._build, self._work)
            case TaskRetried(task=task, error=error, n_tries=n_tries):
                self._say(f"{task} is tried again, {count(n_tries, 'failure')} so far: {error}")
            case WorkerLost(worker=worker, reason=reason, n_workers=n_left):
                self._say(f"worker {worker} was lost: {reason}; {count(n_left, 'worker')} left")
            case TileFailed(i=i, j=j, error=error):
                self._n_failed += 1
                self._say(f"tile ({i}, {j}) failed: {error}")
            case BuildFinished() if self._build is not None:
                self.stop()
            case TileChecked(n_done=n_done, n_tiles=n_tiles):
                self._count(n_done, n_tiles, "tiles checked")
            case SentenceParsed(n_done=n_done, n_sentences=n_sentences):
                self._count(n_done, n_sentences, "sentences")
            case TilesRead(n_reads=n_reads, n_tiles=n_tiles):
                passes = f"{n_reads / n_tiles:.1f} passes over the {n_tiles:,} stored ones"
                self._step(f"{n_reads:,} tiles read, {passes}, {event.bytes_per_second / 1e9:.1f} GB/s")
            case JobStarted(n_problems=n_problems, n_solved=n_solved):
                self._job = event
                if n_solved:
                    self._say(f"{n_solved:,} of {n_problems:,} problems were solved before")
            case TrainingStarted(learner=learner, n_problems=n_problems):
                self._say(f"training {learner}: {n_problems:,} problems (settings x folds)")
                self._begin(self._job.n_problems).begin(self._job.n_solved)
            case RoundDone(number=number, mistakes=value, n_rounds=int(n_rounds)):
                if self._work is None or number == 1:
                    self._begin(n_rounds)
                self._step(f"round {number} of at most {n_rounds}: {value:,.6g} {event.what}", number)
            case RoundDone(number=number, mistakes=mistakes):
                self._step(f"round {number}: {mistakes:,} {event.what} in all problems together")
            case ProblemsSolved(n_problems=n_new):
                n_problems, n_solved = self._job.n_problems, self._job.n_solved + n_new
                self._job = JobStarted(n_problems, n_solved)
                self._count(n_solved, n_problems, "problems solved", n_new > 1 or n_solved == n_problems)
            case Message(text=text):
                self._say(text)

    def _begin_build(self, event: BuildStarted) -> None:
        n_todo = event.n_tiles - event.n_present
        self._build, self._n_failed = (event if n_todo else None), 0
        if n_todo:
            threads = count(event.n_threads, "thread")
            self._say(f"{short_path(event.store)}: {n_todo:,} of {event.n_tiles:,} tiles to compute on {threads}")
            self._begin(n_todo * event.tile_bytes, DownloadColumn(), TransferSpeedColumn())

    def _add_tile(self, event: TileDone, build: BuildStarted, work: Work) -> None:
        n_todo = build.n_tiles - build.n_present
        # Tiles differ in size: their cells decide.
        done = work.task.completed + n_todo * build.tile_bytes * event.cells / max(1, build.cells)
        if event.n_done <= build.n_threads:
            work.begin(done)  # the first tile of every thread pays for starting and compiling
        failed = f", {self._n_failed} failed" if self._n_failed else ""
        self._step(f"{event.n_done:,} of {n_todo:,} tiles{failed}", done)

    def _count(self, n_done: int, n_total: int, unit: str, is_milestone: bool = False) -> None:
        if self._work is None:
            self._begin(n_total)
        self._step(f"{n_done:,} of {n_total:,} {unit}", n_done, is_milestone)
        if n_done >= n_total:
            self.stop()

    def _begin(self, total: float | None, *numbers: Number) -> Work:
        self.stop()
        self._work = Work(total, self._console, self._clock, *numbers)
        return self._work

    def _step(self, text: str, done: float | None = None, is_milestone: bool = False) -> None:
        """How far it is: in the bar, and as a line if it is a milestone or, without a bar, the last one is long ago."""
        work = self._work or self._begin(None)
        work.step(text, done)
        if is_milestone or (self._console is None and self._clock() - self._written >= LINE_EVERY):
            self._say(work.line())

    def _say(self, line: str) -> None:
        self._written = self._clock()
        if self._console is None:
            self._write(line)
        else:
            self._console.print(line, markup=False)

    def stop(self) -> None:
        """End the bar, if there is one."""
        if self._work is not None:
            self._work.stop()
            self._work = None
