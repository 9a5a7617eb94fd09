"""The quadratic program of the constrained Z-score: margins of label paths, from inner products of their counts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, lstsq
from scipy.optimize import nnls
from scipy.sparse import csr_array, vstack

from gramline.learners.arrays import Codes, Floats, Mask
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.errors import ConvergenceError, LearnerParameterError
from gramline.learners.zscore.compressed_features import CompressedFeatures
from gramline.learners.zscore.emissions import solve_symmetric
from gramline.learners.zscore.transitions import reduce_transitions

LARGEST = 5000  # distinct positions: between them a dense matrix of 200 MB, and two more while it is made
CONTRADICTION = 1e-10  # squared distance of the convex hull of all r_k from 0, in squares of the shortest one
NEGLIGIBLE = 1e-8  # length of an r_k beside the longest one
WHOLE = -1  # the owner of the constraint on b*, which is a sum over all sequences
RowIndices = NDArray[np.intp]


class ScoreSystem:
    """(C* + ridge)^-1 from counts to scores, both flat: [D' distinct positions x n labels ; n x n transitions].

    Counts c represent the right-hand side F^T c, scores F E, so theta . d is the inner product of the scores of
    theta and the counts of d. Right-hand sides must be differences of paths: sums over labels are 0.
    """

    def __init__(self, features: csr_array, statistics: ChainStatistics, ridge: float, transition_ridge: float) -> None:
        n, compressed = statistics.n_labels, CompressedFeatures.of(features)
        n_distinct = len(compressed.row_sizes)
        if n_distinct > LARGEST:
            raise LearnerParameterError(
                f"iterative constraints are for at most {LARGEST} distinct training positions, got {n_distinct}",
                advice="use fewer structures or set constraints to none",
                key="constraints",
            )
        self.compressed, self.statistics, self.transition_ridge = compressed, statistics, transition_ridge
        self.size = n_distinct * n
        # H = F (F^T F / n + ridge)^-1 F^T = K (K / n + ridge)^-1 with K = F F^T
        products = (compressed.distinct @ compressed.distinct.T).toarray()
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
        excess = counts[self.size :].reshape(n, n)
        reduced = reduce_transitions(self.statistics, self.transition_ridge, self.ends.T @ scored, excess=excess)
        return np.concatenate([reduced.combined(scored).ravel(), reduced.transition.ravel()])

    def split(self, flat: Floats) -> tuple[Floats, Floats]:
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
        means = [np.repeat(self.compressed.row_sizes / n, n), np.full(n * n, self.statistics.n_transitions / n**2)]
        excess: Floats = np.asarray(self.right.sum(axis=0)) - np.concatenate(means)
        return np.where(np.abs(excess) > 1e-9, excess, 0.0)  # multiples of 1/n^2: less is rounding


class PathProgram:
    """The constraints theta . d_k >= 1 of a round and their Gram matrix; the first is b*."""

    def __init__(self, system: ScoreSystem) -> None:
        self.system = system
        self.counts = csr_array(system.excess()[None, :])  # d, one per row
        self.owners: RowIndices = np.array([WHOLE])  # the sequence of every constraint
        self.keys = [b"b*"]
        self.gram = np.zeros((0, 0))  # d_k^T (C* + ridge)^-1 d_l
        self._extend_gram()

    def exchange(self, is_active: Mask, differences: csr_array, sequences: RowIndices) -> bool:
        """Keep b* and what is active, add the differences of these sequences; False if the program has them all."""
        rows = differences[sequences]
        rows.eliminate_zeros()
        rows.sort_indices()
        keys = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in pairwise(rows.indptr)]
        first_row = {key: row for row, key in reversed([*enumerate(keys)])}  # equal differences are one constraint
        fresh = [row for row, key in enumerate(keys) if first_row[key] == row and key not in self.keys]
        if not fresh:
            return False
        kept = np.flatnonzero(is_active | (self.owners == WHOLE))
        self.counts = vstack([self.counts[kept], rows[fresh]], format="csr")
        self.owners = np.concatenate([self.owners[kept], sequences[fresh]])
        self.keys = [self.keys[k] for k in kept] + [keys[row] for row in fresh]
        self.gram = self.gram[np.ix_(kept, kept)]
        self._extend_gram()
        return True

    def sequences_of(self, contradiction: Floats) -> list[int]:
        """Sequences of the constraints that contradict each other; none if b* does, which is a sum over all."""
        owners = np.unique(self.owners[contradiction > 1e-6 * contradiction.max()]).tolist()
        return [] if WHOLE in owners else owners

    def _extend_gram(self) -> None:
        known = len(self.gram)
        full = np.empty((len(self.owners), len(self.owners)))
        full[:known, :known] = self.gram
        for k in range(known, len(full)):
            full[:, k] = np.asarray(self.counts @ self.system.solve(self.counts[[k]].toarray().ravel()))
            full[k, :k] = full[:k, k]
        self.gram = full


def least_distance(gram: Floats) -> tuple[Floats, bool]:
    """The shortest x with r_k . x >= 1 for all k, from the inner products r_k . r_l: multipliers, and True.

    x = sum lambda_k r_k, lambda >= 0 of shape (n,). Where no x will do: u of a contradiction, and False.
    Lawson and Hanson: the u >= 0 of least |sum u_k r_k|^2 + (1 - sum u_k)^2 gives lambda = u / (1 - sum u_k), unless
    sum u_k = 1: then sum u_k r_k = 0, and the constraints with u_k > 0 contradict each other. Here r_k are taken to
    length 1, which makes heights h_k of the ones. Cost O(n^3).
    """
    lengths = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    is_negligible = lengths <= NEGLIGIBLE * lengths.max()
    if is_negligible.any():
        return is_negligible.astype(np.float64), False
    scaled = gram / lengths / lengths[:, None]
    heights = lengths.min() / lengths
    values, vectors = eigh(scaled)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    try:
        shares, _ = nnls(np.vstack([root, heights]), np.append(np.zeros(len(gram)), 1.0), maxiter=30 * len(gram))
    except RuntimeError as error:
        raise ConvergenceError(
            f"non-negative least squares of {len(gram)} constraints did not converge: {error}", status="max_iterations"
        ) from None
    rest = 1.0 - heights @ shares
    if rest < CONTRADICTION:
        return shares / lengths, False
    multipliers = shares / rest
    # The root has lost half of the digits; a step of refinement gets them back.
    active = np.flatnonzero(multipliers)
    step = lstsq(scaled[np.ix_(active, active)], heights[active] - scaled[active] @ multipliers)[0]
    multipliers[active] = np.maximum(multipliers[active] + step, 0.0)
    return multipliers / (lengths * lengths.min()), True
