"""What can go wrong in the corridor: errors with fields, as `gramline.kernels.errors` has them.

`InputError` is the user's input (exit code 2 of the command line); `RunError` is a job that failed (exit code 1).
"""

from __future__ import annotations

from typing import Unpack

from gramline.kernels.errors import LocatedError, Where


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


class StoreChangedError(StoreError):
    """A store that somebody else changed since it was opened here; what they wrote stays, nothing else was written."""


class PlanError(InputError):
    """A plan that cannot run within its limits; names the worst tile."""


class RunError(LocatedError, RuntimeError):
    """A job that started and could not be finished; what was done is kept."""


class TileFailedError(RunError):
    """A tile that failed on every try; names it. All other tiles are kept."""


class TileCorruptError(RunError):
    """A stored tile that is missing, damaged or not finite; says how to repair it."""


class StorageUnavailableError(RunError):
    """An object store that did not answer, or answered with a failure, for as long as it was asked."""


class ClusterError(RunError):
    """The scheduler cannot be reached or was lost."""
