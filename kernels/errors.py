"""What can go wrong between a packed structure and a tile, and the base of every error a user can cause.

An error carries what is wrong, what to do about it and where as fields; `str` is the only place that makes the
sentence. Nothing reads a message to find out what happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from difflib import get_close_matches
from typing import Any, Self, TypedDict, Unpack


class Where(TypedDict, total=False):
    """Where something is wrong: in a file, in a table of settings, in a structure; what is not known is left out."""

    path: str | None
    line: int | None
    table: str | None  # of a settings file, such as kernel
    key: str | None  # of that table, or the parameter of a constructor
    structure: int | None
    position: int | None
    owner: type | None  # the kernel or learner that refuses; the problem begins with the name of this class


class LocatedError(Exception):
    """An error with fields: `problem`, `advice` and the parts of its place; `str` joins them to one sentence."""

    path: str | None = None
    line: int | None = None
    table: str | None = None
    key: str | None = None
    structure: int | None = None
    position: int | None = None
    owner: type | None = None

    def __init__(self, problem: str = "", *, advice: str = "", **where: Unpack[Where]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
        self.at(**where)

    def at(self, **where: Unpack[Where]) -> Self:
        """The same error, located further; what it knows of its place already stays."""
        for name, value in where.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    @property
    def place(self) -> str:
        """`job.toml:7 [kernel]: ` or `structure 3, position 5: `; nothing where nothing is known.

        The key is not part of it: a sentence about a key names it.
        """
        file = "" if self.path is None else self.path if self.line is None else f"{self.path}:{self.line}"
        table = "" if self.table is None else f"[{self.table}]"
        structure = "" if self.structure is None else f"structure {self.structure}"
        position = "" if self.position is None else f"position {self.position}"
        settings, data = " ".join(filter(None, (file, table))), ", ".join(filter(None, (structure, position)))
        return "".join(f"{part}: " for part in (settings, data) if part)

    def __str__(self) -> str:
        return f"{self.place}{self.problem}" + (f"; {self.advice}" if self.advice else "")

    def on_command_line(self) -> str:
        """The sentence with the name that commands and job files have for the class: `polynomial: degree must ...`."""
        if self.owner is None:
            return str(self)
        said, rest = copy(self), self.problem.removeprefix(self.owner.__name__)
        name = getattr(self.owner, "name", self.owner.__name__)
        said.problem = f"{name}: {rest[1:]}" if rest.startswith(".") else f"{name}{rest}"
        return str(said)

    def __reduce__(self) -> tuple[Any, ...]:
        """All fields: a worker process sends its errors."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[LocatedError], args: tuple[Any, ...], state: dict[str, Any]) -> LocatedError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The advice for a name that is not known: the one that was probably meant, or all there are."""
    names = list(known)
    near = get_close_matches(str(name), names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"


class KernelError(LocatedError, ValueError):
    """Any input a kernel refuses."""


class KernelWarning(UserWarning):
    """A kernel whose values are right and of little use on a corpus; the sentence says why and what to do."""


class KernelParameterError(KernelError):
    """A kernel, observation kernel or prior was built with a value it cannot use."""


class PackingError(KernelError):
    """A structure, feature, label or prior row is not well formed; names the structure and the position."""


class KernelOverflowError(KernelError, OverflowError):
    """A kernel value left the range of the tile's dtype: `row` and `column` are the structures it compares.

    `column` is None for a sum over many structures; `is_cross` says that it counts in a second corpus.
    """

    def __init__(self, what: str, row: int, column: int | None, dtype: str, advice: str) -> None:
        super().__init__(what, advice=advice)
        self.row, self.column, self.dtype = row, column, dtype
        self.is_cross = False

    def __str__(self) -> str:
        second = "structure (second corpus)" if self.is_cross else "structure"
        pair = f"for structure {self.row}"
        if self.column is not None:
            pair = f"between structure {self.row} and {second} {self.column}"
        return f"{self.place}{self.problem} {pair} does not fit {self.dtype}; {self.advice}"
