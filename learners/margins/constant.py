"""C of the support vector machines: a number, or open."""

from __future__ import annotations

from typing import Annotated

from gramline.kernels.value_kinds import NumberOrName
from gramline.learners.chosen_constants import Auto, Constant

OpenC = Annotated[float | Auto, NumberOrName(above=0, names=("auto",))]
AUTO_C = '`"auto"` chooses it by the labels of hidden structures'


def _itself(C: float) -> float:
    return C


CONSTANT = Constant("C", _itself, tolerance=0.05, limit="passes", most=30)
