"""A stored matrix read and written one whole chunk ("tile") at a time. Knows bytes and checksums, not kernels."""

from __future__ import annotations

import math
import os
import shutil
from io import FileIO
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import LocatedError
from gramline.pipeline.errors import StoreDamagedError, first_line
from gramline.pipeline.files import write_then_rename
from gramline.pipeline.storage.finite_loops import all_finite
from gramline.pipeline.storage.groups import delete_chunk, list_chunks, open_array, open_group
from gramline.pipeline.storage.object_store import STORAGE_ERRORS
from gramline.pipeline.storage.places import is_local, local_path, require_inside
from gramline.pipeline.storage.writer import grow_array

PIECE_BYTES = 1 << 19  # read at a time: it stays in the second-level cache until it is checked
UNREADABLE: tuple[type[Exception], ...] = (ValueError, RuntimeError, *STORAGE_ERRORS)  # what Zarr raises at a chunk
CHECKSUM_BYTES = 4  # what crc32c appends to a chunk
NOT_FINITE = "it holds a value that is not a finite number"


class ChunkError(LocatedError):
    """A chunk that is missing or damaged; who reads it knows which one and of what."""


class TileArray:
    """The array `name` of the group at `url`, NaN where no tile was written."""

    def __init__(self, url: str, name: str) -> None:
        self._array = open_array(open_group(url), name, url)
        if self._array.ndim != 2:
            raise StoreDamagedError(f"its array {name!r} is no matrix", url)
        rows, cols = self._array.chunks
        self.chunks = (rows, cols)
        height, width = self._array.shape
        self.shape = (height, width)
        self.dtype = np.dtype(self._array.dtype)
        self.tile_bytes = self.dtype.itemsize * math.prod(self.chunks)
        self.is_compressed = len(self._array.compressors) > 1
        self._folder = local_path(url) / name / "c" if is_local(url) else None

    @property
    def buffer_bytes(self) -> int | None:
        """Size of the buffer that a tile can be read into; None where tiles always come in memory of their own."""
        return None if self._folder is None or self.is_compressed else self.tile_bytes + CHECKSUM_BYTES

    def write(self, i: int, j: int, tile: NDArray[Any]) -> None:
        """Store one whole tile, padded with zeros: a temporary file and a rename locally, one PUT elsewhere."""
        whole = tile
        if tile.shape != self.chunks:
            whole = np.zeros(self.chunks, self.dtype)
            whole[: tile.shape[0], : tile.shape[1]] = tile
        if self._folder is not None and not self.is_compressed:
            require_inside(self._folder.parents[1], f"{self._folder.parent.name}/c/{i}")
            self._write_plain(self._folder / str(i) / str(j), whole)
        else:
            self._array.set_block_selection((i, j), whole)

    def _write_plain(self, path: Path, tile: NDArray[Any]) -> None:
        """The bytes Zarr would write, without the copy of the tile it makes to append the checksum."""
        body = np.ascontiguousarray(tile, self.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
        body.flags.writeable = False
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_then_rename(path) as partial, partial.open("xb") as file:
            file.write(body.data)
            file.write(google_crc32c.value(body).to_bytes(CHECKSUM_BYTES, "little"))

    def link(self, other: TileArray, i: int, j: int) -> None:
        """Take a tile of another local array of the same chunks and codec as it is: a link, or else a copy.

        A tile is never changed in place, so that both arrays may share its file.
        """
        assert self._folder is not None
        assert other._folder is not None
        source, target = (folder / str(i) / str(j) for folder in (other._folder, self._folder))
        target.parent.mkdir(parents=True, exist_ok=True)
        with write_then_rename(target) as partial:
            try:
                os.link(source, partial)
            except OSError:
                shutil.copyfile(source, partial)

    def read(self, i: int, j: int, buffer: NDArray[np.uint8] | None = None) -> NDArray[Any]:
        """One whole tile, every number finite; ChunkError when missing or damaged.

        `buffer` of `buffer_bytes` may be given to be read into: the tile is then a view of it.
        """
        if self._folder is not None and not self.is_compressed:
            require_inside(self._folder.parents[1], f"{self._folder.parent.name}/c/{i}/{j}")
            return self._read_plain(self._folder / str(i) / str(j), buffer)
        try:
            tile = np.asarray(self._array.get_block_selection((i, j)))
        except UNREADABLE as error:
            raise ChunkError(first_line(error)) from None
        if np.isnan(tile[0, 0]):
            raise ChunkError("it is missing")
        if not all_finite(tile):
            raise ChunkError(NOT_FINITE)
        return tile

    def _read_plain(self, path: Path, buffer: NDArray[np.uint8] | None) -> NDArray[Any]:
        """A local chunk without compression is its bytes and their crc32c; 2-3 times faster than through Zarr."""
        expected = self.tile_bytes + CHECKSUM_BYTES
        try:
            with path.open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                if size != expected:
                    raise ChunkError(f"it has {size} bytes instead of {expected}")
                raw = np.empty(expected, np.uint8) if buffer is None else buffer
                body = raw[:-CHECKSUM_BYTES].view()
                body.flags.writeable = False  # google_crc32c takes only read-only memory
                checksum, is_finite, little = 0, True, self.dtype.newbyteorder("<")
                for first in range(0, self.tile_bytes, PIECE_BYTES):  # checked while it is still in the cache
                    piece = slice(first, min(first + PIECE_BYTES, self.tile_bytes))
                    self._fill(file, raw[piece])
                    checksum = google_crc32c.extend(checksum, body[piece])
                    is_finite = is_finite and all_finite(body[piece].view(little))
                self._fill(file, raw[self.tile_bytes :])
        except FileNotFoundError:
            raise ChunkError("it is missing") from None
        except OSError as error:
            raise ChunkError(error.strerror or type(error).__name__) from None
        if checksum != int.from_bytes(raw[-CHECKSUM_BYTES:].tobytes(), "little"):
            raise ChunkError("its checksum does not match")
        if not is_finite:
            raise ChunkError(NOT_FINITE)
        return body.view(little).reshape(self.chunks)

    @staticmethod
    def _fill(file: FileIO, target: NDArray[np.uint8]) -> None:
        if file.readinto(target.data) != len(target):
            raise ChunkError("it became shorter while it was read")

    def present(self) -> set[tuple[int, int]]:
        """Tiles whose chunk is there and has a possible size (nothing is fsynced: a power cut may leave it empty)."""
        exact = None if self.is_compressed else self.tile_bytes + CHECKSUM_BYTES
        return {
            (key[0], key[1])
            for key, size in list_chunks(self._array)
            if (size > CHECKSUM_BYTES if exact is None else size == exact)
        }

    def stored_bytes(self) -> int:
        """Bytes of all chunks that are there."""
        return sum(size for _, size in list_chunks(self._array))

    def delete(self, i: int, j: int) -> None:
        """Remove a tile, if it is there."""
        delete_chunk(self._array, (i, j))

    def resize(self, shape: tuple[int, int]) -> None:
        """Grow; finished tiles stay where they are."""
        grow_array(self._array, shape)
