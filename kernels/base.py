"""What a kernel is: a frozen record of parameters that turns two packed corpora into a tile.

A *position kernel* gives one row per position (token, node), a *structure kernel* one row per structure.
Knows no Dask, no Zarr, no files. Beside it, what kernels share to fill the memory of a tile in strips and chunks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gramline.kernels._jit import jit
from gramline.kernels.errors import KernelError, KernelOverflowError, PackingError
from gramline.kernels.packing import Features, Floats, Offsets, Packable, Packed, pack_pair
from gramline.kernels.parameters import Record

Tile = NDArray[Any]

STRIP_BYTES = 1 << 20  # kx of one strip: with as much again for 1 + U' it stays in the cache between the sweeps
CHUNK_COLUMNS = 512  # the tables of a recursion over one chunk stay in a fast cache


def tile_memory(n_rows: int, n_cols: int, dtype: DTypeLike, memory: Tile | None) -> Tile:
    """Where to write a tile: new memory, or the first rows of `memory`, C-contiguous but perhaps wider."""
    return np.empty((n_rows, n_cols), dtype) if memory is None else memory[:n_rows]


def placed(tile: Tile, dtype: DTypeLike, memory: Tile | None) -> Tile:
    """A finished tile as `dtype`, in `memory` where that is given."""
    if memory is None:
        return tile.astype(dtype, copy=False)
    target = memory[: tile.shape[0], : tile.shape[1]]
    target[:] = tile
    return target


def is_same(rows: Packed, cols: Packed) -> bool:
    """Whether both sides hold the same structures, so that the tile is symmetric."""
    if rows is cols:
        return True
    if len(rows) != len(cols) or not np.array_equal(rows.symbols, cols.symbols):
        return False
    left, right = rows.arrays(), cols.arrays()
    # Equal symbols are equal observations, so the features are equal too; no kernel reads the labels or the table.
    names = {name for name in left.keys() | right.keys() if not name.startswith("feature_")} - {"labels", "table"}
    return all(name in left and name in right and np.array_equal(left[name], right[name]) for name in names)


@jit
def mirror(tile: Tile) -> None:
    """Copy the upper triangle of a square tile onto its lower one.

    Block by block, each by way of a memory of its own: columns of a tile are so far apart that they push each other out
    of the cache.
    """
    n = tile.shape[0]
    block = 32
    upper = np.empty((block, block), tile.dtype)
    for i in range(0, n, block):
        n_rows = min(block, n - i)
        for j in range(0, i, block):
            for s in range(block):
                source = tile[j + s, i : i + n_rows]
                for r in range(n_rows):
                    upper[s, r] = source[r]
            for r in range(n_rows):
                target = tile[i + r, j : j + block]
                for s in range(block):
                    target[s] = upper[s, r]
        for r in range(i, i + n_rows):
            for s in range(i, r):
                tile[r, s] = tile[s, r]


def check_kernel(kernel: object) -> None:
    """Refuse what is not a kernel, such as its name or its class."""
    if not isinstance(kernel, Kernel):
        raise KernelError(f"expected a kernel such as SequenceLabeling(), got {kernel!r}")


def require_fit(tile: Tile, dtype: DTypeLike, kernel: str, advice: str) -> None:
    """Refuse a value beyond the range of `dtype`; the error names its row and its column."""
    largest = float(np.finfo(np.dtype(dtype)).max)
    if tile.size and not tile.max() <= largest:
        row, column = (int(index) for index in np.argwhere(~(tile <= largest))[0])
        raise KernelOverflowError(kernel, row, column, np.dtype(dtype).name, advice)


def structure_runs(offsets: Offsets, limit: int) -> Iterator[tuple[int, int]]:
    """Consecutive runs (first, last) of whole structures of at most `limit` entries; at least one structure each.

    The entries of structure s are offsets[s]:offsets[s + 1].
    """
    first, n_structures = 0, len(offsets) - 1
    while first < n_structures:
        last = int(np.searchsorted(offsets, offsets[first] + limit, side="right")) - 1
        last = min(max(last, first + 1), n_structures)
        yield first, last
        first = last


def row_strips(starts: Offsets, n_cols: int) -> Iterator[tuple[int, int]]:
    """Runs (first, last) of row structures, each of about STRIP_BYTES of kx against `n_cols` columns."""
    return structure_runs(starts, max(1, STRIP_BYTES // (8 * max(1, n_cols))))


def chunk_starts(starts: Offsets, width: int | None = None) -> Offsets:
    """First column of each chunk, and the end; a chunk has at most `width` columns, unless one structure has more."""
    runs = structure_runs(starts, CHUNK_COLUMNS if width is None else width)
    return np.array([0, *(int(starts[last]) for _, last in runs)], np.int64)


class Kernel(Record):
    """A positive semidefinite similarity between structures or between their positions."""

    what: ClassVar[str] = "a kernel such as sequence-labeling"
    packed_kind: ClassVar[str]  # the `kind` of packed corpus it reads
    per_position: ClassVar[bool]  # True: a row per position; False: a row per structure

    def prepare(self, packed: Packed, like: Packed | None = None) -> Packed:  # noqa: ARG002
        """`packed` with everything resolved that the tiles need (observation codes, prior).

        `like` is the prepared training corpus when `packed` holds new structures. Checks the kind; a kernel
        extends it. What it returns is what stores keep and `tile` reads.
        """
        self.require_kind(packed.kind)
        return packed

    def require_kind(self, kind: str) -> None:
        """Refuse a corpus of another kind of structure."""
        if kind != self.packed_kind:
            problem = f"{type(self).__name__} compares {self.packed_kind}, but the corpus holds {kind}"
            raise PackingError(problem, owner=type(self))

    def check_prepared(self, packed: Packed) -> None:
        """Refuse a stored corpus of another kind; a kernel with an alphabet of its own also checks the codes."""
        self.require_kind(packed.kind)

    @abstractmethod
    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        """Kernel values between all rows of two prepared corpora as `dtype`; float32 ones may be computed in float32.

        A value depends on its two structures alone, bit for bit, not on the others of the tile.
        Shape (row_count(rows), row_count(cols)). Raises KernelOverflowError instead of returning inf or nan.
        `memory` is reused where given: a C-contiguous array of `dtype`, as large or larger. The tile is then a view of
        its first rows and columns; the others hold anything. New memory takes as long as a third of a tile.
        """

    @abstractmethod
    def diagonal(self, packed: Packed) -> Floats:
        """k(x, x) of every row of a prepared corpus."""

    def label_matrix(self) -> Floats | None:
        """The label kernel k_y, shape (n_labels, n_labels); None for the identity."""
        return None

    def row_lengths(self, packed: Packed) -> Offsets:
        """How many rows each structure has in the Gram matrix."""
        return packed.lengths if self.per_position else np.ones(len(packed), np.int64)

    def units(self, packed: Packed) -> Packed:
        """A prepared corpus with the same rows, in the smallest structures that can be compared by themselves."""
        return packed

    def feature_rows(self, packed: Packed) -> Features | None:  # noqa: ARG002
        """Rows phi with k(x, x') = phi(x) . phi(x') that cost no more than the corpus; None where there are none."""
        return None

    def prepared_pair(
        self, corpus: Packable | Packed, other: Packable | Packed | None = None
    ) -> tuple[Packed, Packed | None]:
        """Both corpora packed in one vocabulary and prepared; the second in terms of the first."""
        rows, cols = pack_pair(corpus, other)
        ready = self.prepare(rows)
        return ready, None if cols is None else self.prepare(cols, like=ready)

    def gram(self, corpus: Packable | Packed, other: Packable | Packed | None = None) -> Tile:
        """The whole Gram matrix in memory, rows in corpus order: for data that fits."""
        rows, cols = self.prepared_pair(corpus, other)
        return self.tile(rows, rows if cols is None else cols)
