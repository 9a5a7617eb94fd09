"""Whether the tiles of a plan fit where they shall go: bytes wanted and bytes free, before anything is written."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from math import isqrt

from gramline.learners.operators.layout import GramLayout
from gramline.pipeline.errors import NoRoomError, gigabytes
from gramline.pipeline.gram.plan import Plan
from gramline.pipeline.storage.places import is_local, local_path

NO_PLACE = ""  # of a plan that nobody has given a path


@dataclass(frozen=True)
class Room:
    """What shall be written, and what is free there."""

    place: str
    needed_bytes: int
    free_bytes: int | None  # None: nobody can say

    @classmethod
    def at(cls, place: str, needed_bytes: int) -> Room:
        """Of a path, whether there is something or not, or of a url; nothing is written."""
        return cls(place, needed_bytes, free_bytes(place))

    @property
    def said(self) -> str:
        """What is free, in words."""
        if self.free_bytes is not None:
            return f"{gigabytes(self.free_bytes)} free"
        return "an object store has no limit that can be asked" if self.place else "no path is given to look at"

    @property
    def fits(self) -> bool:
        return self.free_bytes is None or self.needed_bytes <= self.free_bytes

    def require(self, advice: str = "free some space, or choose another path") -> None:
        """Refuse what does not fit; the error has the fields of this record."""
        if not self.fits and self.free_bytes is not None:
            raise NoRoomError(self.place, self.needed_bytes, self.free_bytes, advice=advice)


def free_bytes(place: str) -> int | None:
    """Bytes that a user may still write to the disk of a path, which need not exist; None for a url that is none."""
    if not is_local(place):
        return None
    folder = local_path(place).absolute()
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


def require_room(plan: Plan, layout: GramLayout, place: str, dtype: str, compression: str) -> None:
    """Refuse the tiles of a plan that are more than the disk has left, and say what would fit.

    How small compressed tiles become is known when they are written: they are not refused.
    """
    if compression == "none":
        room = Room.at(place, plan.new_bytes)
        room.require(what_fits(layout, room.free_bytes or 0, plan, dtype))


def what_fits(layout: GramLayout, free: int, plan: Plan, dtype: str) -> str:
    """The advice for a plan that needs more than `free` bytes: another dtype, or so many rows."""
    if dtype == "float64" and plan.new_bytes // 2 <= free:
        return f"float32 tiles would fit: they need {gigabytes(plan.new_bytes / 2)}"
    if plan.n_present:
        return "free some space; what is finished is kept"
    height = layout.shape[0]
    fitting = {name: rows_that_fit(layout, free, size * plan.tile_bytes // 8) for name, size in _sizes(dtype)}
    counts = ", ".join(f"about {min(rows, height):,} as {name}" for name, rows in fitting.items())
    return f"of {height:,} rows (positions or structures) {counts} would fit: take fewer, or another path"


def _sizes(dtype: str) -> list[tuple[str, int]]:
    """Dtypes to choose from, with the eighths of a tile of `dtype` that a tile takes."""
    return [("float64", 8), ("float32", 4)] if dtype == "float64" else [("float32", 8)]


def rows_that_fit(layout: GramLayout, free: int, tile_bytes: int) -> int:
    """The most rows, in whole blocks, whose tiles take at most `free` bytes."""
    n_tiles = free // max(1, tile_bytes)
    triangle = (isqrt(8 * n_tiles + 1) - 1) // 2  # of n (n + 1) / 2 tiles
    n_blocks = triangle if layout.is_symmetric else n_tiles // layout.cols.n_blocks
    return n_blocks * layout.rows.block_rows
