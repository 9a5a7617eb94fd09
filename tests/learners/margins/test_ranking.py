"""RankingSVM against a general quadratic program, and the same for every way its Gram is cut or kept."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from oracles import margins as oracle
from tolerances import assert_close

from gramline.kernels import SubsetTree
from gramline.learners.candidates.log_probability import Trial
from gramline.learners.errors import LearnerError, LearnerParameterError
from gramline.learners.margins.ranking import RankingSVM
from gramline.learners.margins.ranking_loops import Candidates, Known, Steps, group_terms, visit_groups
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.build import build_gram


class Problem:
    """Random candidates, of which some are equal and some stand alone."""

    def __init__(self, seed: int, C: float = 0.7, weight: float = 0.0) -> None:
        draw = np.random.default_rng(seed)
        self.C, self.weight = C, weight
        self.sizes = [int(size) for size in draw.integers(1, 5, size=7)]
        n = sum(self.sizes)
        features = draw.normal(size=(n, 4))
        features[n // 2] = features[n // 2 - 1]
        self.gram = features @ features.T
        self.log_probabilities = -draw.exponential(size=n)
        ends = np.cumsum(self.sizes).tolist()
        self.groups = [list(range(end - size, end)) for size, end in zip(self.sizes, ends, strict=True)]

    @property
    def offsets(self) -> Any:
        return self.weight * self.log_probabilities

    def dense(self, block_rows: int | None = None) -> DenseGram:
        return DenseGram(self.gram, [1] * len(self.gram), block_rows=block_rows)

    def fit(self, gram: Any = None, **params: Any) -> RankingSVM:
        model = RankingSVM(**({"C": self.C, "log_probability": self.weight} | params))
        gram = self.dense() if gram is None else gram
        return model.fit(gram, self.sizes, log_probabilities=self.log_probabilities)


KINDS = [{}, {"weight": 1.5}, {"C": 0.02}, {"C": 30.0}, {"C": 30.0, "weight": 0.4}]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_reaches_the_optimum_of_the_definition(kind: dict[str, Any], seed: int) -> None:
    problem = Problem(seed, **kind)
    weights, optimum = oracle.ranking(problem.gram, problem.groups, problem.C, problem.offsets)
    model = problem.fit(tolerance=1e-9, passes=20000)
    assert model.notes() == []
    assert abs(model.objective_ - optimum) < 1e-8 * max(1.0, abs(optimum))
    primal = oracle.ranking_objective(problem.gram, model.weights_, problem.groups, problem.C, problem.offsets)
    assert_close(model.objective_, primal)
    np.testing.assert_allclose(problem.gram @ model.weights_, problem.gram @ weights, atol=2e-4 * problem.C)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_gap_bounds_the_distance_to_the_optimum_after_every_pass(kind: dict[str, Any]) -> None:
    problem = Problem(5, **kind)
    _, optimum = oracle.ranking(problem.gram, problem.groups, problem.C, problem.offsets)
    for passes in range(1, 7):
        model = problem.fit(passes=passes, tolerance=1e-15)
        primal = oracle.ranking_objective(problem.gram, model.weights_, problem.groups, problem.C, problem.offsets)
        assert_close(model.objective_, primal)
        assert primal - optimum <= model.gap_ + 1e-7
        assert len(model.gap_trace_) == passes or model.gap_ <= 1e-15 * primal
        assert model.objective_ - model.gap_ <= optimum + 1e-7, "the dual"


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("block_rows", [1, 3, 5])
def test_every_block_size_gives_the_same(kind: dict[str, Any], block_rows: int) -> None:
    problem = Problem(7, **kind)
    whole = problem.fit(passes=6, tolerance=1e-12)
    parts = problem.fit(problem.dense(block_rows), passes=6, tolerance=1e-12)
    assert_close(parts.gap_trace_, whole.gap_trace_)
    assert_close(parts.weights_, whole.weights_)


TREES = [
    f"(S ({a} {x}) ({b} (C {y})))"
    for a, b, x, y in zip("ABABBABAABAB" * 3, "ABBAABBABBAA" * 3, "xyzxxyzzyxyx" * 3, "yxzyxzzxyyxz" * 3, strict=True)
]


def test_computed_and_kept_values_give_the_same(tmp_path: Any) -> None:
    corpus, kernel = Corpus.from_parses(TREES), SubsetTree(decay=0.5, normalized=True)
    groups = [[3 * k + 1, 3 * k, 3 * k + 2] for k in range(12)]
    learner = RankingSVM(tolerance=1e-6)
    expected = learner.fresh().fit(DenseGram.of(kernel, corpus), groups)
    cross = DenseGram.of(kernel, corpus)
    grams: dict[str, Any] = {"computed": ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=10)}
    for keep in ("all", "none", "4kB"):
        grams[keep] = build_gram(kernel, corpus, tmp_path / f"{keep}.zarr", block_rows=8, keep=keep)
    for name, gram in grams.items():
        found = learner.fresh().fit(gram, groups)
        assert len(found.gap_trace_) == len(expected.gap_trace_), name
        np.testing.assert_allclose(found.gap_trace_, expected.gap_trace_, atol=1e-9, err_msg=name)
        assert_close(found.decision_scores(cross), expected.decision_scores(cross))
        assert found.predict(gram, groups) == expected.predict(cross, groups)


def test_rows_in_no_group_take_no_part() -> None:
    problem = Problem(4)
    n = len(problem.gram)
    wider = np.zeros((n + 2, n + 2))
    wider[2:, 2:] = problem.gram
    wider[0, 0] = 5.0
    groups = [[row + 2 for row in rows] for rows in problem.groups]
    for block_rows in (None, 3):
        model = RankingSVM(C=problem.C, tolerance=1e-8).fit(
            DenseGram(wider, [1] * (n + 2), block_rows=block_rows), groups
        )
        assert_close(model.weights_[2:], problem.fit(tolerance=1e-8).weights_)
        assert not model.weights_[:2].any()


def test_trials_in_one_stream_are_separate_trainings() -> None:
    problem = Problem(9, C=2.0)
    candidates = [np.array(rows) for rows in problem.groups]
    trials = [Trial(np.arange(7), 0.0), Trial(np.array([0, 2, 3, 5]), 0.8), Trial(np.array([1, 6]), 0.3)]
    model = RankingSVM(C=2.0, tolerance=1e-7)
    together = model._fit_trials(problem.dense(4), candidates, problem.log_probabilities, trials)
    for trial, found in zip(trials, together, strict=True):
        alone = RankingSVM(C=2.0, tolerance=1e-7, log_probability=trial.weight).fit(
            problem.dense(4), [problem.groups[k] for k in trial.groups], log_probabilities=problem.log_probabilities
        )
        assert_close(found.gap_trace_, alone.gap_trace_)
        assert_close(found.weights_, alone.weights_)
        assert found.log_probability_ == trial.weight


def test_too_few_passes_leave_a_note() -> None:
    model = Problem(3, C=30.0).fit(passes=1)
    (note,) = model.notes()
    assert note.startswith(f"after 1 passes the duality gap is {model.gap_:.3g}")
    assert model.traces() == {"gap": model.gap_trace_}


def test_lone_candidates_teach_nothing() -> None:
    model = RankingSVM().fit(DenseGram(np.eye(3), [1, 1, 1]), [1, 1, 1])
    assert (model.gap_, model.objective_, model.weights_.tolist()) == (0.0, 0.0, [0.0, 0.0, 0.0])
    assert model.predict(DenseGram(np.eye(3), [1, 1, 1]), [1, 2]) == [0, 0]


def test_equal_candidates_cost_the_whole_margin() -> None:
    model = RankingSVM(C=0.5).fit(DenseGram(np.ones((2, 2)), [1, 1]), [2])
    assert (model.objective_, model.gap_) == (0.5, 0.0)


@pytest.mark.parametrize("C", [0, -1.0, float("nan"), "many"])
def test_refuses_a_weight_that_is_not_positive(C: Any) -> None:
    with pytest.raises(LearnerParameterError) as caught:
        Problem(0).fit(C=C)
    assert caught.value.key == "C"


def test_names_the_candidate_where_no_kernel_made_the_gram() -> None:
    apart = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    with pytest.raises(LearnerError, match=r"k\(x, x'\) is 3") as caught:
        RankingSVM().fit(DenseGram(apart, [1, 1, 1]), [[1, 2], [0, 2]])
    assert caught.value.structure in (0, 2)
    # every two rows could be a kernel's, and so could every pair of a group
    pairs = np.eye(4)
    pairs[[0, 2, 1, 3], [2, 0, 3, 1]], pairs[[0, 3, 1, 2], [3, 0, 2, 1]] = -0.9, 0.9
    with pytest.raises(LearnerError, match="not positive semidefinite"):
        RankingSVM(C=5.0).fit(DenseGram(pairs, [1] * 4), [2, 2])


def test_compiled_and_interpreted_steps_are_the_same() -> None:
    problem = Problem(2, C=3.0)
    n = len(problem.gram)
    starts = np.array([0, *np.cumsum(problem.sizes)])
    results = []
    for step, terms in ((visit_groups, group_terms), (visit_groups.py_func, group_terms.py_func)):
        alpha, margins = np.zeros(n), np.ones(n)
        alpha[starts[:-1]], margins[starts[:-1]] = 3.0, 0.0
        candidates = Candidates(np.arange(n), starts, margins, alpha)
        known, steps = Known(np.zeros(n), np.zeros(n)), Steps(np.zeros(n), np.zeros(n))
        for _ in range(3):
            step(problem.gram, candidates, known, steps)
        for first, last in pairwise(starts):
            assert abs(alpha[first:last].sum() - 3.0) < 1e-12
        assert_close(known.sums, problem.gram @ steps.change)
        results.append([alpha, *known, *steps, np.array(terms(candidates, known.sums))])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
