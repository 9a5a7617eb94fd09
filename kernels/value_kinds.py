"""Kinds of values a parameter takes: what is refused, how that is said, and the same as a JSON schema."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any


class Refused(Exception):  # noqa: N818 - `parameters.checked` makes an error with fields of it
    """A value that a kind does not take. `rest` goes on after the name of the parameter; empty: as the kind says."""

    def __init__(self, rest: str = "", advice: str = "") -> None:
        super().__init__(rest)
        self.rest, self.advice = rest, advice


class Kind:
    """What values a parameter takes; this one takes all."""

    words = "anything"  # "must be ..."
    depth = 0  # of lists in one value: deeper ones are several values, to be tried one after another

    def plain(self, value: Any) -> Any:
        """The value as records keep it, of plain Python; one that is so already stays the same object."""
        return value

    def works(self, value: Any) -> bool:  # noqa: ARG002
        """Whether a learner, which keeps what it was given, can compute with a value that `plain` takes."""
        return True

    def are_several(self, value: list[Any]) -> bool:
        """Whether a list is several values, to be tried one after another."""
        return _depth(value) > self.depth

    @property
    def schema(self) -> dict[str, Any]:
        """The same for editors, as a JSON schema."""
        return {}


@dataclass(frozen=True, kw_only=True)
class Number(Kind):
    """A finite number of Python or NumPy within bounds; True and text are none."""

    whole: bool = False
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    said: str = ""  # in place of the bounds

    @property
    def words(self) -> str:  # type: ignore[override]
        if self.said:
            return self.said
        noun = "a whole number" if self.whole else "a number"
        if self.least is not None and self.most is not None:
            return f"{noun} between {self.least:g} and {self.most:g}"
        bounds = {"of at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        said = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
        return f"{noun} {said}" if said else noun

    def plain(self, value: Any) -> int | float:
        number: int | float = value
        if type(value) not in (int, float):
            given = _scalar(value)
            if isinstance(given, bool) or not isinstance(given, Real):
                raise Refused
            try:
                number = int(given) if self.whole and isinstance(given, Integral) else float(given)
            except OverflowError:
                raise Refused from None
        if not math.isfinite(number if isinstance(number, float) else 0):
            raise Refused(f"must be a finite number, got {number}")
        if self.whole and number != (number := int(number)):
            raise Refused
        if isinstance(number, int) and not -(2**63) <= number < 2**63:
            what, advice = ("whole number", "") if self.whole else ("number", "write a larger one as a float")
            raise Refused(f"must be a {what} of at most 64 bits", advice)
        if (
            (self.least is not None and number < self.least)
            or (self.above is not None and number <= self.above)
            or (self.most is not None and number > self.most)
            or (self.below is not None and number >= self.below)
        ):
            raise Refused
        return number

    def works(self, value: Any) -> bool:
        if self.whole:
            return isinstance(value, Integral)
        return isinstance(value, int | float) or hasattr(value, "dtype")

    @property
    def schema(self) -> dict[str, Any]:
        bounds = {"minimum": self.least, "exclusiveMinimum": self.above, "maximum": self.most}
        bounds |= {"exclusiveMaximum": self.below}
        kind = "integer" if self.whole else "number"
        return {"type": kind} | {name: bound for name, bound in bounds.items() if bound is not None}


@dataclass(frozen=True, kw_only=True)
class NumberOrName(Number):
    """A number within bounds, or one of a few names in place of it."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"{super().words}, or {' or '.join(self.names)}"

    def plain(self, value: Any) -> Any:
        return value if isinstance(value, str) and value in self.names else super().plain(value)

    def works(self, value: Any) -> bool:
        return isinstance(value, str) or super().works(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"anyOf": [super().schema, {"enum": list(self.names)}]}


class Flag(Kind):
    """True or False, of Python or NumPy; a string would pass for True."""

    words = "true or false"

    def plain(self, value: Any) -> bool:
        flag = _scalar(value)
        if not isinstance(flag, bool):
            raise Refused
        return flag

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Words(Kind):
    """A string, perhaps not an empty one."""

    def __init__(self, *, may_be_empty: bool = True) -> None:
        self.may_be_empty = may_be_empty
        self.words = "a string" if may_be_empty else "a string that is not empty"

    def plain(self, value: Any) -> str:
        if not isinstance(value, str) or not (value or self.may_be_empty):
            raise Refused
        return value

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "string"} | ({} if self.may_be_empty else {"minLength": 1})


@dataclass(frozen=True)
class Choice(Kind):
    """One of a few names, as a Literal lists them."""

    names: tuple[str, ...]

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"one of {', '.join(self.names)}"

    def plain(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.names:
            raise Refused
        return value

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.names)}


class Settings(Kind):
    """Parameters of something that is made elsewhere, by name; kept as pairs, sorted, so that a record has a hash."""

    words = "a dictionary of parameters"

    def plain(self, value: Any) -> tuple[tuple[str, Any], ...]:
        try:
            pairs = dict(value)
        except (TypeError, ValueError):
            raise Refused from None
        if not all(isinstance(name, str) for name in pairs):
            raise Refused
        settings = tuple(sorted((name, _hashable(item)) for name, item in pairs.items()))
        return value if value == settings else settings

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    try:
        hash(value)
    except TypeError:
        raise Refused(f"has a value that nothing is made with, {value!r}") from None
    return _scalar(value)


@dataclass(frozen=True)
class Instance(Kind):
    """A record of some class, which says in `what` what it is."""

    base: type

    @property
    def words(self) -> str:  # type: ignore[override]
        what: str = vars(self.base)["what"]
        return what

    def plain(self, value: Any) -> Any:
        if not isinstance(value, self.base):
            raise Refused
        return value


def _scalar(value: Any) -> Any:
    """A number or truth value of NumPy as one of Python; no other is touched."""
    return value.item() if getattr(value, "shape", None) == () and hasattr(value, "item") else value


def _depth(value: Any) -> int:
    return 1 + min(map(_depth, value), default=0) if isinstance(value, list) else 0
