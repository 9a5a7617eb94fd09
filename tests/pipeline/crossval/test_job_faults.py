"""Workers killed in the middle of a job: the same results, and no finished fold solved again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path

from gram_samples import KERNEL, corpus

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.executors.base import Executor, InlineExecutor, Outcome, Result, Task
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram.cache import GramCache

JOB = Job(
    (KERNEL,),
    (
        Variant(0, "labeling-perceptron", {"rounds": 2}),
        *(Variant(None, "zscore", {"ridge": ridge}) for ridge in (0.1, 0.5)),
    ),
    FoldSpec(3, seed=5),
)


class Deadly:
    """An executor that kills a worker after the first outcome of every run."""

    def __init__(self, inner: DaskExecutor) -> None:
        self._inner = inner
        self.n_killed = 0
        self.outcomes: list[object] = []

    @property
    def n_threads(self) -> int:
        return self._inner.n_threads

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Iterator[Outcome[Task, Result]]:
        for number, outcome in enumerate(self._inner.run(function, tasks, retries=retries)):
            if number == 0:
                os.kill(min(self._inner.client.run(os.getpid).values()), signal.SIGKILL)
                self.n_killed += 1
            self.outcomes.append(outcome.task)
            yield outcome


def run(found: Corpus, folder: Path, executor: Executor) -> JobResult:
    data = JobData(found.fingerprint, found.ids, found.tokens, found.labels, "sample", found)
    settings = JobSettings(cache=GramCache(folder / "cache"), block_rows=16)
    return run_job(JOB, data, RunFolder(folder / "run"), settings, executor=lambda: nullcontext(executor))


def test_a_job_survives_killed_workers(tmp_path: Path) -> None:
    found = corpus(14)
    calm = run(found, tmp_path / "calm", InlineExecutor())
    with connect(workers=2) as client:
        deadly = Deadly(DaskExecutor(client))
        result = run(found, tmp_path / "fire", deadly)
    assert deadly.n_killed == 2  # once among the tiles, once among the folds of the Z-score
    assert result.result.predictions == calm.result.predictions
    n_tiles = calm.summary["stores"][0]["tiles"]
    assert len(deadly.outcomes) == n_tiles + 6  # every tile and every fold came back once
    kept = [unit["problems"] for unit in RunFolder(tmp_path / "fire" / "run").unit_details()]
    assert sorted(kept) == [1] * 6 + [3]
