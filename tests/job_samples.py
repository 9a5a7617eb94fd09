"""Jobs of tests: folds and settings, an executor that counts and stops, and a run in a folder of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.executors.base import Executor, InlineExecutor, Outcome, Result, Task
from gramline.pipeline.gram.cache import GramCache

FOLDS = FoldSpec(3, seed=5)
ROUNDS = tuple(Variant(0, "labeling-perceptron", {"rounds": n, "average": a}) for n in (1, 4) for a in (False, True))
ZSCORE = Variant(None, "zscore", {})


def data_of(found: Corpus) -> JobData:
    return JobData(found.fingerprint, found.ids, found.tokens, found.labels, "sample", found)


class Counting:
    """An executor in this process that remembers its tasks and may stop before one of them."""

    n_threads = 1

    def __init__(self, stop_before: int | None = None, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.tasks: list[Any] = []
        self._stop, self._error = stop_before, error

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Iterator[Outcome[Task, Result]]:
        yield from InlineExecutor().run(function, self._watched(tasks), retries=retries)

    def _watched(self, tasks: Iterable[Task]) -> Iterator[Task]:
        for task in tasks:
            if len(self.tasks) == self._stop:
                raise self._error
            self.tasks.append(task)
            yield task


def run(
    job: Job,
    data: JobData,
    tmp_path: Path,
    executor: Executor | None = None,
    **settings: Any,
) -> JobResult:
    def enter() -> AbstractContextManager[Executor]:
        return nullcontext(executor or InlineExecutor())

    chosen = JobSettings(**({"cache": GramCache(tmp_path / "cache"), "block_rows": 16} | settings))
    return run_job(job, data, RunFolder(tmp_path / "run"), chosen, executor=enter)
