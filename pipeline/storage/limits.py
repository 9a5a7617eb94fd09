"""What an array in a store from strangers may claim of itself, checked before memory is allocated. Knows no files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gramline.pipeline.errors import StoreError

REBUILD = "rebuild it"
KINDS = "biuf"  # numbers only: no objects, no strings
CODECS = {"bytes", "blosc", "crc32c"}  # all that gramline ever writes
LAST_CODEC = "crc32c"
DIMENSIONS = 4
ROWS = 1 << 40  # of a matrix
TILE_BYTES = 1 << 34
CHUNK_BYTES = 1 << 31  # of a compressed chunk: what its codec can hold at all
METADATA_BYTES = 1 << 26  # of one JSON document


def check_array(
    where: str, shape: Sequence[int], chunks: Sequence[int], dtype: np.dtype[Any], codecs: Sequence[str]
) -> None:
    """Refuse what gramline never writes: other codecs, other types, chunks beyond all measure."""
    unknown = [name for name in codecs if name not in CODECS]
    if unknown:
        raise StoreError(f"{where} is encoded with {unknown[0]!r}, which gramline never writes", advice=REBUILD)
    if not codecs or codecs[-1] != LAST_CODEC:
        raise StoreError(f"{where} has no checksum, which gramline always writes", advice=REBUILD)
    if dtype.kind not in KINDS:
        raise StoreError(f"{where} holds values of type {dtype.name}, which gramline never writes", advice=REBUILD)
    if len(shape) > DIMENSIONS or any(size > ROWS for size in shape):
        raise StoreError(f"{where} claims the shape {_times(shape)}, more than any store holds", advice=REBUILD)
    chunk_bytes = dtype.itemsize * math.prod(chunks)
    limit = CHUNK_BYTES if "blosc" in codecs else TILE_BYTES
    if chunk_bytes > limit:
        raise StoreError(
            f"{where} claims chunks of {_times(chunks)} values, {chunk_bytes:,} bytes each",
            advice=f"at most {limit:,} are read",
        )


def check_stored(where: str, claimed_bytes: int, stored_bytes: int) -> None:
    """An array without compression cannot be larger in memory than it is in the store."""
    if claimed_bytes > stored_bytes:
        raise StoreError(
            f"{where} claims {claimed_bytes:,} bytes, but only {stored_bytes:,} are stored",
            advice="it is damaged or incomplete",
        )


def _times(sizes: Sequence[int]) -> str:
    return " x ".join(f"{size:,}" for size in sizes) or "1"
