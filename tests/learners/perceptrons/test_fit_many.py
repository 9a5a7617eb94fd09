"""Many perceptrons in one pass over the tiles: the same as one after another, for the reads of the longest."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron

LENGTHS = [3, 1, 4, 2, 5, 3, 2, 4]


class CountingGram(DenseGram):
    """Counts tile reads of training and passes of prediction."""

    reads = 0
    passes = 0

    def tile(self, i: int, j: int) -> NDArray[np.float64]:
        self.reads += 1
        return super().tile(i, j)

    def matmul(self, W: NDArray[np.float64], *, transpose: bool = False) -> NDArray[np.float64]:
        self.passes += 1
        return super().matmul(W, transpose=transpose)


def problem(seed: int, with_prior: bool) -> tuple[CountingGram, list[list[str | None]]]:
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 3, (sum(LENGTHS), 4)).astype(float)
    prior = rng.dirichlet(np.ones(3), sum(LENGTHS)) if with_prior else None
    gram = CountingGram(points @ points.T, LENGTHS, label_names=list("abc"), row_prior=prior, block_rows=6)
    return gram, [[str(label) for label in rng.choice(list("abc"), n)] for n in LENGTHS]


@pytest.mark.parametrize(("seed", "with_prior"), list(product(range(4), [False, True])))
def test_together_equals_one_after_another(seed: int, with_prior: bool) -> None:
    gram, labels = problem(seed, with_prior)
    settings = list(product([1, 2, 7], [False, True], [False, True]))
    folds = [[None if k % 3 == fold else labels[k] for k in range(len(labels))] for fold in range(3)]
    pairs = [(LabelingPerceptron(*setting), fold) for fold in folds for setting in settings]
    together = [learner for learner, _ in pairs]
    predictions = LabelingPerceptron.fit_many(together, gram, [fold for _, fold in pairs])
    for fitted, (learner, fold), predicted in zip(together, pairs, predictions, strict=True):
        alone = LabelingPerceptron(**learner.get_params()).fit(gram, fold)
        assert np.array_equal(fitted.alpha_, alone.alpha_)
        assert np.allclose(fitted.average_alpha_, alone.average_alpha_, rtol=1e-14, atol=1e-14)
        assert fitted.mistakes_ == alone.mistakes_
        assert predicted == alone.predict(gram)


def test_labels_that_are_held_out_change_no_weight() -> None:
    gram, labels = problem(5, False)
    held_out = [None, *labels[1:]]
    alone, beside = LabelingPerceptron(3), LabelingPerceptron(3)
    LabelingPerceptron.fit_many([alone], gram, [held_out])
    # another problem that does train on the first structure, with other labels, must not leak into the first one
    other = LabelingPerceptron(3)
    LabelingPerceptron.fit_many([other, beside], gram, [[["c"] * LENGTHS[0], *labels[1:]], held_out])
    assert np.array_equal(alone.alpha_, beside.alpha_)
    assert not alone.alpha_[: LENGTHS[0]].any()
    assert not np.array_equal(other.alpha_, alone.alpha_)


def test_forty_problems_read_no_more_tiles_than_the_hungriest_one_and_the_union_of_pushes() -> None:
    gram, labels = problem(6, False)
    n_blocks = gram.layout.rows.n_blocks
    folds = [[None if k % 5 == fold else labels[k] for k in range(len(labels))] for fold in range(5)]
    learners = [LabelingPerceptron(rounds) for _ in folds for rounds in range(1, 9)]
    LabelingPerceptron.fit_many(learners, gram, [fold for fold in folds for _ in range(8)])
    rounds = max(learner.rounds_run_ for learner in learners)
    assert gram.reads <= rounds * n_blocks + rounds * n_blocks * (n_blocks - 1)
    assert gram.passes == 1
