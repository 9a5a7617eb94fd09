"""The one table of records by name: what stores, models and job files write down and read back, and people read."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeVar

from gramline.kernels.errors import KernelParameterError, did_you_mean
from gramline.kernels.parameters import Record, parameters_of

KERNELS = {
    "sequence-labeling": "gramline.kernels.sequences.labeling:SequenceLabeling",
    "tree-labeling": "gramline.kernels.trees.labeling:TreeLabeling",
    "dag-labeling": "gramline.kernels.dags.labeling:DagLabeling",
    "position": "gramline.kernels.positions:PositionKernel",
    "subset-tree": "gramline.kernels.structures.subset_tree:SubsetTree",
    "tagging": "gramline.kernels.structures.tagging:Tagging",
}
OBSERVATIONS = {
    "identity": "gramline.kernels.observations.base:Identity",
    "linear": "gramline.kernels.observations.features:Linear",
    "polynomial": "gramline.kernels.observations.features:Polynomial",
    "gaussian": "gramline.kernels.observations.features:Gaussian",
    "sum": "gramline.kernels.observations.sums:Sum",
    "substitution": "gramline.kernels.observations.substitution:Substitution",
}
PRIORS = {
    "uniform": "gramline.kernels.priors:UniformPrior",
    "tabulated": "gramline.kernels.priors:TabulatedPrior",
    "empirical": "gramline.kernels.priors:EmpiricalPrior",
    "learned": "gramline.kernels.priors:LearnedPrior",
}
EVERYTHING = KERNELS | OBSERVATIONS | PRIORS

R = TypeVar("R", bound=Record)
LONGEST = 60  # characters of a value that is shown whole


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
    if not isinstance(description, Mapping) or "name" not in description:
        raise KernelParameterError(f"a kernel description needs a 'name': {short_value(description)}")
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


def describe(description: Mapping[str, Any] | None) -> str:
    """A kernel's dictionary in one line: sequence-labeling(c=0.5, observation=polynomial)."""
    if description is None:
        return ""
    defaults = _defaults(str(description["name"]))
    parts = [
        f"{key}={describe(value) if isinstance(value, Mapping) else short_value(value)}"
        for key, value in description.items()
        if key != "name" and value is not None and not (key in defaults and defaults[key] == value)
    ]
    return f"{description['name']}({', '.join(parts)})" if parts else str(description["name"])


def _defaults(name: str) -> dict[str, Any]:
    """The dictionary of a record at its defaults; empty for a record that only another version knows."""
    try:
        kind = find(name, Record)
    except KernelParameterError:
        return {}
    defaults = {key: parameter.default for key, parameter in parameters_of(kind).items()}
    return {key: value.to_dict() if isinstance(value, Record) else value for key, value in defaults.items()}


def short_value(value: Any) -> str:
    """A parameter as a table shows it: matrices by their size, long texts cut."""
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        return f"{len(value)} x {len(value[0])} matrix"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
