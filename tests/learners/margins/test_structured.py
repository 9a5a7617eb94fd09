from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import margins as oracle
from tolerances import assert_close

from gramline.kernels import Polynomial, PositionKernel, SequenceLabeling
from gramline.learners.errors import LearnerError, LearnerParameterError
from gramline.learners.margins import atom_loops, chain_problem, structured_loops
from gramline.learners.margins.chain_problem import labeled_runs
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.lazy_scores import LazyScores
from gramline.pipeline.corpus.corpus import Corpus

NAMES = ("a", "b", "c")


class Problem:
    """Random chains with explicit features, so that every path can be written down."""

    def __init__(self, seed: int, lengths: tuple[int, ...] = (3, 1, 2, 3), n_labels: int = 2) -> None:
        draw = np.random.default_rng(seed)
        self.lengths, self.n_labels = np.array(lengths), n_labels
        self.features = [draw.normal(size=(n, 3)) for n in lengths]
        self.golds = [tuple(int(code) for code in draw.integers(n_labels, size=n)) for n in lengths]
        self.golds[0] = tuple(range(n_labels)) + self.golds[0][n_labels:]

    def gram(self, block_rows: int | None = None) -> DenseGram:
        F = np.vstack(self.features)
        return DenseGram(F @ F.T, self.lengths, label_names=NAMES[: self.n_labels], block_rows=block_rows)

    @property
    def labels(self) -> list[list[str]]:
        return [[NAMES[code] for code in path] for path in self.golds]

    def primal_weights(self, model: StructuredSVM) -> Any:
        """w of the model in the space of the oracle."""
        emission = np.vstack(self.features).T @ model.dual_
        rho = model.transition_weight
        return np.concatenate([emission.T.ravel(), model.transition_.ravel() / np.sqrt(rho)])


SETTINGS: list[dict[str, Any]] = [
    {"C": 0.5},
    {"C": 5.0},
    {"C": 0.5, "loss": "zero-one"},
    {"C": 2.0, "loss": "none", "transition_weight": 0.3},
    {"C": 1.0, "transition_weight": 3.0},
]


def definition(problem: Problem, setting: dict[str, Any]) -> tuple[Any, ...]:
    rho, loss = setting.get("transition_weight", 1.0), setting.get("loss", "hamming")
    return problem.features, problem.golds, problem.n_labels, setting["C"], rho, loss


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(("seed", "n_labels"), [(0, 2), (1, 2), (2, 3)])
def test_reaches_the_optimum_over_all_label_paths(setting: dict[str, Any], seed: int, n_labels: int) -> None:
    problem = Problem(seed, (3, 1, 2) if n_labels == 3 else (3, 1, 2, 3), n_labels)
    weights, optimum = oracle.structured(*definition(problem, setting))
    model = StructuredSVM(tolerance=1e-9, passes=20000, **setting).fit(problem.gram(), problem.labels)
    assert model.notes() == []
    assert abs(model.objective_ - optimum) < 1e-8 * abs(optimum)
    own = problem.primal_weights(model)
    assert_close(oracle.structured_objective(own, *definition(problem, setting)), model.objective_)
    np.testing.assert_allclose(own, weights, atol=1e-3 * np.abs(weights).max())


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_gap_bounds_the_distance_to_the_optimum_after_every_pass(setting: dict[str, Any]) -> None:
    problem = Problem(4)
    _, optimum = oracle.structured(*definition(problem, setting))
    duals = []
    for passes in range(1, 7):
        model = StructuredSVM(passes=passes, tolerance=1e-15, **setting).fit(problem.gram(), problem.labels)
        primal = oracle.structured_objective(problem.primal_weights(model), *definition(problem, setting))
        assert_close(model.objective_, primal)
        assert primal - optimum <= model.gap_ + 1e-7
        duals.append(model.objective_ - model.gap_)
    assert (np.diff(duals) >= -1e-9).all(), "the dual never falls"
    assert duals[-1] <= optimum + 1e-7


@pytest.mark.parametrize("setting", [*SETTINGS, {"C": 1.0, "average": True}], ids=str)
@pytest.mark.parametrize("block_rows", [3, 5])
def test_every_block_size_gives_the_same(setting: dict[str, Any], block_rows: int) -> None:
    problem = Problem(9, (3, 2, 3, 1, 3, 2, 2), 3)
    whole = StructuredSVM(passes=12, tolerance=1e-12, **setting).fit(problem.gram(), problem.labels)
    parts = StructuredSVM(passes=12, tolerance=1e-12, **setting).fit(problem.gram(block_rows), problem.labels)
    assert_close(parts.gap_trace_, whole.gap_trace_)
    assert_close(parts.dual_, whole.dual_)
    assert_close(parts.transition_, whole.transition_)


def test_one_block_is_entered_once_a_pass_whatever_the_inner_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, entered = Problem(9, (3, 2, 3, 1, 3, 2, 2), 3), []
    enter = LazyScores.enter
    monkeypatch.setattr(LazyScores, "enter", lambda self, *given: entered.append(1) or enter(self, *given))
    whole = StructuredSVM(passes=6, tolerance=1e-12).fit(problem.gram(), problem.labels)
    assert len(entered) == len(whole.gap_trace_) == 6
    entered.clear()
    parts = StructuredSVM(passes=6, tolerance=1e-12).fit(problem.gram(8), problem.labels)
    assert len(entered) > 6 * problem.gram(8).layout.rows.n_blocks, "there are inner passes, and others wait for them"
    assert_close(parts.gap_trace_, whole.gap_trace_)


@pytest.mark.parametrize("slots", [2, 3])
def test_few_slots_reach_the_same_optimum(monkeypatch: pytest.MonkeyPatch, slots: int) -> None:
    """Paths that give way go into the aggregate; a full set without it would stand still."""
    monkeypatch.setattr(chain_problem, "SLOTS", slots)
    problem = Problem(11, (3, 3, 3), 3)
    setting = {"C": 3.0}
    _, optimum = oracle.structured(*definition(problem, setting))
    model = StructuredSVM(tolerance=5e-3, passes=2000, **setting).fit(problem.gram(), problem.labels)
    assert model.notes() == []
    assert abs(model.objective_ - optimum) < 5e-3 * abs(optimum)


WORDS = Corpus.from_sequences(
    [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["cat", "ran"], ["the", "dog"], ["a", "cat", "sat", "off"]] * 3,
    [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V"], ["D", "N"], ["D", None, "V", "P"]] * 3,
)


@pytest.mark.parametrize(
    "kernel", [SequenceLabeling(c=0.7), PositionKernel(Polynomial(2))], ids=["sequence", "position"]
)
def test_computed_values_give_the_same_as_tiles(kernel: Any) -> None:
    corpus = WORDS.with_features("spelling") if isinstance(kernel, PositionKernel) else WORDS
    dense = DenseGram.of(kernel, corpus)
    computed = ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=10)
    one, other = (StructuredSVM(tolerance=1e-3).fit(gram, corpus.labels) for gram in (dense, computed))
    assert_close(other.gap_trace_, one.gap_trace_)
    assert_close(other.decision_scores(dense), one.decision_scores(dense))
    assert other.predict(computed) == one.predict(dense)


def test_a_missing_label_ends_a_chain() -> None:
    problem = Problem(6, (5, 3), 2)
    labels: list[list[str | None]] = [list(path) for path in problem.labels]
    labels[0][2] = None
    split = DenseGram(problem.gram().matrix[np.ix_(keep := [0, 1, 3, 4, 5, 6, 7], keep)], [2, 2, 3])
    cut = [labels[0][:2], labels[0][3:], labels[1]]
    one = StructuredSVM(tolerance=1e-6).fit(problem.gram(), labels)
    other = StructuredSVM(tolerance=1e-6).fit(split, cut)
    assert_close(one.dual_[keep], other.dual_)
    assert not one.dual_[2].any()
    assert_close(one.gap_trace_, other.gap_trace_)


def test_runs_of_labels() -> None:
    codes = np.array([0, 1, -1, 2, -1, -1, 1, 0, 0], np.int32)
    firsts, lasts = labeled_runs(codes, np.array([0, 2, 5, 5, 7, 9]))
    assert firsts.tolist() == [0, 3, 6, 7]
    assert lasts.tolist() == [2, 4, 7, 9]


def test_the_average_is_that_of_all_visits() -> None:
    """The mean of the weights after visit k with weight 2 k / (K (K + 1)), from learners with fewer visits."""
    problem = Problem(8, (3, 2, 3))
    model = StructuredSVM(passes=3, tolerance=1e-12, average=True).fit(problem.gram(), problem.labels)
    state = chain_problem.ChainProblem.start(
        problem.gram().layout.rows,
        np.concatenate([np.array(path) for path in problem.golds]).astype(np.int32),
        2,
        atom_loops.Margin(1.0, 1.0, True),
        chain_problem.Stopping(1e-12, 3),
    )
    single = DenseGram(problem.gram().matrix, problem.lengths, label_names=NAMES[:2], block_rows=3)
    state.layout = single.layout.rows
    scores, seen = LazyScores(single, [2]), []
    n_passes = n_inner = 0
    while n_passes < 3 or state.is_inner:
        n_passes += not state.is_inner
        n_inner += state.is_inner
        for block in range(single.layout.rows.n_blocks):
            visit = scores.enter(single.layout.rows.rows(block))
            scores.leave(visit, [state.visit(block, visit, visit.scores[0])])
            seen.append((state.alpha.copy(), state.transitions.weights.copy()))
        state.end_pass()
    n_visits = len(seen)
    assert n_inner > 0
    assert n_visits == 3 * (n_passes + n_inner), "one structure per block"
    shares = 2 * np.arange(1, n_visits + 1) / (n_visits * (n_visits + 1))
    assert_close(model.dual_, sum(share * alpha for share, (alpha, _) in zip(shares, seen, strict=True)))
    assert_close(model.transition_, sum(share * T for share, (_, T) in zip(shares, seen, strict=True)))


def test_too_few_passes_leave_a_note() -> None:
    problem = Problem(3)
    model = StructuredSVM(C=30.0, passes=1, tolerance=1e-6).fit(problem.gram(), problem.labels)
    (note,) = model.notes()
    assert f"the duality gap is {model.gap_:.3g}" in note
    assert note.endswith("give more passes, a smaller C or a larger tolerance")


@pytest.mark.parametrize(
    ("setting", "key"), [({"C": 0}, "C"), ({"loss": "some"}, "loss"), ({"transition_weight": -1}, "transition_weight")]
)
def test_refuses_what_it_cannot_use(setting: dict[str, Any], key: str) -> None:
    problem = Problem(0)
    with pytest.raises(LearnerParameterError) as caught:
        StructuredSVM(**setting).fit(problem.gram(), problem.labels)
    assert caught.value.key == key


def test_names_the_structure_where_no_kernel_made_the_gram() -> None:
    with pytest.raises(LearnerError, match="not positive semidefinite") as caught:
        StructuredSVM().fit(DenseGram(np.diag([1.0, 1.0, -1.0]), [2, 1]), [["a", "b"], ["a"]])
    assert (caught.value.structure, caught.value.position) == (1, 0)
    # every two rows could be a kernel's, all three could not
    cycle = 1.0 * np.eye(3) - 0.9 * (1 - np.eye(3))
    gram = DenseGram(cycle, [3], label_names=["a", "b"])
    with pytest.raises(LearnerError, match="negative squared distance") as caught:
        StructuredSVM(transition_weight=0.01).fit(gram, [["a", "a", "a"]])
    assert caught.value.structure == 0


def test_compiled_and_interpreted_loops_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem(10, (3, 2, 3), 3)
    monkeypatch.setattr(chain_problem, "SLOTS", 2)
    compiled = [
        StructuredSVM(C=2.0, passes=4, tolerance=1e-12, loss=loss).fit(problem.gram(), problem.labels)
        for loss in ("hamming", "zero-one")
    ]
    for module in (atom_loops, structured_loops, chain_problem):
        for name, function in list(vars(module).items()):
            if hasattr(function, "py_func"):
                monkeypatch.setattr(module, name, function.py_func)
    for one in compiled:
        other = one.fresh().fit(problem.gram(), problem.labels)
        assert_close(other.dual_, one.dual_)
        assert_close(other.gap_trace_, one.gap_trace_)


@pytest.mark.parametrize("setting", [*SETTINGS, {"C": 1.0, "average": True}], ids=str)
def test_features_give_the_same_as_their_linear_kernel(setting: dict[str, Any]) -> None:
    problem = Problem(12, (3, 2, 3, 1, 2), 3)
    labels: list[list[str | None]] = [list(path) for path in problem.labels]
    labels[2][1] = None
    X = [[{f"f{k}": value for k, value in enumerate(row)} for row in table] for table in problem.features]
    corpus = Corpus.from_sequences(X, labels, labels=NAMES)
    dual = StructuredSVM(passes=8, tolerance=1e-12, **setting).fit(problem.gram(), labels)
    primal = StructuredSVM(passes=8, tolerance=1e-12, dual=False, **setting).fit(corpus)
    assert_close(primal.gap_trace_, dual.gap_trace_)
    assert_close(primal.transition_, dual.transition_)
    order = [primal.feature_names_.index(f"f{k}") for k in range(3)]
    assert_close(primal.emission_[:, order], (np.vstack(problem.features).T @ dual.dual_).T)
    assert primal.predict(corpus) == dual.predict(problem.gram())


def test_refuses_the_other_form() -> None:
    problem = Problem(0)
    with pytest.raises(LearnerError, match="the primal structured support vector machine reads a corpus, but"):
        StructuredSVM(dual=False).fit(problem.gram(), problem.labels)
    with pytest.raises(LearnerError, match="the dual structured support vector machine reads a Gram matrix, but was"):
        StructuredSVM().fit(WORDS)
    with pytest.raises(LearnerError, match="no position has a label"):
        StructuredSVM(dual=False).fit(WORDS.without_labels())
