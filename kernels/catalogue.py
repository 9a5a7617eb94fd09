"""The one table of records by name: what a store, a model or a job file writes down and reads back."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from gramline.kernels.errors import KernelParameterError, did_you_mean
from gramline.kernels.records import Record

KERNELS = {
    "sequence-labeling": "gramline.kernels.sequences.labeling:SequenceLabeling",
    "tree-labeling": "gramline.kernels.trees.labeling:TreeLabeling",
    "dag-labeling": "gramline.kernels.dags.labeling:DagLabeling",
    "subset-tree": "gramline.kernels.structures.subset_tree:SubsetTree",
    "tagging": "gramline.kernels.structures.tagging:Tagging",
}
OBSERVATIONS = {
    "identity": "gramline.kernels.observations.identity:Identity",
    "linear": "gramline.kernels.observations.features:Linear",
    "polynomial": "gramline.kernels.observations.features:Polynomial",
    "gaussian": "gramline.kernels.observations.features:Gaussian",
    "substitution": "gramline.kernels.observations.substitution:Substitution",
}
PRIORS = {
    "uniform": "gramline.kernels.priors:UniformPrior",
    "tabulated": "gramline.kernels.priors:TabulatedPrior",
    "empirical": "gramline.kernels.priors:EmpiricalPrior",
}
EVERYTHING = KERNELS | OBSERVATIONS | PRIORS

R = TypeVar("R", bound=Record)


def find(name: str, base: type[R]) -> type[R]:
    """The record class of that name, which must be a `base`."""
    if not isinstance(name, str) or name not in EVERYTHING:
        problem = f"there is no kernel, observation kernel or prior called {name!r}"
        raise KernelParameterError(problem, advice=did_you_mean(name, EVERYTHING), key="name")
    module, _, attribute = EVERYTHING[name].partition(":")
    found: type = getattr(import_module(module), attribute)
    if not issubclass(found, base):
        raise KernelParameterError(f"{name!r} is not {base.what}", key="name")
    return found


def from_dict(description: Mapping[str, Any], base: type[R]) -> R:
    """The record whose `to_dict` gave `description`; nested records are rebuilt as well.

    An error names the parameter as `key`, that of a nested record as outer.inner.
    """
    if "name" not in description:
        raise KernelParameterError(f"a kernel description needs a 'name': {dict(description)}")
    kind = find(description["name"], base)
    return kind.from_params({key: _revive(key, value) for key, value in description.items() if key != "name"})


def _revive(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        try:
            return from_dict(value, Record)
        except KernelParameterError as error:
            error.key = key if error.key is None else f"{key}.{error.key}"
            raise
    if isinstance(value, list):
        return tuple(_revive(key, item) for item in value)
    return value
