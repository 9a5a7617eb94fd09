"""StoredGram: a Gram matrix in a store, seen as the operator that learners work with; streams, never holds it whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.packing import MISSING, Packed, concatenate
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.cholesky import cholesky
from gramline.learners.linear_algebra.factor import Factor
from gramline.learners.operators.comparison import Computing
from gramline.learners.operators.counts import computed
from gramline.learners.operators.layout import GramLayout, Key, by_block, select_rows, tiles_of
from gramline.learners.operators.orders import Spreader
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.errors import StoreError
from gramline.pipeline.executors.base import Executor, InlineExecutor, StartsTasks
from gramline.pipeline.gram.cholesky import FACTOR_LIMIT, plan_factor, stored_cholesky
from gramline.pipeline.gram.product import TileProduct, TileReader, Total, squares
from gramline.pipeline.gram.spread_product import is_worth_spreading, spread_product
from gramline.pipeline.gram.spread_rows import spread_digests, spread_select
from gramline.pipeline.gram.status import GramStatus
from gramline.pipeline.gram.store import TileStore, absolute
from gramline.pipeline.storage.places import is_in_memory

MOST = 0.25  # of the entries of a tile
SPREAD_ROWS = 6_000  # fewer are learned from sooner than orders are written and read


class StoredGram:
    """G[s, t] = k(x_s, x_t) in a store, as the `GramOperator` that learners work with; tiles are streamed.

    Rows and columns are positions (or structures) in corpus order. `build_gram` and `StoredGram.open(path)` make one.
    It may cache the rows that a smaller factor needs for as long as the factorisation takes (`dense`).

    Attributes
    ----------
    shape : (n_rows, n_columns)
    executor : runs what is too much for one process (this process unless set to a Dask one): products with many tiles,
        and Cholesky factors of more than `factor_limit` bytes, made by tiles in a scratch group beside the store
    kernel, layout, dtype, labels : of the matrix; `row_corpus` and `col_corpus` are its packed corpora

    >>> import tempfile
    >>> import numpy as np
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, StoredGram, build_gram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = build_gram(SequenceLabeling(c=1.0), Corpus.from_sequences([["a"], ["a"]]), f"{folder}/a.gram.zarr")
    ...     StoredGram.open(f"{folder}/a.gram.zarr").matmul(np.ones((2, 1)))
    array([[2.],
           [2.]])
    """

    def __init__(self, store: TileStore) -> None:
        if not isinstance(store, TileStore):
            raise StoreError(
                f"StoredGram holds an open store, got {type(store).__name__}", advice="use StoredGram.open"
            )
        self.store = store
        self.factor_limit = FACTOR_LIMIT
        self.executor: Executor = InlineExecutor()
        self.tile_reads = 0  # stored tiles read so far

    @cached_property
    def _reader(self) -> TileReader:
        return TileReader(self.store)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> StoredGram:
        """The Gram matrix at `path`; a path that is not a store is refused."""
        return cls(TileStore(absolute(path)))

    def __repr__(self) -> str:
        return f"StoredGram({self.path!r}, shape={self.shape}, dtype={self.dtype})"

    @property
    def path(self) -> str:
        return self.store.url

    @property
    def kernel(self) -> Kernel:
        return self.store.kernel

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.store.tiles.dtype

    @property
    def layout(self) -> GramLayout:
        return self.store.layout

    @property
    def shape(self) -> tuple[int, int]:
        return self.layout.shape

    # ---- the corpora

    @cached_property
    def row_corpus(self) -> Packed:
        """The prepared row corpus, whole."""
        return concatenate([self.store.read_block(i) for i in range(self.layout.rows.n_blocks)])

    @cached_property
    def col_corpus(self) -> Packed:
        """The prepared column corpus; the row corpus when the matrix is symmetric."""
        if self.layout.is_symmetric:
            return self.row_corpus
        return concatenate([self.store.read_block(j, of_columns=True) for j in range(self.layout.cols.n_blocks)])

    @property
    def recipe(self) -> Recipe | None:
        """How the row corpus was read and described, for `Model.of`; None where the store does not say."""
        return self.store.recipe

    @property
    def label_names(self) -> tuple[str, ...] | None:
        return self.store.row_vocabulary.labels or None

    @property
    def labels(self) -> list[list[str | None]]:
        """Labels of the row corpus, per structure and position; None where there is none."""
        return _labels(self.row_corpus)

    @property
    def col_labels(self) -> list[list[str | None]]:
        return _labels(self.col_corpus)

    @property
    def row_prior(self) -> Matrix | None:
        return self.row_corpus.prior

    @property
    def col_prior(self) -> Matrix | None:
        return self.col_corpus.prior

    @cached_property
    def label_kernel(self) -> Matrix | None:
        return self.kernel.label_matrix()

    # ---- the numbers

    def tile(self, i: int, j: int) -> NDArray[Any]:
        self._count([(i, j)])
        if self.layout.is_symmetric and i > j:
            return self._reader.read(j, i).T
        return self._reader.read(i, j)

    def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, NDArray[Any]]]:
        chosen = range(self.layout.rows.n_blocks) if rows is None else rows
        mirrored = self.layout.is_symmetric
        keys = [(j, i) if mirrored and i > j else (i, j) for i in chosen]
        for i, (_, tile) in zip(chosen, self._stream(keys), strict=True):
            yield i, tile.T if mirrored and i > j else tile

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        """G @ W (or G.T @ W) in float64; every stored tile is read at most once and serves (i, j) and (j, i).

        W in float32 asks for single-precision products of each strip of a tile (sums over strips stay float64).
        Tasks of `executor` share the tiles when that is a cluster and there are enough of them.
        """
        product = TileProduct(self.layout, W, transpose=transpose)
        keys = product.tiles()
        if self._is_worth_spreading(keys):
            self._count(keys)
            return spread_product(self.store, product, self.executor, transpose=transpose)
        total = Total(self.layout, W.shape[1], transpose=transpose)
        parts = squares(self.layout, keys)
        ends = {part[-1] for part in parts}
        # The strips are too small to be worth a thread's while; the second core reads.
        with one_blas_thread():
            for key, tile in self._stream([key for part in parts for key in part]):
                product.add(*key, tile)
                if key in ends:
                    total.add(product.taken())
        return total.result()

    def _stream(self, keys: list[Key]) -> Iterator[tuple[Key, NDArray[Any]]]:
        for key, tile in self._reader.stream(keys):
            self._count([key])
            yield key, tile

    def _count(self, keys: Iterable[Key]) -> None:
        """Tiles that are left out are computed, not read."""
        self.tile_reads += sum(self.keeps(*key) for key in keys)

    # ---- for learners that ask for changed rows only

    def computing(self) -> Computing | None:
        """How tiles that are left out are computed; None where all are kept."""
        is_whole = self.n_kept == self.layout.n_tiles
        return None if is_whole else Computing(self.kernel, self.row_corpus, self.dtype)

    @property
    def n_kept(self) -> int:
        """How many of its tiles are stored, once they are done."""
        return self.store.keep.n_tiles(self.layout, self.store.tiles.tile_bytes)

    def spreader(self, n_columns: Sequence[int]) -> Spreader | None:
        """The workers of `executor`, where there are any and the matrix is large enough to be worth their while."""
        executor = self.executor
        if not isinstance(executor, StartsTasks) or is_in_memory(self.path) or self.shape[0] < SPREAD_ROWS:
            return None
        from gramline.pipeline.gram.updates import UpdateSpreader  # which opens stored Grams on the workers

        return UpdateSpreader(self.store, executor, n_columns, self._count_worker_reads)

    def _count_worker_reads(self, n_tiles: int) -> None:
        self.tile_reads += n_tiles

    def keeps(self, i: int, j: int) -> bool:
        """Whether the tile of blocks i and j is stored."""
        return self.store.keeps(j, i) if self.layout.is_symmetric and i > j else self.store.keeps(i, j)

    def count_values(self, n_values: int) -> None:
        self.store.values_computed += n_values
        computed.add(n_values)

    @property
    def values_computed(self) -> int:
        """Kernel values computed so far, by this process, because their tiles are not kept."""
        return self.store.values_computed

    def diagonal(self) -> Matrix:
        self.layout.require_symmetric("a diagonal")
        keys = [(i, i) for i in range(self.layout.rows.n_blocks)]
        return np.concatenate([np.diagonal(tile).astype(float) for _, tile in self._stream(keys)])

    @property
    def col_diagonal(self) -> Matrix | None:
        return self.diagonal() if self.layout.is_symmetric else self.kernel.diagonal(self.col_corpus)

    def cholesky(self, scale: ArrayLike, shift: ArrayLike = 1.0, rows: NDArray[np.int64] | None = None) -> Factor:
        """By LAPACK when that fits into `factor_limit` bytes; otherwise by tiles on disk, as tasks of `executor`."""
        self.layout.require_symmetric("a Cholesky factor")
        chosen = np.arange(self.shape[0]) if rows is None else np.asarray(rows, np.int64)
        matrix = self.dense(chosen)
        if matrix is not None:
            return cholesky(matrix, scale, shift)
        return stored_cholesky(self.store, chosen, scale, shift, self.executor)

    def dense(self, rows: NDArray[np.int64]) -> NDArray[Any] | None:
        """G[rows, rows] where it fits into `factor_limit` bytes together with a factor."""
        is_tiled = plan_factor(self.store, len(rows), self.factor_limit).is_tiled
        return None if is_tiled else self.select(rows, rows)

    def select(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> NDArray[Any]:
        """G[rows][:, cols] in memory; reads only the tiles that hold some of it."""
        keys = tiles_of(self.layout, rows, cols)
        # Most of a stored tile is read sooner than it is written and read once more.
        is_most = len(rows) * len(cols) > MOST * len(keys) * self.layout.rows.block_rows * self.layout.cols.block_rows
        if self._is_worth_spreading(keys) and not (is_most and all(self.keeps(*key) for key in keys)):
            self._count(keys)
            return spread_select(self.store, keys, rows, cols, self.executor)
        return select_rows(self.layout, self._stream, rows, cols, self.dtype)

    def row_digests(self, rows: Indices) -> list[bytes] | None:
        """16 bytes for each row, made by the workers of `executor`; None where there are none, or few tiles."""
        if not self._is_worth_spreading(list(self.layout.tiles())):
            return None
        n_blocks = len(by_block(self.layout.rows.block_starts, rows))
        self.tile_reads += n_blocks * self.layout.cols.n_blocks
        return spread_digests(self.store, rows, self.executor)

    def _is_worth_spreading(self, keys: list[Key]) -> bool:
        """Tasks know the store, not a part of it."""
        return self.shape == self.store.layout.shape and is_worth_spreading(self.store, keys, self.executor)

    def blocks(self) -> Iterator[tuple[slice, slice, NDArray[Any]]]:
        """(rows, columns, values) of every block of the full matrix."""
        rows, cols = self.layout.rows, self.layout.cols
        for (i, j), tile in self._stream(list(self.layout.tiles())):
            yield rows.rows(i), cols.rows(j), tile
            if self.layout.is_symmetric and i != j:
                yield rows.rows(j), cols.rows(i), tile.T

    def to_numpy(self) -> NDArray[Any]:
        """The whole matrix in memory."""
        result = np.empty(self.shape, self.dtype)
        for rows, cols, values in self.blocks():
            result[rows, cols] = values
        return result

    def to_dask(self) -> Any:
        """The whole matrix, mirrored and without padding, as a lazy dask array with one chunk per block."""
        from gramline.pipeline.gram.lazy import stored_gram_array  # only who asks for it needs Dask

        return stored_gram_array(self.store)

    def status(self) -> GramStatus:
        """How much is done; reads no tile."""
        store, layout = self.store, self.layout
        return GramStatus(
            path=store.url,
            shape=self.shape,
            is_symmetric=layout.is_symmetric,
            n_structures=(layout.rows.n_structures, layout.cols.n_structures),
            dtype=self.dtype.name,
            compression=store.compression,
            block_rows=layout.rows.block_rows,
            n_tiles=self.n_kept,
            n_present=len(store.present()),
            n_left_out=layout.n_tiles - self.n_kept,
            keep=str(store.keep),
            stored_bytes=store.tiles.stored_bytes(),
            n_segments=len(store.spec.rows),
            kernel=store.spec.kernel,
            fingerprint=store.spec.fingerprint(),
        )


def _labels(packed: Packed) -> list[list[str | None]]:
    names = packed.vocabulary.labels
    flat = [None if code == MISSING else names[code] for code in packed.labels.tolist()]
    return [flat[low:high] for low, high in pairwise(packed.starts.tolist())]
