"""Which structures lie in which block, and which blocks hold some rows and columns.

Rows of a Gram matrix are laid out whole structures at a time, in corpus order, into blocks of at most
`block_rows` rows. Learners see rows without padding; a store pads each block to `block_rows`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.parameters import plain_value
from gramline.kernels.ranges import offsets_from_lengths
from gramline.kernels.value_kinds import Number
from gramline.learners.arrays import Indices, Tile
from gramline.learners.errors import LayoutError

DEFAULT_BLOCK_ROWS = 2048
SMALL_BLOCK_ROWS = (512, 1024)  # for data that fits into one such block: a padded tile of 2048 rows takes 32 MB
Key = tuple[int, int]
Stream = Callable[[list[Key]], Iterable[tuple[Key, Tile]]]  # stored tiles by key, in the order asked for


@dataclass(frozen=True, eq=False)
class BlockLayout:
    """Consecutive structures packed into blocks."""

    lengths: Indices  # rows of each structure, shape (n_structures,)
    block_structures: Indices  # first structure of each block, and the end, shape (n_blocks + 1,)
    block_rows: int  # rows of a stored block, padding included

    @classmethod
    def of(cls, lengths: ArrayLike, block_rows: int | None = None) -> BlockLayout:
        """Blocks filled greedily; a block size that was not given fits small data, and the longest structure."""
        sizes = _whole_numbers(lengths)
        longest = int(sizes.max(initial=0))
        if block_rows is not None:
            block_rows = plain_value("block_rows", Number(whole=True, least=1), block_rows, LayoutError)
        else:
            fitting = (size for size in SMALL_BLOCK_ROWS if sizes.sum() <= size)
            block_rows = max(next(fitting, DEFAULT_BLOCK_ROWS), longest)
        if longest > block_rows:
            raise LayoutError(
                f"structure {int(sizes.argmax())} has {longest} rows, more than a block of {block_rows}; "
                f"use a block size of at least {longest}"
            )
        return cls(sizes, np.array([*_block_starts(sizes, block_rows), len(sizes)], np.int64), block_rows)

    def appended(self, lengths: ArrayLike) -> BlockLayout:
        """The layout with more structures; they start a new block, so finished tiles stay as they are."""
        more = BlockLayout.of(lengths, self.block_rows)
        blocks = np.concatenate([self.block_structures, len(self.lengths) + more.block_structures[1:]])
        return BlockLayout(np.concatenate([self.lengths, more.lengths]), blocks, self.block_rows)

    @property
    def n_structures(self) -> int:
        return len(self.lengths)

    @property
    def n_blocks(self) -> int:
        return len(self.block_structures) - 1

    @property
    def n_rows(self) -> int:
        return int(self.structure_starts[-1])

    @cached_property
    def structure_starts(self) -> Indices:
        """First row of each structure, and the end, shape (n_structures + 1,)."""
        return offsets_from_lengths(self.lengths)

    @cached_property
    def block_starts(self) -> Indices:
        """First row of each block, and the end, shape (n_blocks + 1,)."""
        return self.structure_starts[self.block_structures]

    def rows(self, block: int) -> slice:
        """Rows of a block, without padding."""
        return slice(int(self.block_starts[block]), int(self.block_starts[block + 1]))

    def rows_after(self, block: int, n: int, *, is_last: bool = False) -> list[slice]:
        """Rows of the next `n` blocks of a learner that visits all in turn; none of another round in its last one."""
        coming = range(block + 1, block + 1 + min(n, self.n_blocks - 1))
        return [self.rows(k % self.n_blocks) for k in coming if k < self.n_blocks or not is_last]

    def structures(self, block: int) -> slice:
        """Structures of a block."""
        return slice(int(self.block_structures[block]), int(self.block_structures[block + 1]))


def _block_starts(sizes: Indices, block_rows: int) -> Iterator[int]:
    """The first structure of every block."""
    filled = block_rows + 1
    for structure, size in enumerate(sizes.tolist()):
        filled += size
        if filled > block_rows:
            yield structure
            filled = size


@dataclass(frozen=True, eq=False)
class GramLayout:
    """Rows and columns of a Gram matrix; a symmetric one has the same layout twice and stores i <= j only."""

    rows: BlockLayout
    cols: BlockLayout
    is_symmetric: bool

    @classmethod
    def of(cls, lengths: ArrayLike, other_lengths: ArrayLike | None, block_rows: int | None) -> GramLayout:
        """Symmetric unless `other_lengths` are given, those of the columns."""
        rows = BlockLayout.of(lengths, block_rows)
        return (
            cls.symmetric(rows)
            if other_lengths is None
            else cls(rows, BlockLayout.of(other_lengths, block_rows), False)
        )

    @classmethod
    def symmetric(cls, rows: BlockLayout) -> GramLayout:
        return cls(rows, rows, True)

    @classmethod
    def rectangular(cls, rows: BlockLayout, cols: BlockLayout) -> GramLayout:
        return cls(rows, cols, False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows.n_rows, self.cols.n_rows

    def require_symmetric(self, what: str) -> None:
        """Refuse a matrix between two corpora, which has no such thing as `what`."""
        if not self.is_symmetric:
            raise LayoutError(f"only a symmetric Gram matrix has {what}, this one is {self.shape} between two corpora")

    def tiles(self) -> Iterator[tuple[int, int]]:
        """Stored block pairs in row order."""
        for i in range(self.rows.n_blocks):
            for j in range(i if self.is_symmetric else 0, self.cols.n_blocks):
                yield i, j

    @property
    def n_tiles(self) -> int:
        n, m = self.rows.n_blocks, self.cols.n_blocks
        return n * (n + 1) // 2 if self.is_symmetric else n * m


def _whole_numbers(lengths: ArrayLike) -> Indices:
    try:
        sizes = np.asarray(lengths)
    except ValueError:  # lists of several lengths
        sizes = np.zeros((0, 0))
    if sizes.ndim != 1 or (len(sizes) and not np.issubdtype(sizes.dtype, np.integer)):
        raise LayoutError(f"lengths must list how many positions each structure has, got {lengths!r}")
    if sizes.min(initial=0) < 0:
        raise LayoutError(f"structure {int(sizes.argmin())} has {sizes.min()} positions; a length is at least 0")
    return sizes.astype(np.int64)


def select_rows(
    layout: GramLayout, stream: Stream, rows: Indices, cols: Indices, dtype: np.dtype[Any] | None = None
) -> Tile:
    """G[rows][:, cols], float64 unless `dtype` says otherwise.

    Every tile that holds some of it is read once, also when it serves (i, j) and (j, i).
    """
    result = np.empty((len(rows), len(cols)), dtype)
    for key, tile in stream(tiles_of(layout, rows, cols)):
        for to_rows, to_cols, values in chosen_of(layout, key, tile, rows, cols):
            result[np.ix_(to_rows, to_cols)] = values
    return result


def tiles_of(layout: GramLayout, rows: Indices, cols: Indices) -> list[Key]:
    """The stored tiles that hold some of G[rows][:, cols]."""
    row_groups, col_groups = by_block(layout.rows.block_starts, rows), by_block(layout.cols.block_starts, cols)
    return sorted({(i, j) if i <= j or not layout.is_symmetric else (j, i) for i in row_groups for j in col_groups})


def chosen_of(
    layout: GramLayout, key: Key, tile: Tile, rows: Indices, cols: Indices
) -> Iterator[tuple[Indices, Indices, Tile]]:
    """What a stored tile holds of G[rows][:, cols]: places in `rows`, places in `cols`, and the values there."""
    i, j = key
    for left, right, side in [(i, j, tile)] if i == j or not layout.is_symmetric else [(i, j, tile), (j, i, tile.T)]:
        to_rows, to_cols = _inside(layout.rows, left, rows), _inside(layout.cols, right, cols)
        if len(to_rows) and len(to_cols):
            from_rows = rows[to_rows] - layout.rows.block_starts[left]
            from_cols = cols[to_cols] - layout.cols.block_starts[right]
            yield to_rows, to_cols, side[np.ix_(from_rows, from_cols)]


def _inside(layout: BlockLayout, block: int, rows: Indices) -> Indices:
    """Places of those of `rows` that are in a block."""
    own = layout.rows(block)
    return np.flatnonzero((rows >= own.start) & (rows < own.stop))


def by_block(block_starts: Indices, rows: Indices) -> dict[int, Indices]:
    """For every block that holds some of `rows`, in order: their places in `rows`."""
    blocks = np.searchsorted(block_starts, rows, side="right") - 1
    return {block: np.flatnonzero(blocks == block) for block in np.unique(blocks).tolist()}
