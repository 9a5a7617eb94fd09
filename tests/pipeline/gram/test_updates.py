"""Training whose updates other processes compute: the same weights as here, whatever was ordered and when."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.kernels import Identity, Polynomial, PositionKernel, SequenceLabeling
from gramline.learners import LabelingSVM, StructuredSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.errors import RunError
from gramline.pipeline.executors.base import InlineExecutor, Outcome, Result, Task
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import stored, updates
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram

CORPUS = generate_saleslog(14, seed=5)
BLOCK_ROWS = 64
KERNELS: dict[str, Any] = {
    "sequences": SequenceLabeling(reach=0.5, observation=Polynomial(2, normalized=True)),
    "equal observations": PositionKernel(Identity()),
}
POLICIES: dict[str, Any] = {"all": "all", "none": "none", "part": 5 * 8 * BLOCK_ROWS**2}
LEARNERS: list[Any] = [
    LabelingPerceptron(rounds=4),
    LabelingPerceptron(rounds=9, average=False),
    HiddenMarkovPerceptron(rounds=4, dual=True),
]
MARGINS: list[Any] = [LabelingSVM(passes=4), StructuredSVM(passes=4)]


class LateExecutor(InlineExecutor):
    """Runs what was started when it is asked for, as late as any cluster could."""

    def __init__(self) -> None:
        super().__init__()
        self.n_tasks = self.n_urgent = self.n_squares = 0

    def start(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2, is_urgent: bool = False
    ) -> Generator[Outcome[Task, Result], None, None]:
        every = list(tasks)
        self.n_urgent += is_urgent
        self.n_squares += sum(getattr(task, "with_square", False) for task in every)
        self.n_tasks += len(every)
        return self.run(function, every, retries=retries)


def spread_gram(path: Path, kernel: Any, keep: Any, executor: Any, monkeypatch: pytest.MonkeyPatch) -> StoredGram:
    monkeypatch.setattr(stored, "SPREAD_ROWS", 0)
    monkeypatch.setattr(updates, "PART_VALUES", 1000)
    gram = build_gram(kernel, described(kernel), path, block_rows=BLOCK_ROWS, keep=keep)
    gram.executor = executor
    return gram


def described(kernel: Any) -> Corpus:
    return CORPUS if isinstance(kernel, PositionKernel) else CORPUS.with_features("spelling")


def weights(learner: Any) -> list[np.ndarray]:
    return [np.asarray(getattr(learner, name)) for name in learner.row_arrays]


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@pytest.mark.parametrize("keep", POLICIES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_weights_are_those_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kernel: str, keep: str, learner: Any
) -> None:
    alone = learner.fresh().fit(DenseGram.of(KERNELS[kernel], described(KERNELS[kernel])), CORPUS.labels)
    executor = LateExecutor()
    gram = spread_gram(tmp_path / "g.zarr", KERNELS[kernel], POLICIES[keep], executor, monkeypatch)
    spread = learner.fresh().fit(gram, CORPUS.labels)
    assert executor.n_tasks > 2 * gram.layout.rows.n_blocks
    assert 0 < executor.n_urgent < executor.n_tasks
    assert (executor.n_squares > 0) == (keep == "none")
    assert all(map(np.array_equal, weights(spread), weights(alone)))
    assert spread.mistakes_ == alone.mistakes_
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("learner", MARGINS, ids=repr)
def test_margins_are_those_of_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, learner: Any) -> None:
    """Sums are added up in another order: the same weights up to rounding."""
    kernel = KERNELS["sequences"]
    alone = learner.fresh().fit(DenseGram.of(kernel, described(kernel)), CORPUS.labels)
    executor = LateExecutor()
    spread = learner.fresh().fit(spread_gram(tmp_path / "g.zarr", kernel, "none", executor, monkeypatch), CORPUS.labels)
    assert executor.n_tasks > 0
    for one, other in zip(weights(spread), weights(alone), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8 * np.abs(other).max())
    assert spread.gap_trace_ == pytest.approx(alone.gap_trace_, rel=1e-6)


def test_many_problems_share_what_they_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = KERNELS["sequences"]
    sets = [[row if k % 3 != fold else [None] * len(row) for k, row in enumerate(CORPUS.labels)] for fold in range(3)]
    learners = [LabelingPerceptron(rounds=rounds) for rounds in (2, 4, 3)]
    dense = DenseGram.of(kernel, described(kernel))
    alone = [learner.fresh().fit(dense, labels) for learner, labels in zip(learners, sets, strict=True)]
    gram = spread_gram(tmp_path / "g.zarr", kernel, "none", LateExecutor(), monkeypatch)
    LabelingPerceptron.fit_many(learners, gram, sets)
    for one, other in zip(learners, alone, strict=True):
        assert np.array_equal(one.alpha_, other.alpha_)
        assert np.array_equal(one.average_alpha_, other.average_alpha_)


def test_stored_tiles_are_read_as_often_as_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LabelingPerceptron(rounds=4)
    gram = spread_gram(tmp_path / "g.zarr", KERNELS["sequences"], "all", InlineExecutor(), monkeypatch)
    learner.fresh().fit(gram, CORPUS.labels)
    n_inline, gram.tile_reads, gram.executor = gram.tile_reads, 0, LateExecutor()
    learner.fresh().fit(gram, CORPUS.labels)
    assert gram.tile_reads <= n_inline


def test_a_small_matrix_is_not_spread(tmp_path: Path) -> None:
    gram = build_gram(KERNELS["sequences"], described(KERNELS["sequences"]), tmp_path / "g.zarr")
    gram.executor = LateExecutor()
    assert gram.spreader([3]) is None


def test_an_answer_that_is_lost_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gram = spread_gram(tmp_path / "g.zarr", KERNELS["sequences"], "none", LateExecutor(), monkeypatch)
    monkeypatch.setattr(updates, "_to_answer", lambda _scores: {})
    answer = updates.Letters.read

    def lost(letters: Any, name: str) -> Any:
        if name.startswith("answer"):
            letters.remove(name)
        return answer(letters, name)

    monkeypatch.setattr(updates.Letters, "read", lost)
    with pytest.raises(RunError, match=r"answer-0-0 of .* was lost; run the command again"):
        LabelingPerceptron(rounds=2).fit(gram, CORPUS.labels)


def test_on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dask_client: Any) -> None:
    kernel = KERNELS["sequences"]
    alone = LabelingPerceptron(rounds=3).fit(DenseGram.of(kernel, described(kernel)), CORPUS.labels)
    for keep in ("all", "none"):
        gram = spread_gram(tmp_path / f"{keep}.zarr", kernel, keep, DaskExecutor(dask_client), monkeypatch)
        spread = LabelingPerceptron(rounds=3).fit(gram, CORPUS.labels)
        assert np.array_equal(spread.alpha_, alone.alpha_)
