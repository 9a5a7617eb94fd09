"""Tiles stored, in part or not at all: what each costs, from the speeds of this machine and what a learner asks for.

    build     = (values c + bytes w) / threads                  values of the tiles to store, once
    training  = (bytes r + values c + products m) / threads + own      bytes read, values of tiles left out

c, w, r and m are the seconds of a thread for a kernel value, a byte written, a byte read, and a value times a number.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from gramline.pipeline.gram.plan import PROGRAM_BYTES, Plan

RESERVED = 0.1  # of the free disk that is left to others


@dataclass(frozen=True)
class Speeds:
    """Seconds of one thread, measured on a few tiles."""

    compute: float  # of a kernel value
    write: float  # of a byte
    read: float  # of a byte that is in the system's cache or not, as it comes
    multiply: float  # of a value and a column


class Demands(Protocol):
    """What a learner asks for; see `models.demand`."""

    @property
    def passes(self) -> float: ...
    @property
    def columns(self) -> float: ...
    @property
    def values(self) -> float: ...
    @property
    def stored_seconds(self) -> float: ...
    @property
    def computed_seconds(self) -> float: ...


@dataclass(frozen=True)
class Machines:
    """Who computes and who reads."""

    n_threads: int = 1  # that build
    n_training: int = 1  # that train
    read_bandwidth: float | None = None  # bytes a second that the storage gives all of them together


@dataclass(frozen=True)
class Alternative:
    """One way to train on a matrix."""

    keep: str  # "all", "none", or bytes
    stored_bytes: int
    build_seconds: float
    training_seconds: float
    memory_bytes: int  # of a process
    fits: bool
    is_recommended: bool = False

    @property
    def seconds(self) -> float:
        return self.build_seconds + self.training_seconds

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"seconds": self.seconds}


def alternatives(
    plan: Plan, n_rows: int, speeds: Speeds, demand: Demands, machines: Machines, free_bytes: int | None
) -> list[Alternative]:
    """All tiles, as many as the disk has room for where it has not room for all, and none; the best is marked.

    `plan` is that of a store that keeps all of its tiles.
    """
    total = plan.n_tiles * plan.tile_bytes
    room = total if free_bytes is None else int((1 - RESERVED) * free_bytes)
    sizes = {"all": total, "none": 0}
    if room < total and room // plan.tile_bytes:
        sizes = {"all": total, str(room): room // plan.tile_bytes * plan.tile_bytes, "none": 0}
    every = [_priced(keep, size, plan, n_rows, speeds, demand, machines, room) for keep, size in sizes.items()]
    best = min((one for one in every if one.fits), key=lambda one: one.seconds)
    return [Alternative(**{**asdict(one), "is_recommended": one is best}) for one in every]


def _priced(
    keep: str, size: int, plan: Plan, n_rows: int, speeds: Speeds, demand: Demands, machines: Machines, room: int
) -> Alternative:
    share = size / max(1, plan.n_tiles * plan.tile_bytes)
    to_write = max(0, size - plan.n_present * plan.tile_bytes)
    to_compute = plan.cells * to_write / max(1, plan.new_bytes)
    build = (to_compute * speeds.compute + to_write * speeds.write) / machines.n_threads
    read = demand.passes * size * speeds.read / machines.n_training
    if machines.read_bandwidth is not None:
        read = max(read, demand.passes * size / machines.read_bandwidth)
    columns_of_pass = demand.columns / max(1.0, demand.passes)
    n_computed = (1 - share) * demand.values * float(n_rows) ** 2
    n_multiplied = share * demand.columns * n_rows**2 / 2 + n_computed * columns_of_pass  # a tile serves both sides
    spread = (n_computed * speeds.compute + n_multiplied * speeds.multiply) / machines.n_training
    own = share * demand.stored_seconds + (1 - share) * demand.computed_seconds
    training = read + spread + own
    return Alternative(keep, size, build, training, PROGRAM_BYTES + plan.peak_bytes, size <= room)
