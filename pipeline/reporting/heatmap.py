"""A Gram matrix as a picture: cells averaged tile by tile, colours by rank of size, block borders drawn on top."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.stats import rankdata

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.reporting.charts import INK, element, line, picture

CELLS = 360  # of the picture, per side
BLOCKS = 24  # block rows looked at; a larger matrix is sampled evenly
BORDER = "#ff8c1a"
PALE, MIDDLE, DARK = (247, 250, 252), (66, 133, 190), (8, 29, 72)


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """Mean values of cells, and where blocks end, as parts of 0..1."""

    kernel: str  # its name
    values: NDArray[np.float64]  # shape (cells, cells)
    borders: tuple[float, ...]
    n_rows: int
    n_blocks: int
    blocks_shown: int

    @property
    def caption(self) -> str:
        """What the picture shows, in words."""
        blocks = "1 block" if self.n_blocks == 1 else f"{self.n_blocks} blocks"
        part = f", {self.blocks_shown} of them shown" if self.blocks_shown < self.n_blocks else ""
        legend = "darker is larger (by rank), lines are borders of blocks"
        return f"{self.kernel}: {self.n_rows:,} rows in {blocks}{part}; {legend}."


def thumbnail(gram: GramOperator, kernel: str, cells: int = CELLS, blocks: int = BLOCKS) -> Thumbnail:
    """Downsample a symmetric Gram matrix; every tile of the chosen blocks is read once."""
    layout = gram.layout.rows
    chosen = np.unique(np.linspace(0, layout.n_blocks - 1, min(blocks, layout.n_blocks)).round().astype(int))
    heights = np.diff(layout.block_starts)[chosen]
    ends = offsets_from_lengths(heights)
    total = int(ends[-1])
    size = min(cells, total)
    cell_of = np.arange(total) * size // total  # which cell a row belongs to
    sums = np.zeros((size, size))
    for left, i in enumerate(chosen.tolist()):
        rows = cell_of[ends[left] : ends[left + 1]]
        for right, j in enumerate(chosen.tolist()[left:], start=left):
            cols = cell_of[ends[right] : ends[right + 1]]
            part = _grouped(_grouped(np.asarray(gram.tile(i, j), float), rows, 0), cols, 1)
            where = np.ix_(np.unique(rows), np.unique(cols))
            sums[where] += part
            if left != right:
                sums.T[where] += part
    counts = np.bincount(cell_of, minlength=size).astype(float)
    borders = tuple(float(end / total) for end in ends[1:-1])
    return Thumbnail(kernel, sums / np.outer(counts, counts), borders, layout.n_rows, layout.n_blocks, len(chosen))


def heatmap(small: Thumbnail, side: int = 420) -> Markup:
    """The picture: an inline PNG under the borders of the blocks."""
    encoded = base64.b64encode(png(coloured(small.values))).decode()
    square = {"width": side, "height": side}
    image = element(
        "image",
        href=f"data:image/png;base64,{encoded}",
        **square,
        preserveAspectRatio="none",
        style="image-rendering:pixelated",
    )
    lines = []
    for place in (border * side for border in small.borders):
        lines += [line((place, 0), (place, side), BORDER, 1.4), line((0, place), (side, place), BORDER, 1.4)]
    frame = element("rect", **square, fill="none", stroke=INK)
    return picture(side, side, "heat map of the Gram matrix, with the borders of its blocks", image, *lines, frame)


def coloured(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Colours by rank, so that few huge values do not hide all others; equal values get equal colours."""
    share = (rankdata(values).reshape(values.shape) - 0.5) / values.size
    mixed = [np.interp(share, (0, 0.5, 1), channel) for channel in zip(PALE, MIDDLE, DARK, strict=True)]
    return np.stack(mixed, axis=-1).round().astype(np.uint8)


def png(pixels: NDArray[np.uint8]) -> bytes:
    """An RGB picture of shape (height, width, 3) as a PNG file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: unfiltered

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _grouped(block: NDArray[np.float64], groups: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
    """Sums over runs of equal group numbers."""
    starts = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]]))
    summed: NDArray[np.float64] = np.add.reduceat(block, starts, axis=axis)
    return summed
