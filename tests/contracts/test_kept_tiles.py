"""What a store keeps changes no number: policies x executors x learners give the same weights and the same labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.kernels import (
    Identity,
    Polynomial,
    PositionKernel,
    SequenceLabeling,
    SubsetTree,
    TreeLabeling,
)
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram import spread_product, stored
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram

BLOCK_ROWS = 80
TILE = BLOCK_ROWS**2  # values
SENTENCES = generate_saleslog(14, seed=5)
TREES = generate_saleslog(12, kind="trees", seed=6)
PARSES = Corpus.from_parses(
    [
        f"(S ({a} {w}) ({b} {v}))"
        for w in "xyz"
        for v in "xy"
        for a, b in (("A", "B"), ("B", "A"), ("A", "A"), ("A", "B"))
    ]
)
GROUPS = [4] * 6
POLICIES: dict[str, dict[str, Any]] = {
    "none": {"keep": "none"},
    "part": {"keep": 5},  # tiles
    "cache": {"keep": "none", "tile_cache": 3},
}
KERNELS: dict[str, Any] = {
    "words": SequenceLabeling(reach=1.0),
    "features": SequenceLabeling(reach=0.5, gap=0.3, observation=Polynomial(2, normalized=True)),
    "position": PositionKernel(Polynomial(2, normalized=True)),
    "letters": PositionKernel(Identity()),
    "trees": TreeLabeling(reach=0.1),
}
LEARNERS: list[Any] = [
    LabelingPerceptron(rounds=4),
    LabelingPerceptron(rounds=3, average=False),
    HiddenMarkovPerceptron(rounds=4, dual=True),
    KernelZScoreLabeler(ridge=0.1),
    LabelingSVM(passes=4),
    StructuredSVM(passes=4),
    KernelCRF(penalty=0.1, iterations=5),
    GaussianProcessLabeler(offsets="GPSL1", max_sweeps=1),
    GaussianProcessLabeler(approximation="nystrom", rank=12, max_sweeps=1),
]
policies = pytest.mark.parametrize("policy", POLICIES)
kernels = pytest.mark.parametrize("kernel", KERNELS)
learners = pytest.mark.parametrize("learner", LEARNERS, ids=repr)


def corpus_of(kernel: str) -> Corpus:
    corpus = TREES if kernel == "trees" else SENTENCES
    return (
        corpus.with_features("spelling") if kernel in ("features", "position") and not corpus.has_features else corpus
    )


def made(
    kernel: Any, corpus: Corpus, path: Path, policy: str | None, dtype: str = "float64", **more: Any
) -> StoredGram:
    size = TILE * np.dtype(dtype).itemsize
    choices = {} if policy is None else {k: v * size if isinstance(v, int) else v for k, v in POLICIES[policy].items()}
    return build_gram(kernel, corpus, path, block_rows=BLOCK_ROWS, dtype=dtype, **choices, **more)


def weights(learner: Any) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in learner.fitted().items() if name in learner.row_arrays}


def assert_same_weights(one: Any, other: Any) -> None:
    """Of perceptrons all, of iterative solvers to the tolerance they stop at."""
    found = weights(other)
    for name, value in weights(one).items():
        if isinstance(one, LabelingPerceptron | HiddenMarkovPerceptron):
            assert np.array_equal(found[name], value), name
        else:
            np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-4 * np.abs(value).max(), err_msg=name)


@policies
@kernels
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tiles_that_are_left_out_are_the_same_bit_for_bit(kernel: str, policy: str, dtype: str, tmp_path: Path) -> None:
    corpus = corpus_of(kernel)
    whole = made(KERNELS[kernel], corpus, tmp_path / "all.zarr", None, dtype)
    sparse = made(KERNELS[kernel], corpus, tmp_path / "some.zarr", policy, dtype)
    assert sparse.status().n_present < whole.status().n_present
    assert sparse.status().is_complete
    assert np.array_equal(sparse.to_numpy(), whole.to_numpy())
    assert sparse.to_numpy().dtype == dtype
    vector = np.linspace(-1, 1, whole.shape[0] * 2).reshape(-1, 2)
    assert np.array_equal(sparse.matmul(vector), whole.matmul(vector))


@policies
@learners
@pytest.mark.parametrize("kernel", ["words", "position"])
def test_learners_see_the_same(kernel: str, learner: Any, policy: str, tmp_path: Path) -> None:
    corpus = corpus_of(kernel)
    whole = made(KERNELS[kernel], corpus, tmp_path / "all.zarr", None)
    sparse = made(KERNELS[kernel], corpus, tmp_path / "some.zarr", policy)
    one, other = learner.fresh().fit(whole, corpus.labels), learner.fresh().fit(sparse, corpus.labels)
    assert_same_weights(one, other)
    assert one.predict(whole) == other.predict(sparse)


@pytest.mark.parametrize(
    ("learner", "policy"),
    [(learner, "none") for learner in LEARNERS] + [(LEARNERS[0], "part"), (LEARNERS[3], "cache"), (LEARNERS[6], None)],
    ids=repr,
)
def test_workers_see_the_same(
    learner: Any, policy: str | None, dask_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every learner sends its work to the workers; only margins add up updates in another order than this process."""
    monkeypatch.setattr(stored, "SPREAD_ROWS", 0)
    monkeypatch.setattr(spread_product, "SPREAD_BYTES", 0)
    corpus = corpus_of("features")
    whole = made(KERNELS["features"], corpus, tmp_path / "all.zarr", None)
    sparse = made(KERNELS["features"], corpus, tmp_path / "some.zarr", policy, client=dask_client)
    executor = DaskExecutor(dask_client)
    sparse.executor = executor
    one, other = learner.fresh().fit(whole, corpus.labels), learner.fresh().fit(sparse, corpus.labels)
    assert executor.n_sent > 0
    if isinstance(learner, LabelingSVM | StructuredSVM):
        assert_same_weights(one, other)
    else:
        assert all(np.array_equal(weights(other)[name], value) for name, value in weights(one).items())
    assert one.predict(whole) == other.predict(sparse)


@learners
@pytest.mark.parametrize("kernel", ["features", "position", "letters", "trees"])
def test_a_gram_that_is_never_stored_trains_the_same(kernel: str, learner: Any) -> None:
    """Equal rows are merged there; the literal matrix is in memory here."""
    corpus = corpus_of(kernel)
    dense = DenseGram.of(KERNELS[kernel], corpus)
    computed = ComputedGram(KERNELS[kernel], KERNELS[kernel].prepare(corpus.packed()), block_rows=BLOCK_ROWS)
    one, other = learner.fresh().fit(dense, corpus.labels), learner.fresh().fit(computed, corpus.labels)
    assert_same_weights(one, other)
    assert one.predict(dense) == other.predict(computed)


@policies
@pytest.mark.parametrize("learner", [RankingPerceptron(passes=3), RankingPerceptron(average=True)], ids=repr)
def test_rankers_see_the_same(learner: Any, policy: str, tmp_path: Path) -> None:
    kernel = SubsetTree(decay=0.5)
    size = 64 * 8
    choices = {k: v * size if isinstance(v, int) else v for k, v in POLICIES[policy].items()}
    whole = build_gram(kernel, PARSES, tmp_path / "all.zarr", block_rows=8)
    sparse = build_gram(kernel, PARSES, tmp_path / "some.zarr", block_rows=8, **choices)
    one, other = learner.fresh().fit(whole, GROUPS), learner.fresh().fit(sparse, GROUPS)
    assert one.mistakes_ == other.mistakes_
    assert np.array_equal(one.updates_, other.updates_)
    assert np.array_equal(one.weights_, other.weights_)
