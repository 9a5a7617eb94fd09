"""What builds, checks, trainings and jobs report to a listener: small frozen records, nothing printed.

`event` is the short name of an event in logs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class TileReport:
    """What one tile took, as its worker measured it."""

    i: int
    j: int
    read_seconds: float
    compute_seconds: float
    write_seconds: float
    written_bytes: int  # before compression
    worker: str  # host:process of the worker

    @property
    def seconds(self) -> float:
        return self.read_seconds + self.compute_seconds + self.write_seconds


@dataclass(frozen=True)
class BuildStarted:
    event: ClassVar[str] = "plan"
    store: str
    n_tiles: int  # of the whole matrix
    n_present: int  # done before; n_tiles - n_present are to do
    tile_bytes: int
    cells: int  # kernel values to compute
    n_threads: int


@dataclass(frozen=True)
class BuildPlanned:
    """How long a build will take in all, from its first tiles; not told where there are too few to know."""

    event: ClassVar[str] = "forecast"
    seconds: float


@dataclass(frozen=True)
class TileDone:
    event: ClassVar[str] = "tile"
    report: TileReport
    n_done: int  # of this build, this one included
    cells: int


@dataclass(frozen=True)
class TileFailed:
    event: ClassVar[str] = "tile failed"
    i: int
    j: int
    error: str


@dataclass(frozen=True)
class TileChecked:
    """One tile of a verification."""

    event: ClassVar[str] = "tile checked"
    i: int
    j: int
    problem: str | None  # None: it is good
    n_done: int
    n_tiles: int


@dataclass(frozen=True)
class BuildFinished:
    event: ClassVar[str] = "built"
    n_computed: int
    seconds: float
    tile_seconds: float  # summed over all tiles: reading, computing and writing


@dataclass(frozen=True)
class TilesRead:
    """How often a training has read tiles so far."""

    event: ClassVar[str] = "tiles read"
    n_reads: int
    n_tiles: int  # of the matrix
    bytes_per_second: float


@dataclass(frozen=True)
class JobStarted:
    """A job of so many problems (a setting on a fold), some of them solved before."""

    event: ClassVar[str] = "job"
    n_problems: int
    n_solved: int


@dataclass(frozen=True)
class TrainingStarted:
    event: ClassVar[str] = "training"
    learner: str
    n_problems: int


@dataclass(frozen=True)
class RoundDone:
    """One round of all problems that are trained together, or of one training."""

    event: ClassVar[str] = "round"
    number: int
    mistakes: float
    n_rounds: int | None = None  # of one training, at most
    what: str = "mistakes"  # or what else a round is measured by


@dataclass(frozen=True)
class ProblemsSolved:
    event: ClassVar[str] = "solved"
    n_problems: int  # since the last event
    title: str = ""  # of one problem: learner, setting and fold
    seconds: float | None = None  # its own, on the worker that solved it
    worker: str = ""


@dataclass(frozen=True)
class CheckpointWritten:
    """A training has kept its state, `after` so much of it."""

    event: ClassVar[str] = "checkpoint"
    path: str
    after: str


@dataclass(frozen=True)
class TaskRetried:
    """A task failed and is tried again."""

    event: ClassVar[str] = "retry"
    task: str
    error: str
    n_tries: int  # that failed so far


@dataclass(frozen=True)
class WorkerLost:
    """A worker that went without being asked to; what it was computing is computed again."""

    event: ClassVar[str] = "worker lost"
    worker: str
    reason: str
    n_workers: int  # that are left


@dataclass(frozen=True)
class SentenceParsed:
    event: ClassVar[str] = "parsed"
    n_done: int
    n_sentences: int


@dataclass(frozen=True)
class Message:
    """A line that people should see."""

    event: ClassVar[str] = "message"
    text: str


Event: TypeAlias = (
    BuildStarted
    | BuildPlanned
    | TileDone
    | TileFailed
    | TileChecked
    | BuildFinished
    | TilesRead
    | JobStarted
    | TrainingStarted
    | RoundDone
    | ProblemsSolved
    | CheckpointWritten
    | TaskRetried
    | WorkerLost
    | SentenceParsed
    | Message
)
Listener: TypeAlias = Callable[[Event], None]


def one_at_a_time(listener: Listener) -> Listener:
    """The same listener, which hears of events from many threads one after another."""
    lock = RLock()

    def tell(event: Event) -> None:
        with lock:
            listener(event)

    return tell


def silent(_event: Event) -> None:
    """Nobody listens."""
