"""Rounds of the labeling perceptron over one Gram, for any number of problems at once.

A problem is a set of gold labels: folds of a cross-validation hold out different structures by leaving out their
labels. Problems never see each other; they only share the tiles, each of which is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Matrix, WideCodes
from gramline.learners.errors import LearnerError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.labeling_loops import gather_columns, visit_block

Tile = NDArray[np.floating]


@dataclass
class Training:
    """Everything the rounds of one problem carry along; the sums are kept for all rows."""

    gold: WideCodes  # shape (n_rows,), negative where missing
    prior: Matrix  # shape (n_rows, n_labels); (n_rows, 0) when uniform
    label_kernel: Matrix  # shape (n_labels, n_labels); (0, 0) for the identity
    sums: Matrix  # (G W ky)^T without the uniform factor, shape (n_labels, n_rows)
    magnitudes: Matrix  # shape (n_rows,)
    alpha: NDArray[np.int64]  # A, shape (n_rows, n_labels)
    lag: NDArray[np.int64]  # sum over updates of (visit - 1) * update, shape (n_rows, n_labels)
    visit: int = 0

    @classmethod
    def start(cls, gram: GramOperator, gold: WideCodes, n_labels: int) -> Training:
        n_rows = gram.shape[0]
        return cls(
            gold=gold,
            prior=np.zeros((n_rows, 0)) if gram.row_prior is None else np.ascontiguousarray(gram.row_prior),
            label_kernel=np.zeros((0, 0)) if gram.label_kernel is None else np.ascontiguousarray(gram.label_kernel),
            sums=np.zeros((n_labels, n_rows)),
            magnitudes=np.zeros(n_rows),
            alpha=np.zeros((n_rows, n_labels), np.int64),
            lag=np.zeros((n_rows, n_labels), np.int64),
        )

    @property
    def n_visits(self) -> int:
        """Visits of one round."""
        return int(np.count_nonzero(self.gold >= 0))

    def average(self, rounds: int) -> Matrix:
        """Mean of A after each visit of `rounds` rounds; rounds not run for lack of mistakes count as well."""
        return self.alpha - self.lag / (rounds * self.n_visits)

    def visit_block(self, rows: slice, tile: Tile) -> tuple[NDArray[np.int64], Matrix]:
        """The sequential pass inside the diagonal tile: (mistaken positions, their rows of delta(W ky))."""
        n, n_labels = len(tile), len(self.sums)
        sums = np.ascontiguousarray(self.sums[:, rows])
        change = np.zeros((n, n_labels))
        is_wrong = np.zeros(n, np.bool_)
        self.visit = visit_block(
            tile,
            self.gold[rows],
            self.prior[rows],
            self.label_kernel,
            sums,
            self.magnitudes[rows],
            self.alpha[rows],
            self.lag[rows],
            change,
            is_wrong,
            self.visit,
        )
        self.sums[:, rows] = sums
        wrong = np.flatnonzero(is_wrong)
        return wrong, change[wrong]

    def check(self) -> None:
        if not np.isfinite(self.magnitudes).all():
            row = int(np.flatnonzero(~np.isfinite(self.magnitudes))[0])
            raise LearnerError(f"the scores of row {row} leave the range of float64; lower c of the kernel")


def run_round(gram: GramOperator, problems: Sequence[Training]) -> list[int]:
    """Visit every block once for every problem; returns the mistakes of each."""
    mistakes = [0] * len(problems)
    layout = gram.layout.rows
    # The products are thin and tiles are read beside them: more BLAS threads wait for each other longer than they
    # compute (on two busy cores 20 ms instead of 0.8 ms a tile).
    with one_blas_thread():
        for block in range(layout.n_blocks):
            tile = np.ascontiguousarray(gram.tile(block, block))
            updates = _Updates(layout.rows(block))
            for number, problem in enumerate(problems):
                wrong, change = problem.visit_block(updates.rows, tile)
                mistakes[number] += len(wrong)
                if len(wrong):
                    updates.add(problem, wrong, change)
            if updates.problems:
                updates.push(gram, block)
    for problem in problems:
        problem.check()
    return mistakes


class _Updates:
    """What the visits to one block changed, of all problems, stacked for one matrix product per tile."""

    def __init__(self, rows: slice) -> None:
        self.rows = rows
        self.problems: list[Training] = []
        self._wrong: list[NDArray[np.int64]] = []
        self._change: list[Matrix] = []

    def add(self, problem: Training, wrong: NDArray[np.int64], change: Matrix) -> None:
        self.problems.append(problem)
        self._wrong.append(wrong)
        self._change.append(change)

    def push(self, gram: GramOperator, block: int) -> None:
        """Bring the updates of one block to the rows of all others."""
        layout = gram.layout.rows
        wrong = self._wrong[0] if len(self._wrong) == 1 else np.unique(np.concatenate(self._wrong))
        touched = [np.flatnonzero(change.any(axis=0)) for change in self._change]
        ends = np.cumsum([len(labels) for labels in touched])
        steps = np.zeros((ends[-1], len(wrong)))  # the touched labels of every problem, one below the other
        largest = np.zeros((len(self.problems), len(wrong)))
        for k, (own, labels, change) in enumerate(zip(self._wrong, touched, self._change, strict=True)):
            place = np.searchsorted(wrong, own)
            steps[ends[k] - len(labels) : ends[k], place] = change[:, labels].T
            largest[k, place] = np.abs(change).max(axis=1)
        others = [other for other in range(layout.n_blocks) if other != block]
        for other, tile in gram.column_blocks(block, others):
            columns = _columns(tile, wrong)
            rows = layout.rows(other)
            with np.errstate(over="ignore", invalid="ignore"):  # told at the end of the round, with the row
                sums = steps @ columns
                magnitudes = largest @ np.abs(columns)
                for k, (problem, labels) in enumerate(zip(self.problems, touched, strict=True)):
                    problem.sums[labels, rows] += sums[ends[k] - len(labels) : ends[k]]
                    problem.magnitudes[rows] += magnitudes[k]


def _columns(tile: Tile, wrong: NDArray[np.int64]) -> Matrix:
    """tile[:, wrong]^T as float64, gathered along the contiguous axis: a mirrored tile is a transposed view."""
    if tile.flags.f_contiguous:
        return tile.T[wrong].astype(np.float64, copy=False)
    gathered = np.empty((len(tile), len(wrong)))
    gather_columns(tile, wrong, gathered)
    return gathered.T
