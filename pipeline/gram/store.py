"""TileStore: one self-contained group per Gram matrix, holding its kernel, its corpora in blocks and its tiles.

A tile is done when its chunk is there: the fill value is NaN, every tile is checked finite before it is written, one
task writes one whole chunk, and a checksum ends it. There is no second ledger that could disagree.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelError, KernelOverflowError
from gramline.kernels.packing import Packed, Vocabulary
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.counts import counted
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.learners.operators.tile_cache import TileCache
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.cost import meter
from gramline.pipeline.errors import CorpusError, StoreDamagedError, StoreError, TileCorruptError
from gramline.pipeline.files import path_text
from gramline.pipeline.gram.block_cache import cached_block
from gramline.pipeline.gram.keep import EVERYTHING, Keep
from gramline.pipeline.gram.packed_blocks import CORPUS, PackedBlocks, write_blocks
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.strays import segment_named
from gramline.pipeline.storage.finite_loops import all_finite
from gramline.pipeline.storage.groups import (
    COMPRESSIONS,
    ROWS,
    TILE_BYTES,
    NewArray,
    check_format,
    open_group,
    read_attributes,
)
from gramline.pipeline.storage.places import STORE, is_local, local_path, storage_error, storage_errors
from gramline.pipeline.storage.tile_array import ChunkError, TileArray
from gramline.pipeline.storage.writer import REVISION, GroupWriter, write_attributes

TILES = "tiles"  # name of the tile array
STORE_FORMAT = 2  # of what is on disk; 1 had no seal on its attributes
READABLE = (1, 2)
NOT_RETRYABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EFBIG)


def absolute(path: str | os.PathLike[str]) -> str:
    """The url of a store in the form that means the same on every worker."""
    url = path_text(path)
    return str(local_path(url).absolute()) if is_local(url) else url


class TileStore:
    """An open store. Reading and writing tiles is safe from many threads and processes at once."""

    def __init__(self, url: str) -> None:
        """Open; whatever is not a finished Gram store of this format is refused."""
        self.url = url
        self._attributes = _attributes(url)
        try:
            self.spec = _spec(url, self._attributes["spec"])
            segments = self._attributes["segments"]
            self._rows = _open_segments(url, segments["rows"])
            self._cols = _open_segments(url, segments["cols"])
            rows = _joined([segment.layout for segment in self._rows])
            self.layout = (
                GramLayout.rectangular(rows, _joined([segment.layout for segment in self._cols]))
                if self._cols
                else GramLayout.symmetric(rows)
            )
            self.compression = str(self._attributes["compression"])
            self.keep = Keep.from_dict(self._attributes.get("keep"))
            recipe = self._attributes.get("recipe")
            self.recipe = None if recipe is None else Recipe.from_dict(recipe)  # how the row corpus was made, if known
        except CorpusError as error:
            raise StoreDamagedError(error.problem, url) from None
        except StoreError:
            raise
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            what = f"{type(error).__name__}: {error}"
            raise StoreDamagedError(f"its description cannot be read ({what})", url) from None
        _check_sizes(url, self.layout)
        self.tiles = TileArray(url, TILES)
        self._check_tiles()
        self._computed = TileCache(self.keep.cache_bytes)
        self.values_computed = 0  # of tiles that are not kept, by this object

    @staticmethod
    def write(
        url: str,
        spec: GramSpec,
        corpora: tuple[Packed, Packed | None],
        layout: GramLayout,
        compression: str,
        recipe: Recipe | None = None,
        keep: Keep = EVERYTHING,
    ) -> bool:
        """A new store of prepared corpora without any tile; False when somebody else was faster, theirs stays."""
        rows, cols = corpora
        if compression not in COMPRESSIONS:
            raise StoreError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")
        chunks = (layout.rows.block_rows, layout.cols.block_rows)
        with storage_errors(url), GroupWriter(url) as writer:
            group = writer.group
            segments = {
                "rows": [write_blocks(group, "rows/0", rows, layout.rows)],
                "cols": [] if cols is None else [write_blocks(group, "cols/0", cols, layout.cols)],
            }
            NewArray(tiled_shape(layout), chunks, spec.dtype, np.nan, compression).create(group, TILES)
            about: dict[str, Any] = {"spec": spec.to_dict(), "compression": compression, "segments": segments}
            if recipe is not None:
                about["recipe"] = recipe.to_dict()
            if not keep.is_all:
                about["keep"] = keep.to_dict()
            return writer.commit({"gramline": "gram", "format": STORE_FORMAT, **about})

    def grown_layout(self, layout: BlockLayout) -> GramLayout:
        """That of the symmetric matrix with one more segment of rows."""
        return GramLayout.symmetric(_joined([*(part.layout for part in self._rows), layout]))

    def appended(self, spec: GramSpec, rows: Packed, layout: BlockLayout) -> TileStore:
        """The store with one more segment of rows; visible once the attributes, written last, are there."""
        number = len(self._rows)
        with storage_errors(self.url):
            group = open_group(self.url)
            segment = write_blocks(group, f"rows/{number}", rows, layout, since=self.row_vocabulary)
            self.tiles.resize(tiled_shape(self.grown_layout(layout)))
            segments = self._attributes["segments"]
            changed = {"spec": spec.to_dict(), "segments": segments | {"rows": [*segments["rows"], segment]}}
            with segment_named(self.url, group, segment["folder"]):
                write_attributes(group, {**self._attributes, **changed, "format": STORE_FORMAT})
        return TileStore(self.url)

    def _check_tiles(self) -> None:
        """The tile array is the one that the layout and the spec ask for."""
        chunks = (self.layout.rows.block_rows, self.layout.cols.block_rows)
        stored = (self.tiles.shape, self.tiles.chunks, self.tiles.dtype.name)
        grown = (self.tiles.shape, chunks, self.spec.dtype)  # an append that was cut off leaves it larger
        wanted = (tiled_shape(self.layout), chunks, self.spec.dtype)
        is_larger = all(here >= needed for here, needed in zip(self.tiles.shape, wanted[0], strict=True))
        if stored != (grown if is_larger else wanted):
            here = f"its tiles are {stored[2]} {stored[1]} of {stored[0]}"
            raise StoreDamagedError(f"{here} instead of {wanted[2]} {wanted[1]} of {wanted[0]}", self.url)

    @cached_property
    def identity(self) -> str:
        """Changes whenever the spec, the blocks or the segments do; that somebody swept the store is no change."""
        text = json.dumps({key: value for key, value in self._attributes.items() if key != REVISION}, sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel, rebuilt from its dictionary."""
        try:
            return from_dict(self.spec.kernel, Kernel)  # type: ignore[type-abstract]
        except (KernelError, AttributeError, TypeError, RecursionError) as error:
            raise StoreError(
                f"the kernel of {self.url} cannot be made here: {error}",
                advice="its values can be read and exported, for all else rebuild it with a kernel that this version "
                "of gramline takes",
            ) from None

    @property
    def row_vocabulary(self) -> Vocabulary:
        return self._rows[-1].vocabulary

    def block_bytes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Bytes of every block of rows and of columns in memory."""
        rows = np.concatenate([segment.block_bytes() for segment in self._rows])
        return rows, np.concatenate([segment.block_bytes() for segment in self._cols]) if self._cols else rows

    def read_block(self, block: int, *, of_columns: bool = False) -> Packed:
        """A block of the prepared row corpus (or of the columns') as a packed corpus of its own."""
        segments = self._cols if of_columns and self._cols else self._rows
        layout = self.layout.cols if of_columns and self._cols else self.layout.rows
        local = block
        for segment in segments:
            if local < len(segment):
                packed = segment.read(local, segments[-1].vocabulary)
                break
            local -= len(segment)
        else:
            raise IndexError(f"{self.url} has no block {block}")
        kernel = self.kernel
        try:
            kernel.check_prepared(packed)
        except ValueError as error:
            raise self._damaged_block(block, str(error)) from None
        if not np.array_equal(kernel.row_lengths(packed), layout.lengths[layout.structures(block)]):
            raise self._damaged_block(block, "it has other structures than planned")
        return packed

    def _damaged_block(self, block: int, problem: str) -> StoreDamagedError:
        return StoreDamagedError(f"block {block}: {problem}", self.url, part=CORPUS)

    def keeps(self, i: int, j: int) -> bool:
        """Whether stored tile (i, j) is one that is kept; else it is computed when it is asked for."""
        return self.keep.keeps(self.layout, self.tiles.tile_bytes, i, j)

    @property
    def n_kept(self) -> int:
        """How many tiles are kept, once they are done."""
        return self.keep.n_tiles(self.layout, self.tiles.tile_bytes)

    def present(self) -> set[tuple[int, int]]:
        """Tiles to be kept that are done; an earlier version, which knows no others, may have stored more."""
        n_rows, n_cols = self.layout.rows.n_blocks, self.layout.cols.n_blocks
        return {
            (i, j)
            for i, j in self.tiles.present()
            if i < n_rows and j < n_cols and (i <= j or not self.layout.is_symmetric) and self.keeps(i, j)
        }

    def read_tile(self, i: int, j: int, buffer: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        """A stored tile without its padding, read-only, every number finite; see `TileArray.read` for `buffer`.

        A tile that is left out is computed: the same numbers, bit for bit.
        """
        if not self.keeps(i, j):
            return self.computed_tile(i, j)
        try:
            tile = self.tiles.read(i, j, buffer)
        except ChunkError as error:
            raise TileCorruptError(error.problem, self.url, (i, j)) from None
        meter.add(tiles_read=1, bytes_read=self.tiles.tile_bytes)
        rows, cols = self.layout.rows.rows(i), self.layout.cols.rows(j)
        return tile[: rows.stop - rows.start, : cols.stop - cols.start]

    def computed_tile(self, i: int, j: int) -> NDArray[Any]:
        """The tile from the corpora of the store, as it would have been stored; perhaps from the cache in memory."""
        tile = self._computed.find((i, j))
        if tile is None:
            rows = cached_block(self, i, of_columns=False)
            cols = cached_block(self, j, of_columns=not self.layout.is_symmetric)
            try:
                with one_blas_thread():
                    tile = counted(self.kernel.tile(rows, cols, self.tiles.dtype))
            except KernelOverflowError as error:
                raise in_corpus(error, self.layout, i, j) from None
            self.values_computed += tile.size
            self._computed.add((i, j), tile)
        return tile

    def write_tile(self, i: int, j: int, tile: NDArray[Any]) -> None:
        """Pad with zeros and store as one whole chunk; a tile with a value that is not finite is refused."""
        if not all_finite(tile):
            raise ValueError(f"tile ({i}, {j}) holds a value that is not a finite number and was not written")
        try:
            self.tiles.write(i, j, tile)
        except OSError as error:
            if error.errno in NOT_RETRYABLE:
                raise storage_error(self.url, error) from error
            raise  # may pass: the executor tries again
        meter.add(tiles_kept=1, bytes_written=self.tiles.tile_bytes)


def in_corpus(error: KernelOverflowError, layout: GramLayout, i: int, j: int) -> KernelOverflowError:
    """The error of tile (i, j) with the structures counted in their corpora instead of in its blocks."""
    error.row += layout.rows.structures(i).start
    if error.column is not None:
        error.column += layout.cols.structures(j).start
    error.is_cross = not layout.is_symmetric
    return error


def tiled_shape(layout: GramLayout) -> tuple[int, int]:
    """Shape of the tile array: whole blocks, padding included."""
    return layout.rows.n_blocks * layout.rows.block_rows, layout.cols.n_blocks * layout.cols.block_rows


def _spec(url: str, description: dict[str, Any]) -> GramSpec:
    try:
        return GramSpec.from_dict(description)
    except StoreError as error:
        raise StoreDamagedError(error.problem, url) from None


def _attributes(url: str) -> dict[str, Any]:
    attributes, is_sealed = read_attributes(url)
    STORE.require(url, attributes)
    check_format(url, "a Gram store", attributes.get("format"), READABLE, is_sealed)
    return attributes


def _check_sizes(url: str, layout: GramLayout) -> None:
    """What a store claims must hang together before anybody reserves memory for it."""
    for blocks in (layout.rows, layout.cols):
        edges = blocks.block_structures
        is_sound = (
            len(edges) > 1
            and edges[0] == 0
            and edges[-1] == len(blocks.lengths)
            and bool((np.diff(edges) > 0).all())
            and bool((blocks.lengths > 0).all())
            and float(blocks.lengths.sum(dtype=np.float64)) <= ROWS
            and int(np.diff(blocks.block_starts).max()) <= blocks.block_rows
        )
        if not is_sound:
            raise StoreDamagedError("its blocks do not fit its structures", url)
    tile_bytes = 8 * layout.rows.block_rows * layout.cols.block_rows
    if tile_bytes > TILE_BYTES:
        raise StoreError(
            f"{url} claims tiles of {layout.rows.block_rows:,} x {layout.cols.block_rows:,} values",
            advice=f"at most {TILE_BYTES:,} bytes are read",
        )


def _open_segments(url: str, descriptions: list[dict[str, Any]]) -> list[PackedBlocks]:
    segments: list[PackedBlocks] = []
    for description in descriptions:
        segments.append(PackedBlocks(url, description, since=segments[-1].vocabulary if segments else None))
    return segments


def _joined(layouts: list[BlockLayout]) -> BlockLayout:
    """The layout of segments one after another; each starts a new block."""
    structures = offsets_from_lengths([layout.n_structures for layout in layouts])
    starts = [layout.block_structures[:-1] + first for layout, first in zip(layouts, structures[:-1], strict=True)]
    blocks = np.concatenate([*starts, structures[-1:]])
    return BlockLayout(np.concatenate([layout.lengths for layout in layouts]), blocks, layouts[0].block_rows)
