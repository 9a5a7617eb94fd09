"""The one table of records by name: what a store, a model or a job file writes down and reads back."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar

from gramline.kernels.errors import KernelParameterError
from gramline.kernels.parameters import Record

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
    if name not in EVERYTHING:
        near = get_close_matches(name, EVERYTHING, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(EVERYTHING)}"
        raise KernelParameterError(f"there is no kernel, observation kernel or prior called {name!r}{hint}")
    module, _, attribute = EVERYTHING[name].partition(":")
    found: type = getattr(import_module(module), attribute)
    if not issubclass(found, base):
        raise KernelParameterError(f"{name!r} is not a {base.__name__}")
    return found


def from_dict(description: Mapping[str, Any], base: type[R]) -> R:
    """The record whose `to_dict` gave `description`; nested records are rebuilt as well."""
    params = {key: _revive(value) for key, value in description.items() if key != "name"}
    try:
        name = description["name"]
    except KeyError:
        raise KernelParameterError(f"a kernel description needs a 'name': {dict(description)}") from None
    return find(name, base).from_params(params)


def _revive(value: Any) -> Any:
    if isinstance(value, Mapping):
        return from_dict(value, Record)
    if isinstance(value, list):
        return tuple(_revive(item) for item in value)
    return value
