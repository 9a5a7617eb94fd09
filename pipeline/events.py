"""What builds, checks, trainings and jobs report to a listener: small frozen records, nothing printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


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
    store: str
    n_tiles: int  # of the whole matrix
    n_present: int  # done before; n_tiles - n_present are to do
    tile_bytes: int
    cells: int  # kernel values to compute
    n_threads: int


@dataclass(frozen=True)
class BuildPlanned:
    """How long a build will take in all, from its first tiles; not told where there are too few to know."""

    seconds: float


@dataclass(frozen=True)
class TileDone:
    report: TileReport
    n_done: int  # of this build, this one included
    cells: int


@dataclass(frozen=True)
class TileFailed:
    i: int
    j: int
    error: str


@dataclass(frozen=True)
class TileChecked:
    """One tile of a verification."""

    i: int
    j: int
    problem: str | None  # None: it is good
    n_done: int
    n_tiles: int


@dataclass(frozen=True)
class BuildFinished:
    n_computed: int
    seconds: float
    tile_seconds: float  # summed over all tiles: reading, computing and writing


@dataclass(frozen=True)
class TilesRead:
    """How often a training has read tiles so far."""

    n_reads: int
    n_tiles: int  # of the matrix
    bytes_per_second: float


@dataclass(frozen=True)
class JobStarted:
    """A job of so many problems (a setting on a fold), some of them solved before."""

    n_problems: int
    n_solved: int


@dataclass(frozen=True)
class TrainingStarted:
    learner: str
    n_problems: int


@dataclass(frozen=True)
class RoundDone:
    """One round of all problems that are trained together, or of one training."""

    number: int
    mistakes: float
    n_rounds: int | None = None  # of one training, at most
    what: str = "mistakes"  # or what else a round is measured by


@dataclass(frozen=True)
class ProblemsSolved:
    n_problems: int  # since the last event


@dataclass(frozen=True)
class SentenceParsed:
    n_done: int
    n_sentences: int


@dataclass(frozen=True)
class Message:
    """A line that people should see."""

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
    | SentenceParsed
    | Message
)
Listener: TypeAlias = Callable[[Event], None]


def silent(_event: Event) -> None:
    """Nobody listens."""
