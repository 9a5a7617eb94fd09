"""Frozen records that travel as small dictionaries, and say their parameters the way scikit-learn asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from gramline.kernels.errors import KernelParameterError
from gramline.kernels.parameters import checked, parameters_of, refuse_unknown, require_all


class Record:
    """Base of every frozen parameter record: kernels, observation kernels, priors; a subclass is a frozen dataclass.

    `name` is the key of the record in the catalogue; the dictionary form is {"name": ..., field: value, ...}.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # half a sentence for docs/reference.md
    what: ClassVar[str] = "a kernel, an observation kernel or a prior"

    def __post_init__(self) -> None:
        """Every value checked as its field declares it, and kept as a plain one."""
        kind = type(self)
        for key, value in checked(kind, self.get_params(), KernelParameterError, prefix=f"{kind.__name__}.").items():
            object.__setattr__(self, key, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Constructor arguments by name."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able dictionary; `catalogue.from_dict` gives an equal record back."""
        return {"name": self.name} | {key: _plain(value) for key, value in self.get_params().items()}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The record with these parameters; one that is unknown or missing is an error with its `key`."""
        known = parameters_of(cls)
        refuse_unknown(params, known, KernelParameterError, f"{cls.__name__} has no parameter")
        require_all(cls, params, KernelParameterError, prefix=f"{cls.__name__}.")
        return cls(**params)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
