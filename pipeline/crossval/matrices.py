"""The Gram matrices of a job: found or made in the cache, completed, kept in use while a step needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

from gramline.kernels.errors import KernelOverflowError
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.running import Running
from gramline.pipeline.crossval.schedule import Build, Matrix, Step
from gramline.pipeline.crossval.training import hide
from gramline.pipeline.errors import RunError
from gramline.pipeline.events import BuildStarted, Event, Message, TileDone, TileReport
from gramline.pipeline.gram.build import StoreChoices, remove_on_overflow
from gramline.pipeline.gram.cache import builders, building
from gramline.pipeline.gram.learned_prior import with_learned_prior
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.spec import counts_labels, has_learned_prior
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.strays import sweep_partial

IN_FLIGHT = 4  # tiles per thread that are with the workers: the last ones of a build need no more from here


@dataclass
class _InUse:
    """A matrix that is open, and the locks that come with it."""

    gram: StoredGram
    locks: ExitStack
    is_lent: bool = False


@dataclass
class Matrices:
    """Those that are open now; `steps` say until when."""

    running: Running
    steps: Sequence[Step]
    overflowed: dict[int, KernelOverflowError] = field(default_factory=dict)  # by kernel
    _open: dict[Matrix, _InUse] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self._wanted = Counter(step.matrix for step in self.steps if not isinstance(step, Build))

    def build(self, matrix: Matrix, pass_on: Callable[[], None]) -> None:
        """Open it and compute what it lacks. `pass_on` is called when its last tiles are with the workers."""
        if matrix.kernel in self.overflowed:
            return  # no tile is computed again to find out
        with ExitStack() as locks:
            gram, lock = self._enter(matrix, locks)
            _complete(self.running, gram, lock, pass_on)
            with self._lock:
                self._open[matrix] = _InUse(gram, locks.pop_all())

    def gram(self, matrix: Matrix) -> StoredGram | None:
        """A complete matrix, an operator of its own for every caller; None where its kernel overflowed."""
        with self._lock:
            if (used := self._open.get(matrix)) is None:
                return None
            if not used.is_lent:
                used.is_lent = True
                return used.gram
        return stored(used.gram.path, len(self.running.data.labels))

    def done(self, matrix: Matrix) -> None:
        """A step no longer needs it; after the last one others may delete it."""
        with self._lock:
            self._wanted[matrix] -= 1
            used = None if self._wanted[matrix] else self._open.pop(matrix, None)
        if used is not None:
            used.locks.close()

    def close(self) -> None:
        with self._lock:
            left, self._open = list(self._open.values()), {}
        for used in left:
            used.locks.close()

    def _enter(self, matrix: Matrix, locks: ExitStack) -> tuple[StoredGram, Path | None]:
        """The matrix with whatever tiles it has, and the folder of its lock if it is in the cache."""
        job, data, settings = self.running.job, self.running.data, self.running.settings
        if matrix.kernel in settings.stores:
            return stored(settings.stores[matrix.kernel], len(data.labels)), None
        if data.corpus is None or settings.cache is None:
            raise RunError("this job has neither a stored Gram matrix nor a corpus and a cache to build one")
        kernel, corpus = job.kernels[matrix.kernel], data.corpus
        if counts_labels(kernel) and matrix.fold is not None:  # never those that its fold hides
            corpus = corpus.with_labels(hide(data.labels, self.running.folds.hidden(matrix.fold)))
            if has_learned_prior(kernel):
                self.running.tell(Message(f"training the prior of fold {matrix.fold}"))
            corpus, _ = with_learned_prior(kernel, corpus)
        choices = StoreChoices(job.dtype, settings.block_rows, settings.compression, settings.keep)
        using = settings.cache.using(kernel, corpus.packed(), choices, made_from=data.source)
        gram = locks.enter_context(using)
        return gram, Path(gram.path).parent


def _complete(running: Running, gram: StoredGram, lock: Path | None, pass_on: Callable[[], None]) -> None:
    """Compute the tiles that are missing; one job at a time."""
    before = gram.status()
    reports: list[TileReport] = []
    n_left = n_last = 0

    def heard(event: Event) -> None:
        nonlocal n_left, n_last
        if isinstance(event, BuildStarted):
            n_left, n_last = event.n_tiles - event.n_present, IN_FLIGHT * event.n_threads
        if isinstance(event, TileDone):
            reports.append(event.report)
            n_left -= 1
        running.tell(event)
        if n_left <= n_last:
            pass_on()
        if isinstance(event, TileDone):
            running.go_on()

    sweep_partial(gram.path)
    if not before.is_complete:
        with ExitStack() as stack:
            if lock is not None and not stack.enter_context(building(lock, wait=False)):
                who = builders(lock)
                running.tell(Message(f"{gram.path} is being built by {who or 'another job'}; waiting for it"))
                stack.enter_context(building(lock))
            if lock is not None and not before.n_present:
                stack.enter_context(remove_on_overflow(gram.path))
            plan = plan_store(gram.store)  # the other job may have finished it
            if plan.tasks:
                try:
                    limit = running.settings.limit_bytes
                    compute_missing(gram.store, running.executor(), plan=plan, limit_bytes=limit, progress=heard)
                finally:
                    running.folder.write_tiles(gram.path, reports)
    status = gram.status()
    running.add_store(
        {
            "path": gram.path,
            "kernel": status.kernel,
            "shape": list(status.shape),
            "tiles": status.n_tiles,
            "computed": len(reports),
            "stored_bytes": status.stored_bytes,
            "block_rows": status.block_rows,
        }
    )
