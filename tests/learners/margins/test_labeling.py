from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import margins as oracle
from tolerances import assert_close

from gramline.kernels import EmpiricalPrior, Identity, Polynomial, PositionKernel, SequenceLabeling
from gramline.learners.errors import LearnerError, LearnerParameterError
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.labeling_loops import (
    Steps,
    Weights,
    margin_terms,
    pairwise_step,
    separable_step,
    visit_block,
)
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.corpus.corpus import Corpus


class Problem:
    """A random problem and what a general solver makes of it."""

    def __init__(self, seed: int, *, prior: str = "uniform", label_kernel: str = "identity", C: float = 0.7) -> None:
        draw = np.random.default_rng(seed)
        self.lengths, self.C = draw.integers(1, 4, size=4), C
        n, self.names = int(self.lengths.sum()), ("a", "b", "c")
        half = draw.normal(size=(n, 3))
        self.gram = half @ half.T
        self.gram[1] = self.gram[:, 1] = 0.0  # a position that is like no other
        self.gold = [None if draw.random() < 0.15 else int(draw.integers(3)) for _ in range(n)]
        self.gold[1] = 1
        self.prior = None
        if prior != "uniform":
            self.prior = draw.dirichlet(np.ones(3), size=n)
            if prior == "zeros":
                self.prior[0], self.prior[-1] = [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]
        mixing = draw.normal(size=(3, 3))
        self.label_kernel = {"identity": None, "diagonal": np.diag([1.0, 2.0, 0.5]), "full": mixing @ mixing.T}[
            label_kernel
        ]

    def dense(self, block_rows: int | None = None) -> DenseGram:
        return DenseGram(
            self.gram,
            self.lengths,
            label_names=self.names,
            row_prior=self.prior,
            label_kernel=self.label_kernel,
            block_rows=block_rows,
        )

    @property
    def labels(self) -> list[list[str | None]]:
        ends = np.cumsum(self.lengths)
        flat = [None if code is None else self.names[code] for code in self.gold]
        return [flat[end - size : end] for end, size in zip(ends, self.lengths, strict=True)]

    @property
    def definition(self) -> tuple[Any, ...]:
        n = len(self.gram)
        prior = np.ones((n, 3)) if self.prior is None else self.prior
        return self.gold, self.C, prior, np.eye(3) if self.label_kernel is None else self.label_kernel


KINDS = [
    {"prior": "uniform"},
    {"prior": "given"},
    {"prior": "zeros"},
    {"label_kernel": "diagonal", "prior": "zeros"},
    {"label_kernel": "full"},
    {"label_kernel": "full", "prior": "given"},
    {"C": 30.0},
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_reaches_the_optimum_of_the_definition(kind: dict[str, Any], seed: int) -> None:
    problem = Problem(seed, **kind)
    gold, C, prior, label_kernel = problem.definition
    _, optimum = oracle.crammer_singer(problem.gram, gold, C, prior, label_kernel)
    model = LabelingSVM(C=C, tolerance=1e-9, passes=20000).fit(problem.dense(), problem.labels)
    assert model.notes() == []
    assert abs(model.objective_ - optimum) < 1e-8 * abs(optimum)
    primal = oracle.position_objective(problem.gram, model.dual_, gold, C, prior, label_kernel)
    assert_close(model.objective_, primal)
    assert model.gap_ <= 1e-9 * primal


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_gap_bounds_the_distance_to_the_optimum_after_every_pass(kind: dict[str, Any]) -> None:
    problem = Problem(5, **kind)
    gold, C, prior, label_kernel = problem.definition
    _, optimum = oracle.crammer_singer(problem.gram, gold, C, prior, label_kernel)
    for passes in range(1, 8):
        model = LabelingSVM(C=C, passes=passes, tolerance=1e-15).fit(problem.dense(), problem.labels)
        primal = oracle.position_objective(problem.gram, model.dual_, gold, C, prior, label_kernel)
        assert_close(model.objective_, primal)
        assert primal - optimum <= model.gap_ + 1e-7
        assert len(model.gap_trace_) == passes or model.gap_ <= 1e-15 * primal
        assert_close(model.gap_trace_[-1], model.gap_)
        labeled = np.array([right is not None for right in gold])
        right = np.array([right or 0 for right in gold])
        caps = C * (np.arange(3) == right[:, None])
        assert (model.dual_[labeled] <= caps[labeled] + 1e-12).all()
        assert np.abs(model.dual_.sum(axis=1)).max() < 1e-9
        assert not model.dual_[~labeled].any()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("block_rows", [3, 5])
def test_every_block_size_gives_the_same(kind: dict[str, Any], block_rows: int) -> None:
    problem = Problem(7, **kind)
    whole = LabelingSVM(C=problem.C, passes=6, tolerance=1e-12).fit(problem.dense(), problem.labels)
    parts = LabelingSVM(C=problem.C, passes=6, tolerance=1e-12).fit(problem.dense(block_rows), problem.labels)
    assert_close(parts.gap_trace_, whole.gap_trace_)
    assert_close(parts.decision_scores(problem.dense()), whole.decision_scores(problem.dense()))
    assert parts.predict(problem.dense()) == whole.predict(problem.dense())


WORDS = Corpus.from_sequences(
    [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["cat", "ran"], ["the", "dog"], ["a", "cat", "sat", "off"]] * 3,
    [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V"], ["D", "N"], ["D", "N", "V", None]] * 3,
)


@pytest.mark.parametrize(
    "kernel",
    [
        SequenceLabeling(c=0.7),
        SequenceLabeling(c=0.7, observation=Identity(), prior=EmpiricalPrior(smoothing=0.5)),
        PositionKernel(Polynomial(2)),
    ],
    ids=["sequence", "prior", "position"],
)
def test_computed_values_give_the_same_as_tiles(kernel: Any) -> None:
    corpus = WORDS.with_features("spelling") if isinstance(kernel, PositionKernel) else WORDS
    dense = DenseGram.of(kernel, corpus)
    computed = ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=10)
    one, other = (LabelingSVM(tolerance=1e-4).fit(gram, corpus.labels) for gram in (dense, computed))
    assert_close(other.gap_trace_, one.gap_trace_)
    assert_close(other.decision_scores(dense), one.decision_scores(dense))
    assert other.predict(computed) == one.predict(dense)


def test_many_problems_stop_by_themselves() -> None:
    gram, labels = DenseGram.of(SequenceLabeling(c=0.7), WORDS, block_rows=8), WORDS.labels
    settings = [{"C": 0.1}, {"C": 10.0}, {"tolerance": 1e-6}, {"passes": 2}]
    together = [LabelingSVM(**one) for one in settings]
    seen: list[tuple[int, int]] = []
    LabelingSVM.fit_many(together, gram, [labels] * 4, progress=lambda *told: seen.append(told))
    for learner, one in zip(together, settings, strict=True):
        alone = LabelingSVM(**one).fit(gram, labels)
        assert len(learner.gap_trace_) == len(alone.gap_trace_)
        assert_close(learner.gap_trace_, alone.gap_trace_)
        assert_close(learner.dual_, alone.dual_)
    assert [number for number, _ in seen] == list(range(1, max(len(one.gap_trace_) for one in together) + 1))


def test_too_few_passes_leave_a_note() -> None:
    problem = Problem(3, C=30.0)
    model = LabelingSVM(C=30.0, passes=1).fit(problem.dense(), problem.labels)
    (note,) = model.notes()
    share = f"{model.gap_ / model.objective_:.2g}"
    assert note.startswith(
        f"after 1 passes the duality gap is {model.gap_:.3g}, {share} of the objective (tolerance 0.01)"
    )
    assert note.endswith("give more passes, a smaller C or a larger tolerance")


@pytest.mark.parametrize("C", [0, -1.0, float("nan"), "many"])
def test_refuses_a_weight_that_is_not_positive(C: Any) -> None:
    problem = Problem(0)
    with pytest.raises(LearnerParameterError) as caught:
        LabelingSVM(C=C).fit(problem.dense(), problem.labels)
    assert caught.value.key == "C"


def test_names_the_structure_where_no_kernel_made_the_gram() -> None:
    negative = np.diag([1.0, 1.0, -1.0])
    with pytest.raises(LearnerError, match="not positive semidefinite") as caught:
        LabelingSVM().fit(DenseGram(negative, [2, 1]), [["a", "b"], ["a"]])
    assert (caught.value.structure, caught.value.position) == (1, 0)
    apart = np.array([[1.0, 0.0, 3.0], [0.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    with pytest.raises(LearnerError, match=r"k\(x, x'\) is 3") as caught:
        LabelingSVM().fit(DenseGram(apart, [1, 1, 1]), [["a"], ["b"], ["a"]])
    assert caught.value.structure in (0, 2)
    # every two rows could be a kernel's, all three could not
    cycle = 1.0 * np.eye(3) - 0.9 * (1 - np.eye(3))
    with pytest.raises(LearnerError, match="not positive semidefinite"):
        LabelingSVM().fit(DenseGram(cycle, [1, 1, 1], label_names=["a", "b"]), [["a"], ["a"], ["a"]])


def test_one_label_has_nothing_to_learn() -> None:
    model = LabelingSVM().fit(DenseGram(np.eye(2), [2]), [["a", "a"]])
    assert (model.gap_, model.objective_) == (0.0, 0.0)
    assert model.predict(DenseGram(np.eye(2), [2])) == [["a", "a"]]


def test_compiled_and_interpreted_steps_are_the_same() -> None:
    problem = Problem(2, prior="zeros", label_kernel="full")
    gram, (_, C, _, _) = problem.dense(), problem.definition
    from gramline.learners.chains.positions import Given  # next to what it is compared with

    codes = np.array([-1 if code is None else code for code in problem.gold])
    for label_kernel in (np.zeros((0, 0)), gram.label_kernel):
        given = Given(codes, gram.row_prior, label_kernel)
        n, starts = len(codes), np.array([0, len(codes)])
        results = []
        for step in (visit_block, visit_block.py_func):
            weights = Weights(np.zeros((3, n)), np.zeros(n), np.zeros((n, 3)))
            steps = Steps(np.zeros((n, 3)), np.zeros(n))
            for _ in range(3):
                step(gram.matrix, np.arange(n), given, weights, steps, C)
            norms = np.zeros(1)
            terms = margin_terms.py_func if step is not visit_block else margin_terms
            total, inside = terms(np.arange(n), given, weights.sums, weights.alpha, starts, norms)
            results.append([*weights, *steps, norms, np.array([total, inside])])
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_the_minimum_of_its_small_problem(seed: int) -> None:
    """Compared with pair steps, which need no curvature to be positive, and with the optimality conditions."""
    draw = np.random.default_rng(seed)
    curvature, linear = draw.exponential(size=4), draw.normal(size=4)
    if seed % 2:
        curvature[draw.integers(4)] = 0.0
    right, C = int(draw.integers(4)), 0.8
    best = np.zeros(4)
    separable_step.py_func(curvature, linear, right, C, best)
    gradient, caps = curvature * best + linear, C * (np.arange(4) == right)
    assert abs(best.sum()) < 1e-12
    assert (best <= caps).all()
    free = best < caps - 1e-12
    assert gradient[free].min() >= gradient.max() - 1e-9, "no free label could take weight from another"
    again, slope = np.zeros(4), linear.copy()
    pairwise_step.py_func(np.diag(curvature), slope, right, C, again)
    value, other = (a @ (curvature * a) / 2 + linear @ a for a in (best, again))
    assert value <= other + 1e-9
