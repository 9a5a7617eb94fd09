"""Whether a learner can use the values it was given, told before anything is computed for it."""

from __future__ import annotations

from typing import Any

from gramline.learners.errors import LearnerParameterError
from gramline.learners.estimator import Learner


def check_values(learner: Learner) -> None:
    """Refuse what its `fit` would refuse of its parameters, as `fit` would say it; and text where a flag belongs.

    Every learner looks at its parameters first; what it is given here to learn from ends the training at the first
    look.
    """
    defaults = type(learner)().get_params(deep=False)
    for key, value in learner.get_params(deep=False).items():
        if isinstance(defaults[key], bool) and not isinstance(value, bool):
            raise LearnerParameterError(f"{key} must be true or false, got {value!r}")
    training: Any = learner
    arguments: tuple[Any, ...] = (_Unseen(),) if learner.reads_corpus else (_Unseen(), [[]])
    try:
        training.fit(*arguments)
    except _LookedAtError:
        return


class _LookedAtError(Exception):
    """The learner has seen nothing wrong with its parameters."""


class _Unseen:
    """Stands in for a corpus or a Gram matrix."""

    def __getattr__(self, name: str) -> Any:
        raise _LookedAtError(name)
