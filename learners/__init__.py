"""Learners: a Gram operator (or a corpus) and labels in, a model out. Public names are loaded when first asked for."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gramline.learners.catalogue import LEARNERS

if TYPE_CHECKING:
    from gramline.learners.operators.operator import DenseGram as DenseGram
    from gramline.learners.perceptrons.labeling import LabelingPerceptron as LabelingPerceptron

_HOMES = {name: module for module, _, name in (home.partition(":") for home in LEARNERS.values())}
_HOMES |= {"DenseGram": "gramline.learners.operators.operator"}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
