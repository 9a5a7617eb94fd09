"""Rounds of the labeling perceptron over one Gram, for any number of problems at once.

A problem is a set of gold labels: folds of a cross-validation hold out different structures by leaving out their
labels. Problems never see each other; they only share the tiles, each of which is read or computed once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Matrix, WideCodes
from gramline.learners.chains.positions import Given
from gramline.learners.checkpoints import State, number
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.lazy_scores import Change, LazyScores, Visit
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.orders import AHEAD
from gramline.learners.operators.packets import Scores
from gramline.learners.perceptrons.changed_weights import ChangedWeights
from gramline.learners.perceptrons.labeling_loops import Mistakes, Weights, visit_block


@dataclass
class RoundState:
    """Everything the rounds of one problem carry along besides its scores."""

    given: Given
    weights: ChangedWeights
    visit: int = 0
    mistakes: int = 0  # of the round that runs

    @classmethod
    def start(cls, gram: GramOperator, gold: WideCodes, n_labels: int) -> RoundState:
        return cls(Given.of(gram, gold), ChangedWeights(gram.shape[0], n_labels))

    @property
    def n_labels(self) -> int:
        return self.weights.n_labels

    @property
    def n_visits(self) -> int:
        """Visits of one round."""
        return int(np.count_nonzero(self.given.gold >= 0))

    def average(self, rounds: int) -> Matrix:
        """Mean of A after each visit of `rounds` rounds; rounds not run for lack of mistakes count as well."""
        return self.weights.average(rounds * self.n_visits)

    def state(self) -> State:
        return {
            "alpha": self.weights.alpha(),
            "lag": self.weights.lag(),
            "visit": number(self.visit),
            "mistakes": number(self.mistakes),
        }

    def resume(self, state: State) -> None:
        self.weights = ChangedWeights.of(state["alpha"], state["lag"])
        self.visit, self.mistakes = int(state["visit"]), int(state["mistakes"])

    def visit_block(self, positions: slice, visit: Visit, scores: Scores) -> tuple[Change | None, int]:
        """The sequential pass over the positions of a block: what it changed, and the mistakes."""
        n_rows = len(visit.tile)
        mistakes = Mistakes(np.zeros((n_rows, self.n_labels)), np.zeros(n_rows))
        given = self.given.part(positions)
        alpha, lag = np.zeros((2, len(given.gold), self.n_labels), np.int64)
        weights = Weights(*scores, alpha, lag)
        self.visit, n_wrong = visit_block(visit.tile, visit.local, given, weights, mistakes, self.visit)
        wrong = np.flatnonzero(alpha.any(axis=1))
        self.weights.add(positions.start + wrong, alpha[wrong], lag[wrong])
        rows = np.flatnonzero(mistakes.sizes)
        return Change(rows, mistakes.change[rows], mistakes.sizes[rows]) if len(rows) else None, n_wrong


class RoundSpan(NamedTuple):
    """What a round goes over: all blocks, or what an interrupted one had left; and whether another one follows."""

    first_block: int = 0
    is_last: bool = False


def run_round(
    gram: GramOperator,
    scores: LazyScores,
    problems: Sequence[tuple[int, RoundState]],
    span: RoundSpan,
    visited: Callable[[int], None] = lambda _next_block: None,
) -> list[int]:
    """Visit every block once for every problem that still trains, given with its number; the mistakes of each.

    `visited` is told the next block after every other one.
    """
    layout = gram.layout.rows
    numbers = [number for number, _ in problems]
    for _, problem in problems:
        problem.mistakes = problem.mistakes if span.first_block else 0
    # The products are thin and tiles are read beside them: more BLAS threads wait for each other longer than they
    # compute (on two busy cores 20 ms instead of 0.8 ms a tile).
    with one_blas_thread():
        for block in range(span.first_block, layout.n_blocks):
            positions = layout.rows(block)
            visit = scores.enter(positions, numbers, layout.rows_after(block, AHEAD, is_last=span.is_last))
            changes: list[Change | None] = []
            for place, (_, problem) in enumerate(problems):
                change, n_wrong = problem.visit_block(positions, visit, visit.scores[place])
                changes.append(change)
                problem.mistakes += n_wrong
            scores.leave(visit, changes)
            if block + 1 < layout.n_blocks:
                visited(block + 1)
    scores.check()
    return [problem.mistakes for _, problem in problems]
