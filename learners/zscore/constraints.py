"""The Z-score with constraints: weights of least variance under which every training sequence is labelled right.

min theta^T (C* + ridge) theta / 2  s.t.  theta . b* >= 1 and theta . (phi(x, ybar) - phi(x, y)) >= 1 for every training
sequence x and each of its label paths y but the right one, ybar. A path joins the program in the round in which it
violates its constraint. The program is solved in training scores; the learner computes the weights once, at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from gramline.learners.arrays import Floats
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import best_others, path_scores
from gramline.learners.errors import ConvergenceError, Outcome
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.zscore.path_program import PathProgram, ScoreSystem, least_distance

ROUNDING = 1e-4  # of a margin of 1, at most, in the dual program
NAMED = 5  # structures in a message


class SearchOutcome(Outcome):
    """How the search for violated paths ended."""

    SEPARATED = "separated", "nothing to do"
    NOT_SEPARABLE = "not separable", "give features that tell them apart, or set constraints to none"
    MAX_ROUNDS = "max_rounds", "raise max_rounds, lower the margin, or set constraints to none"
    STAGNATED = "stagnated", "rounding is in the way; lower the margin, raise the ridge, or set constraints to none"


@dataclass(frozen=True, eq=False)
class Separation:
    """theta = (C* + ridge)^-1 [F^T targets ; excess]: the plain solution for another right-hand side than b*."""

    targets: Floats  # in place of Yc, shape (N, n)
    excess: Floats  # in place of B, shape (n, n)
    outcome: SearchOutcome
    mistakes: list[int]  # sequences of which another path is as good as the right one or better, per round
    n_constraints: int  # of the last program, b* not counted
    contradiction: Sequence[int] = ()  # sequences that cannot be labelled right together, where they are known

    def require(self) -> None:
        """Raise ConvergenceError, with advice, unless all margins are kept."""
        if self.outcome is SearchOutcome.SEPARATED:
            return
        ending = f"{self.outcome.value} after {len(self.mistakes)} rounds, {self.n_constraints} constraints"
        if self.outcome is SearchOutcome.NOT_SEPARABLE:
            names = ", ".join(map(str, self.contradiction[:NAMED]))
            names += ", ..." if len(self.contradiction) > NAMED else ""
            structures = f"the training structures {names} (counted from 0)" if names else "the training structures"
            problem = f"no weights label {structures} right ({ending})"
        else:
            problem = (
                f"the Z-score's constraints did not converge ({ending}, {self.mistakes[-1]} training structures not "
                "labelled right)"
            )
        raise ConvergenceError(
            problem,
            advice=self.outcome.advice,
            status=self.outcome.value,
            iterations=len(self.mistakes),
            structures=self.contradiction,
        )


def separate(
    features: csr_array,
    statistics: ChainStatistics,
    ridge: float,
    transition_ridge: float,
    margin: float,
    max_rounds: int,
) -> Separation:
    """Solve, add the best wrong path of every sequence whose margin is below `margin`, and repeat until none is.

    margin = 1 is the optimum under all paths; less ends sooner, near it, with all sequences labelled right. The first
    round has the weights of the plain Z-score, scaled to theta . b* = 1. Paths whose constraint is not active
    leave; the objective grows from round to round, so none returns for ever.
    """
    n, starts, codes = statistics.n_labels, statistics.starts, statistics.codes
    if n == 1:  # there are no wrong paths, and b* = 0
        return Separation(np.zeros((len(codes), 1)), np.zeros((1, 1)), SearchOutcome.SEPARATED, [0], 0)
    system = ScoreSystem(features, statistics, ridge, transition_ridge)
    program = PathProgram(system)
    counts = np.zeros(system.size + n * n)
    mistakes: list[int] = []
    contradiction: list[int] = []
    outcome = SearchOutcome.MAX_ROUNDS
    with one_blas_thread():  # a second thread gains nothing in programs of some hundred constraints
        while len(mistakes) < max_rounds:
            multipliers, is_feasible = least_distance(program.gram)
            if not is_feasible:
                outcome, contradiction = SearchOutcome.NOT_SEPARABLE, program.sequences_of(multipliers)
                break
            counts = np.asarray(program.counts.T @ multipliers)
            scores, transition = system.split(system.solve(counts))
            wrong_paths, wrong_scores = best_others(scores, transition, starts, codes)
            margins = path_scores(scores, transition, starts, codes) - wrong_scores
            mistakes.append(int((margins <= 0).sum()))
            violated = np.flatnonzero(margins < margin * (1.0 - ROUNDING))
            if len(violated) == 0:
                outcome = SearchOutcome.SEPARATED
                break
            if not program.exchange(multipliers > 0, system.right - system.path_counts(wrong_paths), violated):
                outcome = SearchOutcome.STAGNATED
                break
    targets, excess = system.split(counts)
    targets = targets / system.compressed.row_sizes[system.compressed.row_group][:, None]
    return Separation(targets, excess, outcome, mistakes, len(program.owners) - 1, contradiction)
