"""Label paths that a scheme of labels allows: IOB2, where `I-x` goes on with an `x` that `B-x` or `I-x` began.

A constraint changes decoding only: the best of the allowed paths is predicted, by adding -inf where a path leaves them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

import numpy as np

from gramline.learners.arrays import Floats

Constraints = Annotated[
    Literal["none", "iob2"],
    '`"iob2"` predicts only paths in which `I-x` follows `B-x` or `I-x`, for labels of that scheme',
]


class AllowedSteps(NamedTuple):
    """0 where a path may go, -inf where it may not."""

    first: Floats  # labels that a path may begin with, shape (n_labels,)
    step: Floats  # [previous][current], shape (n_labels, n_labels)

    @classmethod
    def iob2(cls, names: Sequence[str]) -> AllowedSteps:
        """The steps of IOB2; labels that do not begin with `I-` may stand anywhere."""
        first, step = np.zeros(len(names)), np.zeros((len(names), len(names)))
        for current, name in enumerate(names):
            if name.startswith("I-"):
                first[current] = -np.inf
                step[:, current] = [0.0 if _goes_on(previous, name) else -np.inf for previous in names]
        return cls(first, step)


def allowed_steps(constraints: str, names: Sequence[str]) -> AllowedSteps | None:
    """The steps that a learner's `constraints` allow; None where there are none."""
    return AllowedSteps.iob2(names) if constraints == "iob2" else None


def follows_iob2(labels: Iterable[Sequence[str | None]]) -> bool:
    """Whether labels look like IOB2 and are: some begin with `B-`, and every `I-x` follows a `B-x` or an `I-x`."""
    has_begin = False
    for path in labels:
        for previous, label in pairwise([None, *path]):
            if label is None:
                continue
            has_begin = has_begin or label.startswith("B-")
            if label.startswith("I-") and (previous is None or not _goes_on(previous, label)):
                return False
    return has_begin


def _goes_on(previous: str, label: str) -> bool:
    return previous[:2] in ("B-", "I-") and previous[2:] == label[2:]
