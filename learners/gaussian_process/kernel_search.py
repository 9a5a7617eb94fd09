"""Kernel parameters by the bound, alternately with its sweeps: a step along the sign of every slope, kept if better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramline.learners.arrays import Indices
from gramline.learners.errors import LearnerError
from gramline.learners.gaussian_process.covariance import ExactCovariance
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.scale_search import bound_gradient
from gramline.learners.operators.observation import ObservationGram
from gramline.learners.operators.operator import GramOperator

FIRST_STEP = 0.5  # of a log parameter
SHORTEST_STEP = 0.02
LONGER, SHORTER = 1.5, 0.4
LONGEST_STEP = 1.0
FARTHEST = 10.0  # from where a log parameter started: a bound may grow for ever towards a constant kernel


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
