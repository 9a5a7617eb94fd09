"""Kernel hyper-parameters by the bound: the scale of K_j in closed steps, anything else by its gradient.

At the optimum of q the bound changes only through K (envelope):
dELBO/dtheta = sum_j ( -1/2 tr(diag(s) B_j^-1 diag(s) dK_j) + 1/2 a_j^T dK_j a_j ).
"""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.inference import COLUMNS_AT_ONCE, Inference
from gramline.learners.gaussian_process.posterior import Posterior

SETTLED = 0.02  # |log(a^T K a / sum lam V)| below which the scale is as good as learned
LONGEST_STEP = 2.0  # of log scale
FIRST_SLOPE = -0.45  # of log(a^T K a / sum lam V) over log scale, before two points tell it
MAX_REJECTIONS = 3
MAX_PROPOSALS = 12


def bound_gradient(inference: Inference, derivative: Matrix) -> float:
    """dELBO / dtheta for a given dC / dtheta, shape (n, n), at the optimum of q."""
    q = inference.posterior
    total = 0.0
    for j in range(inference.tokens.n_labels):
        spread = inference.spread(j, q.precision[:, j])
        factor = inference.covariance.factor(spread)
        weighted = inference.weights[:, j] * q.dual[:, j]
        total += q.scale[j] * float(weighted @ derivative @ weighted) / 2
        for first in range(0, len(spread), COLUMNS_AT_ONCE):
            cols = np.arange(first, min(first + COLUMNS_AT_ONCE, len(spread)))
            solved = factor.solve(spread[:, None] * derivative[:, cols] * spread[cols])
            total -= float(solved[cols, np.arange(len(cols))].sum()) / 2
    return total


class ScaleSearch:
    """Proposes factors for the scales by the secant method on log(a^T K a / sum lam V), which is 0 at the optimum.

    A proposal is only tried: whoever runs the sweep takes it back with `reject` when the bound went down.
    """

    def __init__(self, *, shared: bool) -> None:
        self.shared = shared
        self.settled = False
        self._rejections = 0
        self._proposals = 0
        self._damping = 1.0
        self._last: tuple[Matrix, Matrix] | None = None  # (log scale, log ratio) of the last proposal

    def propose(self, posterior: Posterior) -> Matrix | None:
        """Factors for the scales, shape (n_labels,); None when they may stay."""
        ratio = self._log_ratio(posterior)
        position = np.log(posterior.scale)
        tired = self._rejections >= MAX_REJECTIONS or self._proposals >= MAX_PROPOSALS
        self.settled = bool(np.abs(ratio).max() < SETTLED) or tired
        if self.settled:
            return None
        slope = np.full(len(ratio), FIRST_SLOPE)
        if self._last is not None:
            moved = position - self._last[0]
            known = np.abs(moved) > 1e-3
            slope[known] = np.clip((ratio - self._last[1])[known] / moved[known], -1.0, -0.3)
        self._last = (position, ratio)
        self._proposals += 1
        return np.asarray(np.exp(self._damping * np.clip(-ratio / slope, -LONGEST_STEP, LONGEST_STEP)))

    def reject(self) -> None:
        """The last proposal made the bound smaller."""
        self._rejections += 1
        self._damping /= 2
        self._last = None

    def _log_ratio(self, posterior: Posterior) -> Matrix:
        explained, used = posterior.quadratic, posterior.degrees_of_freedom
        if self.shared:
            explained, used = np.full_like(explained, explained.sum()), np.full_like(used, used.sum())
        tiny = np.finfo(float).tiny
        ratio = np.log(np.maximum(explained, tiny) / np.maximum(used, tiny))
        # With nothing explained and nothing used there is nothing to learn.
        return np.where((explained <= tiny) & (used <= tiny), 0.0, np.clip(ratio, -LONGEST_STEP, LONGEST_STEP))
