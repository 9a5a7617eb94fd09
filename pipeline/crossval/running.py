"""What all steps of a running job share, from many threads: the job, its folder, and what has become of it so far."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event as Flag
from threading import Lock
from typing import Any

from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.job import Job, JobData, Problem
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.setting_names import setting_names
from gramline.pipeline.events import (
    CheckpointWritten,
    Event,
    JobStarted,
    Listener,
    Message,
    ProblemsSolved,
    TileDone,
)
from gramline.pipeline.executors.base import Executor, HasDashboard
from gramline.pipeline.executors.dashboard import serves_dashboard
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.keep import Keep
from gramline.pipeline.models.checkpoint import EVERY, TrainingPaused


class Abandoned(KeyboardInterrupt):
    """Raised in a step whose job was stopped or has failed elsewhere."""


@dataclass(frozen=True)
class Survival:
    """How often long trainings keep their state, and when the job ends for this time."""

    every: float = EVERY  # seconds
    stop_at: float | None = None  # seconds since the epoch
    warn: Callable[[str], None] = warnings.warn  # hears of a checkpoint that is not used

    @property
    def is_late(self) -> bool:
        return self.stop_at is not None and time.time() >= self.stop_at

    @property
    def seconds_left(self) -> float | None:
        return None if self.stop_at is None else max(0.0, self.stop_at - time.time())


@dataclass(frozen=True)
class JobSettings:
    """Where things are and how fast they come: nothing here changes a number."""

    cache: GramCache | None = None
    stores: dict[int, str] = field(default_factory=dict)  # Gram stores that are there already, by kernel number
    block_rows: int | None = None
    compression: str | None = None
    keep: Keep | None = None  # tiles of new Gram matrices to store
    limit_bytes: int | None = None  # memory of one worker thread
    files: dict[str, str] = field(default_factory=dict)  # where lists of kernels came from, see `setting_names`
    description: dict[str, Any] = field(default_factory=dict)  # what run.json says besides the job
    has_baselines: bool = False  # whether simple models are trained on the same folds, see `baselines`
    is_side_by_side: bool = False  # whether steps of the job share the workers, see `schedule`
    has_workers: bool = False  # that are there already; others are started for what is worth that


@dataclass
class Running:
    """One job; `stores` describes the Gram matrices that were used."""

    job: Job
    data: JobData
    folder: RunFolder
    settings: JobSettings
    folds: Folds  # outer folds, then inner ones
    open_executor: Callable[[], AbstractContextManager[Executor]]
    progress: Listener
    survival: Survival = field(default_factory=Survival)
    stores: list[dict[str, Any]] = field(default_factory=list)
    failed: dict[int, Exception] = field(default_factory=dict)  # why a variant came to no end, by its number
    stopped: Flag = field(default_factory=Flag)
    has_progressed: bool = False  # this session has finished something: a tile, a round, a problem
    lock: Lock = field(default_factory=Lock)
    _opening: Lock = field(default_factory=Lock)
    _entered: list[Executor] = field(default_factory=list)
    _until_the_end: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def begun(self, problems: Sequence[Problem], **about: Any) -> Iterator[list[Problem]]:
        """What is left of `problems`; the run folder belongs to this job meanwhile. `about`: more for run.json."""
        description = {**self.job.to_dict(), **about, "source": self.data.source, **self.settings.description}
        with (
            self.folder.begun(self.data, description) as dead,
            self.folder.spending(),
            self._until_the_end,
        ):
            if dead:
                self.progress(Message(f"{self.folder.path} is taken over from {dead}, which has not been heard of"))
            done = self.folder.finished()
            todo = [problem for problem in problems if problem.digest not in done]
            self.progress(JobStarted(len(problems), len(problems) - len(todo)))
            yield todo

    def executor(self) -> Executor:
        """Entered when the first task needs it, until the job ends."""
        with self._opening:
            if not self._entered:
                executor = self._until_the_end.enter_context(self.open_executor())
                self._entered.append(executor)
                if isinstance(executor, HasDashboard) and serves_dashboard(executor.dashboard_link):
                    self.progress(Message(f"Dask dashboard: {executor.dashboard_link}"))
            return self._entered[0]

    def fail(self, variant: int, error: Exception) -> None:
        """Give a variant up; the others go on."""
        with self.lock:
            is_new = variant not in self.failed
            self.failed.setdefault(variant, error)
        if is_new and len(self.job.variants) > 1:
            self.tell(Message(f"{self.names[variant]} failed; the others go on"))

    def add_store(self, described: dict[str, Any]) -> None:
        """Of every matrix once."""
        with self.lock:
            if not any(store["path"] == described["path"] for store in self.stores):
                self.stores.append(described)

    @cached_property
    def names(self) -> list[str]:
        """A short name of every setting."""
        return setting_names(self.job.settings(), self.settings.files)

    def title(self, problem: Problem) -> str:
        """Of a task: what it is to people."""
        return f"{self.names[problem.variant]}, fold {problem.fold}"

    @property
    def n_labels(self) -> int:
        return max(1, len(self.data.label_names))

    def tell(self, event: Event) -> None:
        """To whoever listens."""
        self.has_progressed |= isinstance(event, TileDone | ProblemsSolved | CheckpointWritten)
        self.progress(event)

    @property
    def is_late(self) -> bool:
        """The time of the job has come. A session that has done nothing yet has more: the next one gets as far."""
        return self.has_progressed and self.survival.is_late

    def go_on(self) -> None:
        """Called wherever a step can end: raises where the job was stopped, or its time has come."""
        if self.stopped.is_set():
            raise Abandoned
        if self.is_late:
            raise TrainingPaused("all that is finished", str(self.folder.path))
