"""One training set of the kernel Z-score on a Gram matrix: its right-hand sides, and scores from its solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Floats, Indices
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.estimator import Unlabeled
from gramline.learners.labels import Labels, encode_labels
from gramline.learners.linear_algebra.conjugate_gradient import Solution
from gramline.learners.operators.operator import GramOperator
from gramline.learners.token_features import labeled_structures
from gramline.learners.zscore.transitions import ChainSolution, reduce_transitions

CANCELLED = 1e-3  # scores this small beside what they are a difference of are computed by a product instead
ROUNDING = 1e-12  # of sums, relative to the sum of absolute values


@dataclass(eq=False)
class ReducedSolution:
    """The solution for one ridge with its transitions."""

    solution: Solution
    chain: ChainSolution  # A, G A and T
    interaction: Floats  # gamma
    is_vague: bool  # the scores are a difference of much larger numbers
    rounding: float = 0.0  # of the gain theta . b*


@dataclass(frozen=True, eq=False)
class KernelProblem:
    """The labels of the rows of a Gram that take part in the training."""

    statistics: ChainStatistics
    rows: Indices  # rows of the Gram that take part
    n_rows: int
    names: tuple[str, ...]
    sides: Floats  # [Yc | s_in | s_out]

    @classmethod
    def of(cls, gram: GramOperator, labels: Labels, unlabeled: Unlabeled) -> KernelProblem:
        codes, names = encode_labels(gram, labels)
        layout = gram.layout.rows
        complete = labeled_structures(codes.astype(np.int32), layout.structure_starts, unlabeled)
        rows = np.flatnonzero(np.repeat(complete, layout.lengths))
        starts = offsets_from_lengths(layout.lengths[complete])
        statistics = ChainStatistics(codes[rows].astype(np.int32), starts, len(names))
        return cls(statistics, rows, len(codes), names, statistics.right_hand_sides())

    def reduced(self, ridge: float, transition_ridge: float, solution: Solution) -> ReducedSolution:
        """With its transitions and scores; G X = n (sides - ridge X) needs no further product."""
        n = self.statistics.n_labels
        scored = -ridge * solution.value
        scored += self.sides  # in place: a block is as long as the corpus
        scored *= n
        reduced = reduce_transitions(self.statistics, transition_ridge, self.sides[:, n:].T @ scored)
        chain = reduced.solution(solution.value, scored)
        least = CANCELLED * n * ridge * np.abs(chain.weights).max(initial=0.0)
        is_vague = bool(np.abs(chain.scores).max(initial=0.0) < least)
        return ReducedSolution(solution, chain, reduced.interaction, is_vague)

    def rescore(self, gram: GramOperator, vague: Sequence[ReducedSolution]) -> None:
        """Where a ridge is so far above the kernel that it leaves nothing of G A, one product gives it for all."""
        if not vague:
            return
        weights = np.hstack([solved.chain.weights for solved in vague])
        product = gram.matmul(spread(weights, self.rows, self.n_rows))[self.rows]
        roots = np.sqrt(np.maximum(gram.diagonal()[self.rows], 0.0))
        n = self.statistics.n_labels
        for solved, scores in zip(vague, np.split(product, len(vague), axis=1), strict=True):
            solved.chain = replace(solved.chain, scores=scores)
            # |G_st| <= root_s root_t bounds what was summed up
            summed = (roots @ np.abs(self.sides[:, :n])) @ (roots @ np.abs(solved.chain.weights))
            solved.rounding = ROUNDING * float(summed)


def spread(block: Floats, rows: Indices, n_rows: int) -> Floats:
    """`block` with zero rows where the Gram has rows that take no part."""
    if len(rows) == n_rows:
        return block
    full = np.zeros((n_rows, block.shape[1]))
    full[rows] = block
    return full
