"""What can go wrong in the corridor: errors with fields, as `gramline.kernels.errors` has them.

`InputError` is the user's input (exit code 2 of the command line); `RunError` is a job that failed (exit code 1).
"""

from __future__ import annotations

from typing import Unpack

from gramline.kernels.errors import LocatedError, Where


def first_line(error: BaseException | None) -> str:
    """The first line of what an error says, or its class where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def named_line(error: BaseException | None) -> str:
    """The class of an error and the first line of what it says: for errors of others, in sentences of ours."""
    line, name = first_line(error), type(error).__name__
    return name if line == name else f"{name}: {line}"


def gigabytes(count: float) -> str:
    """Bytes for people, of things as large as disks."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


class InputError(LocatedError, ValueError):
    """Input that cannot be used: a file, a parameter, a store of something else."""


class CorpusError(InputError):
    """A corpus file or list that is not well formed; names the file and line, or structure and position."""


class UnknownLabelError(CorpusError):
    """Labels that are not among the given ones: `names`, sorted; the place is that of the first of them."""

    def __init__(self, problem: str, names: tuple[str, ...] = (), *, advice: str = "", **where: Unpack[Where]) -> None:
        super().__init__(problem, advice=advice, **where)
        self.names = names


class StoreError(InputError):
    """A path that is not a store, or a store of another kernel, corpus or dtype; names what differs."""


class StoreDamagedError(StoreError):
    """A store, model or export at `url` whose bytes are not what was written; `part` says which part of it."""

    def __init__(self, problem: str, url: str, *, part: str = "", advice: str = "rebuild it") -> None:
        super().__init__(problem, advice=advice)
        self.url, self.part = url, part

    def __str__(self) -> str:
        return f"{f'{self.part} ' if self.part else ''}{self.url} is damaged: {self.problem}; {self.advice}"


class StoreTakenError(StoreError):
    """Something is at `url` that is not replaced: a group or an export, or `holds`, somebody else's below it."""

    def __init__(self, url: str, holds: str = "") -> None:
        problem = f"is not empty, it holds {holds}" if holds else "exists already"
        super().__init__(f"{url} {problem}", advice=f"choose another path {'below' if holds else 'or remove'} it")
        self.url, self.holds = url, holds


class StoreChangedError(StoreError):
    """A store that somebody else changed since it was opened here; what they wrote stays, nothing else was written."""


class PlanError(InputError):
    """A plan that cannot run within its limits; names the worst tile."""


class NoRoomError(PlanError):
    """`needed_bytes` to be written to `target`, on a disk with `free_bytes` left."""

    def __init__(self, target: str, needed_bytes: int, free_bytes: int, *, advice: str) -> None:
        super().__init__("the disk is too small", advice=advice)
        self.target, self.needed_bytes, self.free_bytes = target, needed_bytes, free_bytes

    def __str__(self) -> str:
        needed, free = gigabytes(self.needed_bytes), gigabytes(self.free_bytes)
        return f"{self.target} would take {needed}, but the disk has {free} free; {self.advice}"


class RunError(LocatedError, RuntimeError):
    """A job that started and could not be finished; what was done is kept."""


class TileFailedError(RunError):
    """`tile` (i, j) of the store at `url` failed in all its `tries`, and so did `n_more` others; the rest is kept."""

    def __init__(self, problem: str, url: str, tile: tuple[int, int], *, tries: int, n_more: int, advice: str) -> None:
        super().__init__(problem, advice=advice)
        self.url, self.tile, self.tries, self.n_more = url, tile, tries, n_more

    def __str__(self) -> str:
        more = f" and {self.n_more} more" if self.n_more else ""
        return f"tile {self.tile}{more} of {self.url} failed in {self.tries} tries: {self.problem}; {self.advice}"


class TileCorruptError(RunError):
    """`tile` (i, j) of the store at `url` is missing, damaged or not finite."""

    def __init__(self, problem: str, url: str, tile: tuple[int, int]) -> None:
        super().__init__(problem, advice=f"run `gramline gram verify --repair {url}`")
        self.url, self.tile = url, tile

    def __str__(self) -> str:
        return f"tile {self.tile} of {self.url} cannot be used: {self.problem}; {self.advice}"


class StorageUnavailableError(RunError):
    """An object store that did not answer, or answered with a failure, for as long as it was asked."""


class ClusterError(RunError):
    """The scheduler cannot be reached or was lost."""
