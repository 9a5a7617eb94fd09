"""Kernel hyper-parameters by the bound: the scale of K_j in closed steps, all others along the sign of their slope.

At the optimum of q the bound changes only through K (envelope):
dELBO/dtheta = sum_j ( -1/2 tr(diag(s) B_j^-1 diag(s) dK_j) + 1/2 a_j^T dK_j a_j ).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.checkpoints import State, number
from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.covariance import ExactCovariance
from gramline.learners.gaussian_process.inference import COLUMNS_AT_ONCE, Inference
from gramline.learners.gaussian_process.posterior import Posterior
from gramline.learners.operators.observation import ObservationGram
from gramline.learners.operators.operator import GramOperator

SETTLED = 0.02  # |log(a^T K a / sum lam V)| below which the scale is as good as learned
LONGEST_SCALE_STEP = 2.0  # of log scale
FIRST_SLOPE = -0.45  # of log(a^T K a / sum lam V) over log scale, before two points tell it
MAX_REJECTIONS = 3
MAX_PROPOSALS = 12
FIRST_STEP = 0.5  # of a log parameter
SHORTEST_STEP = 0.02
LONGER, SHORTER = 1.5, 0.4
LONGEST_STEP = 1.0
FARTHEST = 10.0  # from where a log parameter started: a bound may grow for ever towards a constant kernel


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
        return np.asarray(np.exp(self._damping * np.clip(-ratio / slope, -LONGEST_SCALE_STEP, LONGEST_SCALE_STEP)))

    def reject(self) -> None:
        """The last proposal made the bound smaller."""
        self._rejections += 1
        self._damping /= 2
        self._last = None

    def state(self) -> State:
        last = np.empty((0, 0)) if self._last is None else np.array(self._last)
        counted = {"rejections": number(self._rejections), "proposals": number(self._proposals)}
        return counted | {"settled": number(self.settled), "damping": number(self._damping), "last": last}

    def resume(self, state: State) -> None:
        """Go on where `state` was."""
        self._rejections, self._proposals = int(state["rejections"]), int(state["proposals"])
        self.settled, self._damping = bool(state["settled"]), float(state["damping"])
        self._last = (state["last"][0], state["last"][1]) if len(state["last"]) else None

    def _log_ratio(self, posterior: Posterior) -> Matrix:
        explained, used = posterior.quadratic, posterior.degrees_of_freedom
        if self.shared:
            explained, used = np.full_like(explained, explained.sum()), np.full_like(used, used.sum())
        tiny = np.finfo(float).tiny
        ratio = np.log(np.maximum(explained, tiny) / np.maximum(used, tiny))
        # With nothing explained and nothing used there is nothing to learn.
        return np.where(
            (explained <= tiny) & (used <= tiny), 0.0, np.clip(ratio, -LONGEST_SCALE_STEP, LONGEST_SCALE_STEP)
        )


def require_tunable(gram: GramOperator) -> ObservationGram:
    """Refuse a Gram matrix without slopes."""
    if not isinstance(gram, ObservationGram):
        raise LearnerError(
            f"learn_kernel needs an ObservationGram, which knows its kernel's gradient, but was given a "
            f"{type(gram).__name__}",
            advice="learn_scale works with any",
            key="learn_kernel",
        )
    return gram


class KernelSearch:
    """Moves each log parameter by its own step; the step shrinks when its slope turns or the bound falls."""

    def __init__(self, gram: ObservationGram, rows: Indices, jitter: float) -> None:
        self.gram = gram
        self._rows, self._jitter = rows, jitter
        self._steps = dict.fromkeys(gram.parameters(), FIRST_STEP)
        self._signs: dict[str, float] = {}
        self._start = gram.parameters()

    @property
    def settled(self) -> bool:
        return all(step < SHORTEST_STEP for step in self._steps.values())

    def improve(self, inference: Inference, settle: Callable[[Inference], None]) -> None:
        """One step for every parameter, after which the posterior settles; taken back where the bound went down."""
        for name in [name for name, step in self._steps.items() if step >= SHORTEST_STEP]:
            slope = bound_gradient(inference, self.gram.slope(name)[np.ix_(self._rows, self._rows)])
            sign = float(np.sign(slope))
            if sign == 0:
                self._steps[name] = 0.0
                continue
            if self._signs.get(name, sign) != sign:
                self._steps[name] *= SHORTER
            self._signs[name] = sign
            self._try(inference, name, sign, settle)

    def _try(self, inference: Inference, name: str, sign: float, settle: Callable[[Inference], None]) -> None:
        before, snapshot = inference.elbo(), inference.snapshot()
        gram, covariance = self.gram, inference.covariance
        parameters = gram.parameters()
        self.gram = gram.at(parameters | {name: parameters[name] * float(np.exp(sign * self._steps[name]))})
        inference.replace_covariance(ExactCovariance(self.gram, self._rows, self._jitter))
        settle(inference)
        if inference.is_worse(before):
            self.gram, inference.covariance = gram, covariance
            inference.restore(snapshot)
            self._steps[name] *= SHORTER
        else:
            far = abs(np.log(self.gram.parameters()[name] / self._start[name])) > FARTHEST
            self._steps[name] = 0.0 if far else min(self._steps[name] * LONGER, LONGEST_STEP)
