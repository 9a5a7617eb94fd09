from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import labeling_perceptron as oracle
from tolerances import assert_close

from gramline.learners.errors import LabelError, LearnerError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.gather_loops import gather_columns
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.perceptrons.labeling_loops import (
    Given,
    Mistakes,
    Weights,
    best_label,
    visit_block,
)


class CountingGram(DenseGram):
    """Counts the tiles that are read."""

    n_reads = 0

    def tile(self, i: int, j: int) -> Any:
        self.n_reads += 1
        return super().tile(i, j)


class Problem:
    """A random problem in whole numbers, where ties are common, and what the oracle makes of it."""

    def __init__(self, seed: int, *, rounds: int = 4, has_prior: bool = False, has_label_kernel: bool = False) -> None:
        draw = np.random.default_rng(seed)
        self.lengths = draw.integers(1, 5, size=int(draw.integers(3, 8)))
        self.names = ("a", "b", "c")[: int(draw.integers(2, 4))]
        n, n_labels = int(self.lengths.sum()), len(self.names)
        half = draw.integers(-1, 3, size=(n, 3))
        self.gram = half @ half.T
        self.gold = [None if draw.random() < 0.15 else int(draw.integers(n_labels)) for _ in range(n)]
        self.gold[0] = n_labels - 1
        self.rounds = rounds
        tenths = np.array([draw.multinomial(10, np.ones(n_labels) / n_labels) for _ in range(n)])
        tenths[0] = [10] + [0] * (n_labels - 1)
        self.prior = tenths if has_prior else None
        mixing = draw.integers(-1, 2, size=(n_labels, n_labels))
        self.label_kernel = mixing @ mixing.T if has_label_kernel else None

    @property
    def labels(self) -> list[list[str | None]]:
        ends = np.cumsum(self.lengths)
        flat = [None if code is None else self.names[code] for code in self.gold]
        return [flat[end - size : end] for end, size in zip(ends, self.lengths, strict=True)]

    def operator(self, block_rows: int | None = None, *, scale: float = 1.0, dtype: type = np.float64) -> CountingGram:
        return CountingGram(
            (self.gram * scale).astype(dtype),
            self.lengths,
            label_names=self.names,
            row_prior=None if self.prior is None else self.prior / 10,
            label_kernel=self.label_kernel,
            block_rows=block_rows,
        )

    def exact_prior(self) -> oracle.Table:
        if self.prior is None:
            return [[Fraction(1, len(self.names))] * len(self.names) for _ in self.gold]
        return [[Fraction(int(x), 10) for x in row] for row in self.prior]

    def exact_label_kernel(self) -> oracle.Table:
        if self.label_kernel is None:
            return oracle.identity(len(self.names))
        return [[Fraction(int(x)) for x in row] for row in self.label_kernel]

    def exact_gram(self) -> oracle.Table:
        return [[Fraction(int(x)) for x in row] for row in self.gram]

    def expected(self) -> tuple[list[list[int]], oracle.Table, list[int]]:
        return oracle.train(self.exact_gram(), self.gold, self.rounds, self.exact_prior(), self.exact_label_kernel())


def block_sizes(lengths: Any) -> list[int]:
    """From one structure per block to one block for everything."""
    return sorted({int(lengths.max()), int(lengths.max()) + 2, int(lengths.sum())})


@pytest.mark.parametrize("has_prior", [False, True], ids=["uniform", "prior"])
@pytest.mark.parametrize("has_label_kernel", [False, True], ids=["identity", "label-kernel"])
@pytest.mark.parametrize("seed", range(6))
def test_equals_the_online_loop_for_every_block_size(seed: int, has_prior: bool, has_label_kernel: bool) -> None:
    problem = Problem(seed, has_prior=has_prior, has_label_kernel=has_label_kernel)
    alpha, average, mistakes = problem.expected()
    for block_rows in block_sizes(problem.lengths):
        learner = LabelingPerceptron(rounds=problem.rounds, early_stop=False)
        learner.fit(problem.operator(block_rows), problem.labels)
        assert learner.alpha_.tolist() == alpha
        assert learner.mistakes_ == mistakes
        assert_close(learner.average_alpha_, np.array(average, float))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10_000),
    has_prior=st.booleans(),
    scale=st.sampled_from([0.1, 1 / 3, 1e-9, 7e11]),
)
def test_rounding_does_not_break_ties(seed: int, has_prior: bool, scale: float) -> None:
    """A factor changes no exact decision, but it makes every product inexact."""
    problem = Problem(seed, has_prior=has_prior, rounds=3)
    alpha, _, mistakes = problem.expected()
    for block_rows in block_sizes(problem.lengths):
        learner = LabelingPerceptron(rounds=3, early_stop=False)
        learner.fit(problem.operator(block_rows, scale=scale), problem.labels)
        assert learner.alpha_.tolist() == alpha
        assert learner.mistakes_ == mistakes


@pytest.mark.parametrize("block_rows", [1, 2, 4])
def test_a_tie_that_cancelled_is_still_a_tie(block_rows: int) -> None:
    """0.1 + 0.2 - 0.3 is not 0 in floating point; nothing else in the row tells how large its terms were."""
    gram = np.eye(4)
    gram[3, :3] = gram[:3, 3] = [0.1, 0.2, 0.3]
    gram[2, 0] = gram[0, 2] = 1.0
    labels = [["b"], ["b"], ["a"], ["a"]]  # the third is taken for b, so its update undoes the first two
    learner = LabelingPerceptron(rounds=1).fit(DenseGram(gram, [1] * 4, block_rows=block_rows), labels)
    assert 0.1 + 0.2 > 0.3
    assert learner.alpha_.tolist() == [[-1, 1], [-1, 1], [1, -1], [0, 0]]


def test_a_label_with_prior_zero_wins_against_negative_scores() -> None:
    sums = np.array([[-5.0], [3.0], [-1.0]])
    assert best_label(sums, 0, np.array([0.5, 0.0, 0.5]), 9.0) == 1
    assert best_label(sums, 0, np.array([0.0, 0.0, 1.0]), 9.0) == 0


def test_tiny_priors_are_not_tied() -> None:
    """Scores far below the largest one are told apart as long as their own terms are."""
    sums = np.array([[-1.0], [3.0], [7.0]])
    assert best_label(sums, 0, np.array([1.0, 1e-14, 1e-14]), 10.0) == 2


@pytest.mark.parametrize("seed", range(4))
def test_early_stop_changes_nothing(seed: int) -> None:
    draw = np.random.default_rng(seed)
    half = draw.normal(size=(12, 12))
    gram = DenseGram(half @ half.T, [3, 4, 5], block_rows=5)
    labels = [list("aba"), list("bbca"), list("cabca")]
    stopped = LabelingPerceptron(rounds=60, average=True).fit(gram, labels)
    complete = LabelingPerceptron(rounds=60, average=True, early_stop=False).fit(gram, labels)
    assert stopped.rounds_run_ < 60
    assert stopped.mistakes_[-1] == 0
    assert stopped.rounds_run_ == len(stopped.mistakes_)
    assert complete.rounds_run_ == 60
    assert (stopped.alpha_ == complete.alpha_).all()
    assert_close(stopped.average_alpha_, complete.average_alpha_)


@pytest.mark.parametrize("seed", range(5))
def test_reads_exactly_the_promised_tiles(seed: int) -> None:
    problem = Problem(seed)
    for block_rows in block_sizes(problem.lengths):
        gram = problem.operator(block_rows)
        learner = LabelingPerceptron(rounds=5, early_stop=False).fit(gram, problem.labels)
        blocks = gram.layout.rows
        n = blocks.n_blocks
        visits_with_mistakes = 0
        dual = np.zeros_like(learner.alpha_)
        for rounds in range(1, 6):
            after = LabelingPerceptron(rounds=rounds, early_stop=False).fit(problem.operator(), problem.labels).alpha_
            visits_with_mistakes += sum((after != dual)[blocks.rows(block)].any() for block in range(n))
            dual = after
        # What the last visits change is not brought to rows that nobody looks at again.
    assert 5 * n <= gram.n_reads <= 5 * n + visits_with_mistakes * (n - 1)


def test_float32_tiles_are_accumulated_in_float64() -> None:
    problem = Problem(3)
    alpha, _, _ = problem.expected()
    learner = LabelingPerceptron(rounds=4).fit(problem.operator(5, dtype=np.float32), problem.labels)
    assert learner.alpha_.tolist() == alpha
    large = np.array([[1.0, 2.0**25, 1.0], [2.0**25, 1.0, 1.0], [1.0, 1.0, 1.0]], np.float32)
    sums = np.zeros((2, 3))
    visit_block(
        large,
        np.arange(3),
        Given(np.array([1, 1, -1]), np.zeros((3, 0)), np.zeros((0, 0))),
        Weights(sums, np.zeros(3), np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64)),
        Mistakes(np.zeros((3, 2)), np.zeros(3)),
        0,
    )
    assert sums[1].tolist() == [1.0, 2.0**25, 1.0]


@pytest.mark.parametrize("is_general", [False, True])
def test_compiled_equals_interpreted(is_general: bool) -> None:
    problem = Problem(1, has_prior=is_general, has_label_kernel=is_general)
    n, n_labels = len(problem.gold), len(problem.names)
    results = []
    for function in (visit_block, visit_block.py_func):  # type: ignore[attr-defined]
        given = Given(
            np.array([-1 if code is None else code for code in problem.gold]),
            np.zeros((n, 0)) if problem.prior is None else problem.prior / 10,
            np.zeros((0, 0)) if problem.label_kernel is None else problem.label_kernel.astype(float),
        )
        whole = (np.zeros((n, n_labels), int) for _ in range(2))
        weights = Weights(np.zeros((n_labels, n)), np.zeros(n), *whole)
        mistakes = Mistakes(np.zeros((n, n_labels)), np.zeros(n))
        visits = function(problem.gram.astype(float), np.arange(n), given, weights, mistakes, 0)
        results.append([*(array.tolist() for array in (*weights, *mistakes)), visits])
    assert results[0] == results[1]
    assert any(results[0][5])
    sums = np.array([[1.0], [1.0 + 1e-13], [0.5]])
    assert best_label.py_func(sums, 0, np.zeros(0), 1.0) == best_label(sums, 0, np.zeros(0), 1.0) == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_gathered_from_any_layout(dtype: type) -> None:
    whole = np.random.default_rng(0).normal(size=(9, 12)).astype(dtype)
    columns = np.array([0, 3, 4])
    for tile in (whole, whole[2:6, 1:8], whole.T, whole[::2]):
        for function in (gather_columns, gather_columns.py_func):  # type: ignore[attr-defined]
            out = np.empty((len(tile), 3))
            function(tile, columns, out)
            assert (out == tile[:, columns]).all()


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("has_prior", [False, True])
@pytest.mark.parametrize("has_label_kernel", [False, True])
def test_scores_of_new_positions_follow_the_definition(average: bool, has_prior: bool, has_label_kernel: bool) -> None:
    problem = Problem(2, has_prior=has_prior, has_label_kernel=has_label_kernel)
    n, n_labels = len(problem.gold), len(problem.names)
    learner = LabelingPerceptron(rounds=4, average=average).fit(problem.operator(), problem.labels)
    draw = np.random.default_rng(5)
    between = draw.integers(-2, 4, size=(n, 5))
    tenths = np.array([draw.multinomial(10, np.ones(n_labels) / n_labels) for _ in range(5)])
    cross = DenseGram(
        between,
        problem.lengths,
        [2, 3],
        label_names=problem.names,
        row_prior=None if problem.prior is None else problem.prior / 10,
        col_prior=tenths / 10 if has_prior else None,
        label_kernel=problem.label_kernel,
    )
    alpha, mean, _ = problem.expected()
    exact = oracle.scores(
        [[Fraction(int(x)) for x in row] for row in between],
        mean if average else [[Fraction(x) for x in row] for row in alpha],
        problem.exact_prior(),
        [[Fraction(int(x), 10) for x in row] for row in tenths]
        if has_prior
        else [[Fraction(1, n_labels)] * n_labels] * 5,
        problem.exact_label_kernel(),
    )
    assert_close(learner.decision_scores(cross), np.array(exact, float))
    flat = [problem.names[oracle.lowest_argmax(row)] for row in exact]
    assert learner.predict(cross) == [flat[:2], flat[2:]]


def test_a_separable_problem_is_learnt() -> None:
    symbols = np.array([0, 1, 2, 0, 2, 1, 1, 0])
    gram = DenseGram((symbols[:, None] == symbols).astype(float), [3, 3, 2])
    labels = [["x", "y", "z"], ["x", "z", "y"], ["y", None]]
    learner = LabelingPerceptron().fit(gram, labels)
    assert learner.label_names_ == ("x", "y", "z")
    assert learner.mistakes_[-1] == 0
    cross = DenseGram((symbols[:, None] == np.array([2, 1, 0])).astype(float), [3, 3, 2], [1, 2])
    assert learner.predict(cross) == [["z"], ["y", "x"]]
    unknown = DenseGram(np.zeros((8, 2)), [3, 3, 2], [2])
    assert learner.predict(unknown) == [["x", "x"]]
    assert not learner.decision_scores(unknown).any()


def test_support_is_what_prediction_needs() -> None:
    problem = Problem(4)
    learner = LabelingPerceptron(rounds=4).fit(problem.operator(), problem.labels)
    rows = np.flatnonzero(learner.support())
    assert 0 < len(rows) < len(problem.gold)
    small = learner.restricted(rows)
    between = np.random.default_rng(0).normal(size=(len(problem.gold), 4))
    whole = learner.decision_scores(DenseGram(between, problem.lengths, [4], label_names=problem.names))
    part = small.decision_scores(DenseGram(between[rows], [len(rows)], [4], label_names=problem.names))
    assert_close(part, whole)


def test_the_state_is_plain_and_complete() -> None:
    problem = Problem(4, has_label_kernel=True)
    learner = LabelingPerceptron(rounds=4, average=True).fit(problem.operator(), problem.labels)
    attributes, arrays = learner.to_state()
    again = LabelingPerceptron.from_state(attributes, arrays)
    assert again.get_params() == learner.get_params()
    assert again.label_names_ == learner.label_names_
    assert again.mistakes_ == learner.mistakes_
    assert (again.average_alpha_ == learner.average_alpha_).all()
    assert (again.label_kernel_ == learner.label_kernel_).all()


def test_progress_is_told_every_round() -> None:
    problem = Problem(0)
    told: list[tuple[int, int]] = []
    learner = LabelingPerceptron(rounds=3, early_stop=False)
    learner.fit(problem.operator(), problem.labels, progress=lambda number, mistakes: told.append((number, mistakes)))
    assert told == list(enumerate(learner.mistakes_, 1))


def test_refusals_say_what_and_where() -> None:
    gram = DenseGram(np.eye(5), [2, 3], label_names=("x", "y"))
    learner = LabelingPerceptron()
    wrong_labels: list[tuple[Any, tuple[int | None, int | None], str]] = [
        ([["x", "y"]], (None, None), "there are 2 structures, but labels for 1"),
        ([["x", "y"], ["x", "y"]], (1, None), "2 labels for 3 positions"),
        ([["x", "y"], ["x", "y", "z"]], (1, 2), "the label 'z' is unknown to the Gram matrix, which knows x, y"),
        ([["x", "y"], [7, "y", "x"]], (1, 0), "the label is 7"),
        (["xy", "xyx"], (0, None), "'xy' is no list of labels"),
        *(([wrong, ["x", "y", "x"]], (0, None), "is no list of labels") for wrong in (7, iter("xy"), {"x", "y"})),
        ([None, [None, None, None]], (None, None), "no position has a label"),
    ]
    for labels, place, problem in wrong_labels:
        with pytest.raises(LabelError) as error:
            learner.fit(gram, labels)
        assert (error.value.structure, error.value.position) == place
        assert error.value.problem.endswith(problem)
    with pytest.raises(LabelError) as error:
        learner.fit(gram, [["x", "y"], ["x", "y", "z"]])
    assert str(error.value) == (
        "structure 1, position 2: the label 'z' is unknown to the Gram matrix, which knows x, y; "
        "build it from a corpus that has this label"
    )
    learner.fit(gram, [["x", "y"], None])
    with pytest.raises(LearnerError, match="same prior"):
        learner.predict(DenseGram(np.ones((5, 2)), [2, 3], [2], row_prior=np.full((5, 2), 0.5)))
    with pytest.raises(LabelError, match="prior of the Gram matrix has 3 columns, but there are 2 labels"):
        learner.fit(DenseGram(np.eye(2), [2], row_prior=np.full((2, 3), 1 / 3)), [["x", "y"]])


def test_scores_beyond_float64_are_refused() -> None:
    gram = DenseGram(np.full((3, 3), 1e308), [1, 1, 1], block_rows=1)
    with pytest.raises(LearnerError, match="lower c"):
        LabelingPerceptron(rounds=9).fit(gram, [["a"], ["b"], ["c"]])


def test_negative_entries_hide_no_tie_of_means():
    """Row 2 scores (-5 * -4 + -4 * 5) / 6 = 0 for both labels, in sixths that are not exact."""
    gram = DenseGram([[2, -3, 3], [-3, 5, -4], [3, -4, 5]], [1, 1, 1])
    model = LabelingPerceptron(rounds=2, average=True).fit(gram, [["a"], ["b"], ["b"]])
    assert np.rint(6 * model.average_alpha_).tolist() == [[0, 0], [-5, 5], [-4, 4]]
    assert model.predict(gram) == [["a"], ["b"], ["a"]]
