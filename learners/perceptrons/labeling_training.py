"""Rounds of the labeling perceptron over one Gram, for any number of problems at once.

A problem is a set of gold labels: folds of a cross-validation hold out different structures by leaving out their
labels. Problems never see each other; they only share the tiles, each of which is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Indices, Matrix, Tile, WideCodes
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.labeling_loops import Given, Mistakes, Weights, gather_columns, visit_block


@dataclass
class RoundState:
    """Everything the rounds of one problem carry along, for all rows."""

    given: Given
    weights: Weights
    visit: int = 0

    @classmethod
    def start(cls, gram: GramOperator, gold: WideCodes, n_labels: int) -> RoundState:
        n_rows = gram.shape[0]
        given = Given(
            gold=gold,
            prior=np.zeros((n_rows, 0)) if gram.row_prior is None else np.ascontiguousarray(gram.row_prior),
            label_kernel=np.zeros((0, 0)) if gram.label_kernel is None else np.ascontiguousarray(gram.label_kernel),
        )
        weights = Weights(
            sums=np.zeros((n_labels, n_rows)),
            magnitudes=np.zeros(n_rows),
            alpha=np.zeros((n_rows, n_labels), np.int64),
            lag=np.zeros((n_rows, n_labels), np.int64),
        )
        return cls(given, weights)

    @property
    def n_visits(self) -> int:
        """Visits of one round."""
        return int(np.count_nonzero(self.given.gold >= 0))

    def average(self, rounds: int) -> Matrix:
        """Mean of A after each visit of `rounds` rounds; rounds not run for lack of mistakes count as well."""
        return self.weights.alpha - self.weights.lag / (rounds * self.n_visits)

    def visit_block(self, rows: slice, tile: Tile) -> _Update:
        """The sequential pass inside the diagonal tile."""
        n, n_labels = len(tile), len(self.weights.sums)
        gold, prior, label_kernel = self.given
        sums, magnitudes, alpha, lag = self.weights
        own = Weights(np.ascontiguousarray(sums[:, rows]), magnitudes[rows], alpha[rows], lag[rows])
        mistakes = Mistakes(np.zeros((n, n_labels)), np.zeros(n, np.bool_))
        self.visit = visit_block(tile, Given(gold[rows], prior[rows], label_kernel), own, mistakes, self.visit)
        sums[:, rows] = own.sums
        wrong = np.flatnonzero(mistakes.is_wrong)
        return _Update(self, wrong, mistakes.change[wrong])

    def check(self) -> None:
        is_finite = np.isfinite(self.weights.magnitudes)
        if not is_finite.all():
            row = int(np.flatnonzero(~is_finite)[0])
            raise LearnerError(f"the scores of row {row} leave the range of float64; lower c of the kernel")


def run_round(gram: GramOperator, problems: Sequence[RoundState]) -> list[int]:
    """Visit every block once for every problem; returns the mistakes of each."""
    mistakes = [0] * len(problems)
    layout = gram.layout.rows
    # The products are thin and tiles are read beside them: more BLAS threads wait for each other longer than they
    # compute (on two busy cores 20 ms instead of 0.8 ms a tile).
    with one_blas_thread():
        for block in range(layout.n_blocks):
            tile = np.ascontiguousarray(gram.tile(block, block))
            updates = [problem.visit_block(layout.rows(block), tile) for problem in problems]
            for number, update in enumerate(updates):
                mistakes[number] += len(update.wrong)
            _push(gram, block, [update for update in updates if len(update.wrong)])
    for problem in problems:
        problem.check()
    return mistakes


class _Update(NamedTuple):
    """What a visit to a block changed of one problem."""

    problem: RoundState
    wrong: Indices  # mistaken positions
    change: Matrix  # their rows of delta(W ky), shape (n_wrong, n_labels)


def _push(gram: GramOperator, block: int, updates: Sequence[_Update]) -> None:
    """Bring the updates of one block to the rows of all others: one matrix product per tile for all problems."""
    if not updates:
        return
    layout = gram.layout.rows
    wrong = updates[0].wrong if len(updates) == 1 else np.unique(np.concatenate([update.wrong for update in updates]))
    touched = [np.flatnonzero(update.change.any(axis=0)) for update in updates]
    ends = np.cumsum([len(labels) for labels in touched])
    steps = np.zeros((ends[-1], len(wrong)))  # the touched labels of every problem, one below the other
    largest = np.zeros((len(updates), len(wrong)))
    for k, (update, labels) in enumerate(zip(updates, touched, strict=True)):
        place = np.searchsorted(wrong, update.wrong)
        steps[ends[k] - len(labels) : ends[k], place] = update.change[:, labels].T
        largest[k, place] = np.abs(update.change).max(axis=1)
    others = [other for other in range(layout.n_blocks) if other != block]
    for other, tile in gram.column_blocks(block, others):
        columns = _columns(tile, wrong)
        rows = layout.rows(other)
        with np.errstate(over="ignore", invalid="ignore"):  # refused at the end of the round, with the row
            sums = steps @ columns
            magnitudes = largest @ np.abs(columns)
            for k, (update, labels) in enumerate(zip(updates, touched, strict=True)):
                update.problem.weights.sums[labels, rows] += sums[ends[k] - len(labels) : ends[k]]
                update.problem.weights.magnitudes[rows] += magnitudes[k]


def _columns(tile: Tile, wrong: Indices) -> Matrix:
    """tile[:, wrong]^T as float64, gathered along the contiguous axis: a mirrored tile is a transposed view."""
    if tile.flags.f_contiguous:
        return tile.T[wrong].astype(np.float64, copy=False)
    gathered = np.empty((len(tile), len(wrong)))
    gather_columns(tile, wrong, gathered)
    return gathered.T
