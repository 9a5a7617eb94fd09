"""Which tiles a store keeps: all, none, or as many as fit into so many bytes. The others are computed when asked for.

The tiles that are kept come first in an order that does not change when the matrix grows, so that what was kept stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Kind, Refused
from gramline.learners.operators.layout import GramLayout
from gramline.pipeline.errors import InputError, gigabytes
from gramline.pipeline.settings_file import Size

ALL, NONE = "all", "none"


class KeepKind(Kind):
    """`all`, `none`, or a size; kept as one of the words or as a number of bytes."""

    words = "all, none, or a size such as 40GB"

    def plain(self, value: Any) -> str | int:
        if isinstance(value, str) and value.strip().lower() in (ALL, NONE):
            return value.strip().lower()
        try:
            return Size().plain(value)
        except Refused:
            raise Refused from None

    @property
    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"enum": [ALL, NONE]}, *Size().schema["anyOf"]]}


@dataclass(frozen=True)
class Keep:
    """A policy: at most `n_bytes` of tiles on disk (None: all), and `cache_bytes` of others in each process."""

    n_bytes: int | None = None
    cache_bytes: int = 0

    @classmethod
    def of(cls, keep: str | int = ALL, cache: str | int | None = None) -> Keep:
        """From what a user says: "all", "none" or a size, and the size of the cache in memory."""
        wanted = plain_value("keep", KeepKind(), keep, InputError)
        cache_bytes = 0 if cache is None else plain_value("tile_cache", Size(), cache, InputError)
        if wanted == ALL:
            if cache_bytes:
                raise InputError(
                    "tile_cache has no effect where all tiles are kept", advice="leave it out, or keep fewer tiles"
                )
            return cls()
        return cls(0 if wanted == NONE else int(wanted), int(cache_bytes))

    @classmethod
    def from_dict(cls, description: dict[str, Any] | None) -> Keep:
        """Of a store; one that says nothing keeps all."""
        return cls() if description is None else cls(int(description["bytes"]), int(description["cache"]))

    def to_dict(self) -> dict[str, int] | None:
        return None if self.n_bytes is None else {"bytes": self.n_bytes, "cache": self.cache_bytes}

    @property
    def is_all(self) -> bool:
        return self.n_bytes is None

    def __str__(self) -> str:
        if self.n_bytes is None:
            return ALL
        return gigabytes(self.n_bytes) if self.n_bytes else NONE

    def n_tiles(self, layout: GramLayout, tile_bytes: int) -> int:
        """How many tiles are kept."""
        return layout.n_tiles if self.n_bytes is None else min(layout.n_tiles, self.n_bytes // tile_bytes)

    def keeps(self, layout: GramLayout, tile_bytes: int, i: int, j: int) -> bool:
        """Whether stored tile (i, j), i <= j where the matrix is symmetric, is kept."""
        return self.n_bytes is None or rank(layout, i, j) < self.n_bytes // tile_bytes

    def check(self, tile_bytes: int) -> None:
        """Refuse a size in which no tile has room."""
        if self.n_bytes and self.n_bytes < tile_bytes:
            raise InputError(
                f"keep {gigabytes(self.n_bytes)} is less than one tile of {gigabytes(tile_bytes)}",
                advice="give a larger size, smaller blocks, or none",
            )
        if self.cache_bytes and self.cache_bytes < tile_bytes:
            raise InputError(
                f"a tile_cache of {gigabytes(self.cache_bytes)} is less than one tile of {gigabytes(tile_bytes)}",
                advice="give a larger size, smaller blocks, or leave it out",
            )


def rank(layout: GramLayout, i: int, j: int) -> int:
    """The place of a stored tile among all: by columns of the upper triangle, so that an append adds at the end."""
    return j * (j + 1) // 2 + i if layout.is_symmetric else i * layout.cols.n_blocks + j


EVERYTHING = Keep()


def wanted_keep(keep: str | int | None, cache: str | int | None) -> Keep | None:
    """What a user asks for; None where nothing is said, so that an existing store keeps its own."""
    return None if keep is None and cache is None else Keep.of(ALL if keep is None else keep, cache)
