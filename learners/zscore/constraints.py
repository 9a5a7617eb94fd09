"""The Z-score with constraints: weights of least variance under which every training sequence is labelled right.

min theta^T (C* + ridge) theta / 2  s.t.  theta . b* >= 1 and theta . (phi(x, ybar) - phi(x, y)) >= 1 for every training
sequence x and each of its label paths y but the right one, ybar. Paths join the program as they are found to violate
it. It is solved in training scores: the weights themselves are found by the learner, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from gramline.learners.arrays import Codes, Floats
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import best_others, path_scores
from gramline.learners.errors import ConvergenceError, LearnerParameterError
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.least_distance import least_distance
from gramline.learners.zscore.compressed_features import CompressedFeatures
from gramline.learners.zscore.emissions import solve_symmetric
from gramline.learners.zscore.transitions import reduce_transitions

LARGEST = 5000  # distinct positions: between them a dense matrix of 200 MB, and two more while it is made
ROUNDING = 1e-4  # of a margin of 1, at most, in the dual program
NAMED = 5  # structures in a message
Indices = NDArray[np.intp]


class Outcome(Enum):
    """How the search for violated paths ended, each with advice."""

    SEPARATED = "separated"
    NOT_SEPARABLE = "not separable"
    MAX_ROUNDS = "max_rounds"
    STAGNATED = "stagnated"

    @property
    def advice(self) -> str:
        return _ADVICE[self]


_ADVICE = {
    Outcome.SEPARATED: "nothing to do",
    Outcome.NOT_SEPARABLE: "give features that tell them apart, or use constraints='none'",
    Outcome.MAX_ROUNDS: "raise max_rounds, lower the margin, or use constraints='none'",
    Outcome.STAGNATED: "rounding is in the way; lower the margin, raise the ridge, or use constraints='none'",
}


@dataclass(frozen=True, eq=False)
class Separation:
    """theta = (C* + ridge)^-1 [F^T targets ; excess]: the plain solution for another right-hand side than b*."""

    targets: Floats  # in place of Yc, shape (N, n)
    excess: Floats  # in place of B, shape (n, n)
    outcome: Outcome
    mistakes: list[int]  # sequences of which another path is as good as the right one or better, per round
    n_constraints: int  # of the last program, b* not counted
    contradiction: Sequence[int] = ()  # sequences that cannot be labelled right together, where they are known

    def require(self) -> None:
        """Raise ConvergenceError, with advice, unless all margins are kept."""
        if self.outcome is Outcome.SEPARATED:
            return
        found = f"{self.outcome.value} after {len(self.mistakes)} rounds, {self.n_constraints} constraints"
        if self.outcome is not Outcome.NOT_SEPARABLE:
            raise ConvergenceError(
                f"the Z-score's constraints did not converge ({found}, {self.mistakes[-1]} training structures not "
                f"labelled right): {self.outcome.advice}"
            )
        named = ", ".join(map(str, self.contradiction[:NAMED])) + (", ..." if len(self.contradiction) > NAMED else "")
        who = f"the training structures {named} (counted from 0)" if named else "the training structures"
        raise ConvergenceError(f"no weights label {who} right ({found}): {self.outcome.advice}")


def separate(
    features: csr_array,
    statistics: ChainStatistics,
    ridge: float,
    transition_ridge: float,
    margin: float,
    max_rounds: int,
) -> Separation:
    """Solve, add the best wrong path of every sequence whose margin is below `margin`, and so on until there is none.

    margin = 1 is the optimum under all paths; less ends sooner, near it, with all sequences labelled right. The first
    round has the weights of the plain Z-score, scaled to theta . b* = 1. Paths whose constraint is not active
    leave; the objective grows from round to round, so none returns for ever.
    """
    n = statistics.n_labels
    if n == 1:  # there are no wrong paths, and b* = 0
        return Separation(np.zeros((len(statistics.codes), 1)), np.zeros((1, 1)), Outcome.SEPARATED, [0], 0)
    system = _ScoreSystem(features, statistics, ridge, transition_ridge)
    program = _Program(system)
    combined, mistakes = np.zeros(system.size + n * n), list[int]()
    outcome, contradiction = Outcome.MAX_ROUNDS, list[int]()
    with one_blas_thread():  # a second thread gains nothing in programs of some hundred constraints
        while len(mistakes) < max_rounds:
            multipliers, is_solved = least_distance(program.gram)
            if not is_solved:
                outcome, contradiction = Outcome.NOT_SEPARABLE, program.sequences(multipliers)
                break
            combined = np.asarray(program.counts.T @ multipliers)
            scores, transition = system.parts(system.solve(combined))
            others, reached = best_others(scores, transition, statistics.starts, statistics.codes)
            margins = path_scores(scores, transition, statistics.starts, statistics.codes) - reached
            mistakes.append(int((margins <= 0).sum()))
            violated = np.flatnonzero(margins < margin * (1.0 - ROUNDING))
            if len(violated) == 0:
                outcome = Outcome.SEPARATED
                break
            if not program.exchange(multipliers > 0, system.right - system.path_counts(others), violated):
                outcome = Outcome.STAGNATED
                break
    targets, excess = system.parts(combined)
    spread = targets / system.compressed.row_sizes[system.compressed.row_group][:, None]
    return Separation(spread, excess, outcome, mistakes, len(program.owners) - 1, contradiction)


class _ScoreSystem:
    """(C* + ridge)^-1 from counts to scores, both flat: [D' distinct positions x n labels ; n x n transitions].

    Counts c stand for the right-hand side F^T c, scores for F E, so theta . d is the inner product of the scores of
    theta and the counts of d. Right-hand sides must be differences of paths: sums over labels are 0.
    """

    def __init__(self, features: csr_array, statistics: ChainStatistics, ridge: float, transition_ridge: float) -> None:
        n, compressed = statistics.n_labels, CompressedFeatures.of(features)
        n_distinct = len(compressed.row_sizes)
        if n_distinct > LARGEST:
            raise LearnerParameterError(
                f"constraints='iterative' is for at most {LARGEST} distinct training positions, got {n_distinct}; "
                "use fewer structures or constraints='none'"
            )
        self.compressed, self.statistics, self.transition_ridge = compressed, statistics, transition_ridge
        self.size = n_distinct * n
        # H = F (F^T F / n + ridge)^-1 F^T = K (K / n + ridge)^-1 with K = F F^T
        products = (compressed.shared @ compressed.shared.T).toarray()
        products[np.diag_indices(n_distinct)] += compressed.lonely_squares
        scales = 1.0 / np.sqrt(compressed.row_sizes)
        self.overlap = scales[:, None] * solve_symmetric(products / n, products, ridge) * scales
        self.ends = np.zeros((n_distinct, 2))  # [s_in | s_out]
        np.add.at(self.ends, compressed.row_group, np.column_stack([statistics.is_in, statistics.is_out]))
        self.scored_ends = self.overlap @ self.ends
        self.right = self.path_counts(statistics.codes)

    def solve(self, counts: Floats) -> Floats:
        """Scores of (C* + ridge)^-1 counts."""
        n = self.statistics.n_labels
        weights = counts[: self.size].reshape(-1, n)
        used = np.flatnonzero(weights.any(axis=1))
        scored = np.hstack([self.overlap[:, used] @ weights[used], self.scored_ends])
        reduced = reduce_transitions(
            self.statistics,
            self.transition_ridge,
            self.ends.T @ scored,
            excess=counts[self.size :].reshape(n, n),
        )
        return np.concatenate([reduced.combined(scored).ravel(), reduced.transition.ravel()])

    def parts(self, flat: Floats) -> tuple[Floats, Floats]:
        """Values of all N positions, shape (N, n), and of transitions, shape (n, n)."""
        n = self.statistics.n_labels
        return flat[: self.size].reshape(-1, n)[self.compressed.row_group], flat[self.size :].reshape(n, n)

    def path_counts(self, path: Codes) -> csr_array:
        """Counts of phi for one path of every sequence, shape (n_sequences, D' n + n^2)."""
        n, starts, inner = self.statistics.n_labels, self.statistics.starts, np.flatnonzero(self.statistics.is_in)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        columns = [self.compressed.row_group * n + path, self.size + path[inner - 1] * n + path[inner]]
        places = np.concatenate([owner, owner[inner]]), np.concatenate(columns)
        return csr_array((np.ones(len(places[0])), places), shape=(len(starts) - 1, self.size + n * n))

    def excess(self) -> Floats:
        """Counts of b*: those of the right paths without the mean over all paths."""
        n = self.statistics.n_labels
        means = [
            np.repeat(self.compressed.row_sizes / n, n),
            np.full(n * n, self.statistics.n_transitions / n**2),
        ]
        found: Floats = np.asarray(self.right.sum(axis=0)) - np.concatenate(means)
        return np.where(np.abs(found) > 1e-9, found, 0.0)  # multiples of 1/n^2: less is rounding


class _Program:
    """The constraints theta . d_k >= 1 of a round and their Gram matrix; the first is b*."""

    def __init__(self, system: _ScoreSystem) -> None:
        self.system = system
        self.counts = csr_array(system.excess()[None, :])  # d, one per row
        self.owners: Indices = np.array([-1])  # the sequence of every constraint
        self.keys = [b"b*"]
        self.gram = np.zeros((0, 0))  # d_k^T (C* + ridge)^-1 d_l
        self._extend()

    def exchange(self, kept: NDArray[np.bool_], found: csr_array, sequences: Indices) -> bool:
        """Keep b* and what is active, add the differences found in these sequences; False if they are all there."""
        found = found[sequences]
        found.eliminate_zeros()
        found.sort_indices()
        keys = [found.indices[a:b].tobytes() + found.data[a:b].tobytes() for a, b in pairwise(found.indptr)]
        first: dict[bytes, int] = {}  # equal differences of several sequences are one constraint
        for row, key in enumerate(keys):
            if key not in self.keys:
                first.setdefault(key, row)
        fresh = list(first.values())
        if not fresh:
            return False
        kept[0] = True
        stay = np.flatnonzero(kept)
        self.counts = vstack([self.counts[stay], found[fresh]], format="csr")
        self.owners = np.concatenate([self.owners[stay], sequences[fresh]])
        self.keys = [self.keys[k] for k in stay] + [keys[row] for row in fresh]
        self.gram = self.gram[np.ix_(stay, stay)]
        self._extend()
        return True

    def _extend(self) -> None:
        known = len(self.gram)
        full = np.empty((len(self.owners), len(self.owners)))
        full[:known, :known] = self.gram
        for k in range(known, len(full)):
            full[:, k] = np.asarray(self.counts @ self.system.solve(self.counts[[k]].toarray().ravel()))
            full[k, :k] = full[:k, k]
        self.gram = full

    def sequences(self, contradiction: Floats) -> list[int]:
        """Sequences of the constraints that contradict each other; none if b* does, which is a sum over all."""
        owners = np.unique(self.owners[contradiction > 1e-6 * contradiction.max()]).tolist()
        return [] if -1 in owners else owners
