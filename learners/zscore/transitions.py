"""The Z-score's transition unknowns collapsed to a 2 x 2 system, shared by explicit features and kernels.

Given the solutions of the emission block for [Yc | s_in | s_out] this solves the full normal equations
(C* + ridge) theta = b* exactly. Emission weights (or dual weights) are X_0 - (x_in u^T + x_out v^T) / n^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramline.learners.arrays import Floats
from gramline.learners.chains.moments import ChainStatistics, path_moments


@dataclass(frozen=True, eq=False)
class ChainSolution:
    """Emission weights (or dual weights), their training scores, T, and alpha where there is a loss."""

    weights: Floats  # shape (size, n)
    scores: Floats  # shape (N, n)
    transition: Floats
    multiplier: float | None = None

    def gain(self, statistics: ChainStatistics) -> float:
        """J = theta . b* = <Yc, R> + <B, T> for the training scores R."""
        scores = self.scores
        chosen = scores[np.arange(len(scores)), statistics.codes].sum() - scores.sum() / statistics.n_labels
        return float(chosen + (statistics.transition_excess * self.transition).sum())

    def z(self, statistics: ChainStatistics) -> float:
        """Z = theta . b* / sqrt(theta^T C* theta); 0 where the score is constant over all paths."""
        largest = max(float(np.abs(part).max(initial=0.0)) for part in (self.scores, self.transition))
        if largest == 0:
            return 0.0
        # Z stays, and no square leaves float64
        scaled = ChainSolution(self.weights, self.scores / largest, self.transition / largest)
        variance = float(path_moments(scaled.scores, scaled.transition, statistics.starts)[1].sum())
        return scaled.gain(statistics) / float(np.sqrt(variance)) if variance > 0 else 0.0

    def with_hamming_loss(self, statistics: ChainStatistics, gain: float, interaction: Floats) -> ChainSolution:
        """E_H = (alpha + 1/n) E, T_H = (alpha + 1/n) T - gamma / n, for J = `gain`.

        alpha = h / J, h = 1 + N (1 - 1/n) - (J - J_gamma) / n; alpha = 0 where J = 0.
        """
        n = statistics.n_labels
        interaction_gain = float((statistics.transition_excess * interaction).sum())
        height = 1.0 + len(statistics.codes) * (1.0 - 1.0 / n) - (gain - interaction_gain) / n
        multiplier = max(0.0, height / gain) if gain > 0 else 0.0
        scale = multiplier + 1.0 / n
        transition = scale * self.transition - interaction / n
        return ChainSolution(scale * self.weights, scale * self.scores, transition, multiplier)


@dataclass(frozen=True, eq=False)
class Reduced:
    """T_ab = v_a / n + u_b / n + gamma_ab and what the emission weights still owe to it."""

    rows: Floats  # v, shape (n,)
    columns: Floats  # u, shape (n,)
    interaction: Floats  # gamma, shape (n, n): rows and columns sum to 0

    @property
    def transition(self) -> Floats:
        n = len(self.rows)
        return np.asarray(self.rows[:, None] / n + self.columns[None, :] / n + self.interaction)

    def combined(self, solved: Floats) -> Floats:
        """Weights from the solutions for [Yc | s_in | s_out], shape (size, n + 2) -> (size, n)."""
        n = len(self.rows)
        corrections = np.stack([self.columns, self.rows]) / n**2
        return np.asarray(solved[:, :n] - solved[:, n:] @ corrections)

    def solution(self, solved: Floats, scored: Floats) -> ChainSolution:
        """The whole solution from those for [Yc | s_in | s_out] and their training scores."""
        return ChainSolution(self.combined(solved), self.combined(scored), self.transition)


def reduce_transitions(
    statistics: ChainStatistics,
    transition_ridge: float,
    responses: Floats,
    products: Floats | None = None,
    excess: Floats | None = None,
) -> Reduced:
    """The transition part of the exact solution.

    `responses` are s_x^T R for x = in, out and R = the scores that the solutions of [Yc | s_in | s_out] give to the
    training positions (Gm A or F E), shape (2, n + 2). Without any ridge the solution of least norm is wanted: then
    `products` are the inner products of the solutions for s_in, s_out with all of them, shape (2, n + 2).
    For another right-hand side than b* other columns, whose rows sum to 0, replace Yc, and `excess` replaces B, shape
    (n, n) and of sum 0.
    """
    n = statistics.n_labels
    weight = statistics.n_transitions / n**2 + transition_ridge  # w
    if statistics.n_transitions == 0 or n == 1:
        return Reduced(np.zeros(n), np.zeros(n), np.zeros((n, n)))
    excess = statistics.transition_excess if excess is None else excess
    row_means, column_means = excess.mean(axis=1), excess.mean(axis=0)
    order = [1, 0]  # out before in, as v before u
    coupling = responses[:, n:][np.ix_(order, order)]  # g
    matrix = np.full((2, 2), statistics.n_links / n**3)
    np.fill_diagonal(matrix, weight / n)
    matrix -= (coupling + coupling.T) / (2 * n**4)
    sides = np.stack([row_means, column_means]) - responses[order, :n] / n**2
    if products is None:
        effects = np.linalg.solve(matrix, sides)
    else:
        metric = products[:, n:][np.ix_(order, order)] / n**4 + np.eye(2) / n
        effects = _least_norm(matrix, sides, metric, products[order, :n] / n**2, weight / n)
    effects -= effects.mean(axis=1, keepdims=True)  # exactly centred, as in exact arithmetic
    interaction = (excess - row_means[:, None] - column_means[None, :]) / weight
    return Reduced(effects[0], effects[1], interaction)


def _least_norm(matrix: Floats, sides: Floats, metric: Floats, linear: Floats, size: float) -> Floats:
    """Solutions x of the singular system that minimise x^T metric x - 2 x^T linear, column by column."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-9 * size
    particular: Floats = vectors[:, kept] @ ((vectors[:, kept].T @ sides) / values[kept, None])
    free = vectors[:, ~kept]
    if free.shape[1]:
        step = np.linalg.solve(free.T @ metric @ free, free.T @ (linear - metric @ particular))
        particular = particular + free @ step
    return particular
