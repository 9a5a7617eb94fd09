"""Parameters declared once: what a value may be and what it is for stand in the annotation, and are read there.

    degree: Annotated[Whole, "power of the dot product"] = 2

is all that a kernel, a learner or a table of a settings file says of a parameter. Kernels check it when they are made,
learners in `fit`, settings files when they are read, all by `checked`; the JSON schema of job files and the tables of
docs/reference.md and docs/jobs.md are made of `parameters_of`. Needs nothing but the standard library.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from inspect import Parameter as Argument
from inspect import signature
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

from gramline.kernels.errors import KernelParameterError, LocatedError, did_you_mean
from gramline.kernels.value_kinds import Choice, Flag, Instance, Kind, Number, Refused, Words

REQUIRED: Any = Argument.empty  # the default of a parameter that has none
LONGEST = 200  # letters of a refused value that are shown


Whole = Annotated[int, Number(whole=True, least=1)]
WholeOrZero = Annotated[int, Number(whole=True, least=0)]
AnyWhole = Annotated[int, Number(whole=True)]
Positive = Annotated[float, Number(above=0)]
NonNegative = Annotated[float, Number(least=0)]
Share = Annotated[float, Number(above=0, most=1)]
ZeroToOne = Annotated[float, Number(least=0, most=1)]
# A positive number whose square float64 holds.
Weight = Annotated[float, Number(least=1e-150, most=1e150, said="a positive number (1e-150 to 1e150)")]
Boolean = Annotated[bool, Flag()]
Text = Annotated[str, Words()]


@dataclass(frozen=True)
class Parameter:
    """One declared parameter."""

    name: str
    kind: Kind
    may_be_none: bool
    description: str
    default: Any  # REQUIRED where there is none


def parameters_of(owner: type) -> dict[str, Parameter]:
    """What the fields of a dataclass, or the arguments of another class's constructor, declare; in their order."""
    return _parameters_of(owner)


@cache
def _parameters_of(owner: type) -> dict[str, Parameter]:
    defaults: dict[str, Any]
    if is_dataclass(owner):
        hints = get_type_hints(owner, include_extras=True)
        defaults = {
            item.name: item.default_factory()
            if item.default_factory is not MISSING
            else REQUIRED
            if item.default is MISSING
            else item.default
            for item in fields(owner)
        }
    else:
        hints = get_type_hints(owner.__init__, include_extras=True)  # type: ignore[misc]
        defaults = {name: argument.default for name, argument in signature(owner).parameters.items()}
    return {name: Parameter(name, *_declared(hints[name]), default) for name, default in defaults.items()}


def checked(
    owner: type, values: Mapping[str, Any], error: type[LocatedError], *, named: bool = False, as_given: bool = False
) -> dict[str, Any]:
    """`values` as plain ones; the first that its declaration does not allow is an `error` with its `key`.

    `named`: the sentence begins with the name of the owner. `as_given`: the values will be used as they are.
    """
    known, said = parameters_of(owner), owner if named else None
    return {
        name: None
        if value is None and known[name].may_be_none
        else plain_value(name, known[name].kind, value, error, owner=said, as_given=as_given)
        for name, value in values.items()
    }


def plain_value(
    name: str, kind: Kind, value: Any, error: type[LocatedError], *, owner: type | None = None, as_given: bool = False
) -> Any:
    """One value as `checked` does it, for what is no parameter of a class."""
    try:
        plain = kind.plain(value)
        if as_given and not kind.works(value):
            raise Refused
    except Refused as refused:
        rest = refused.rest or f"must be {kind.words}, got {_shown(value)}"
        what = name if owner is None else f"{owner.__name__}.{name}"
        raise error(f"{what} {rest}", advice=refused.advice, key=name, owner=owner) from None
    return plain


def refuse_unknown(
    names: Iterable[str], known: Collection[str], error: type[LocatedError], owner: type | None = None
) -> None:
    """An error for the first name that is not known, with the one that was probably meant."""
    what = "there is no" if owner is None else f"{owner.__name__} has no parameter"
    for name in names:
        if name not in known:
            advice = did_you_mean(name, known) if known else "it has none"
            raise error(f"{what} {name!r}", advice=advice, key=name, owner=owner)


def require_all(owner: type, names: Collection[str], error: type[LocatedError], *, named: bool = False) -> None:
    """An error for the first parameter without a default that is not among `names`."""
    for parameter in parameters_of(owner).values():
        if parameter.default is REQUIRED and parameter.name not in names:
            what = f"{owner.__name__}.{parameter.name}" if named else parameter.name
            raise error(f"{what} is missing", key=parameter.name, owner=owner if named else None)


def _declared(hint: Any) -> tuple[Kind, bool, str]:
    """What an annotation says: the kind, whether None is allowed, and the description."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *notes = get_args(hint)
        kind, may_be_none, description = _declared(inner)
        kind = next((note for note in notes if isinstance(note, Kind)), kind)
        return kind, may_be_none, next((note for note in reversed(notes) if isinstance(note, str)), description)
    if origin in (Union, UnionType) and NoneType in get_args(hint):
        kind, _, description = _declared(Union[tuple(part for part in get_args(hint) if part is not NoneType)])  # noqa: UP007
        return kind, True, description
    if origin is Literal:
        return Choice(get_args(hint)), False, ""
    return (Instance(hint) if "what" in getattr(hint, "__dict__", {}) else Kind()), False, ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


class Record:
    """Base of every frozen parameter record: kernels, observation kernels, priors; a subclass is a frozen dataclass.

    `name` is the key of the record in the catalogue; the dictionary form is {"name": ..., field: value, ...}.
    """

    name: ClassVar[str]
    summary: ClassVar[str]  # half a sentence for docs/reference.md
    what: ClassVar[str] = "a kernel, an observation kernel or a prior"
    # Parameters that earlier versions did not have. At their default they are left out of the dictionary, so that a
    # kernel has the fingerprint it had then, and stores and caches of those versions go on being used.
    added: ClassVar[tuple[str, ...]] = ()
    shorthand: ClassVar[str] = ""  # the parameter that a word alone means: `substitution:blosum62`

    def __post_init__(self) -> None:
        """Every value checked as its field declares it, and kept as a plain one."""
        kind = type(self)
        for key, value in checked(kind, self.get_params(), KernelParameterError, named=True).items():
            object.__setattr__(self, key, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002 - scikit-learn's signature
        """Constructor arguments by name."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able dictionary; `catalogue.from_dict` gives an equal record back."""
        known = parameters_of(type(self))
        return {"name": self.name} | {
            key: _plain(value)
            for key, value in self.get_params().items()
            if key not in self.added or value != known[key].default
        }

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The record with these parameters; one that is unknown or missing is an error with its `key`."""
        known = parameters_of(cls)
        refuse_unknown(params, known, KernelParameterError, cls)
        require_all(cls, params, KernelParameterError, named=True)
        return cls(**params)


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
