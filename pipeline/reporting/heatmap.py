"""A Gram matrix as a picture: rows sorted by label, cells averaged tile by tile, colours by rank, a scale beside it."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import rankdata

from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.crossval.validate import HasLabels
from gramline.pipeline.reporting.charts import INK, element, line, picture, text

CELLS = 360  # of the picture, per side
BLOCKS = 24  # block rows looked at; a larger matrix is sampled evenly
BORDER = "#ff8c1a"
PALE, MIDDLE, DARK = (247, 250, 252), (66, 133, 190), (8, 29, 72)
SIDE, ROOM, LETTER = 420, 12, 6.6  # of the picture; height that a name needs; width of a letter
NO_LABEL = "no label"
QUARTERS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Band:
    """The rows of one label, which lie together."""

    label: str
    n_rows: int
    end: float  # where its rows end, as a part of 0..1


@dataclass(frozen=True, eq=False)
class Thumbnail:
    """Mean values of cells; rows and columns are sorted by label, the most frequent first, where labels are known."""

    kernel: str  # its name
    values: NDArray[np.float64]  # shape (cells, cells)
    bands: tuple[Band, ...]  # of the rows shown; empty where no label is known
    n_rows: int
    rows_shown: int
    n_blocks: int
    blocks_shown: int

    @property
    def caption(self) -> str:
        """What the picture shows, in words."""
        part = f"{self.n_rows:,} rows"
        if self.blocks_shown < self.n_blocks:
            part += f", {self.rows_shown:,} of them shown ({self.blocks_shown} of {self.n_blocks} blocks)"
        order = "in the order of the corpus"
        if self.bands:
            order = f"sorted by gold label: {', '.join(f'{band.label} {band.n_rows:,}' for band in self.bands)}"
        bands = "Bands grow with the root of their rows. " if self.bands else ""
        return f"{self.kernel}: {part}, {order}. {bands}A cell is the mean of its kernel values; colours go by rank."


def thumbnail(gram: GramOperator, kernel: str, cells: int = CELLS, blocks: int = BLOCKS) -> Thumbnail:
    """Downsample a symmetric Gram matrix; every tile of the chosen blocks is read once."""
    layout = gram.layout.rows
    chosen = np.unique(np.linspace(0, layout.n_blocks - 1, min(blocks, layout.n_blocks)).round().astype(int))
    heights = np.diff(layout.block_starts)[chosen]
    ends = offsets_from_lengths(heights)
    total = int(ends[-1])
    size = min(cells, total)
    rows = indices_of_ranges(layout.block_starts[:-1][chosen], heights)
    cell_of, bands = _cells(gram, rows, size)
    picks = [
        csr_array((np.ones(high - low), (cell_of[low:high], np.arange(high - low))), shape=(size, high - low))
        for low, high in pairwise(ends.tolist())
    ]
    sums = np.zeros((size, size))
    for left, i in enumerate(chosen.tolist()):
        for right, j in enumerate(chosen.tolist()[left:], start=left):
            part = (picks[right] @ (picks[left] @ np.asarray(gram.tile(i, j), float)).T).T
            sums += part
            if left != right:
                sums += part.T
    counts = np.bincount(cell_of, minlength=size).astype(float)
    values = sums / np.outer(counts, counts)
    return Thumbnail(kernel, values, bands, layout.n_rows, total, layout.n_blocks, len(chosen))


def _cells(gram: GramOperator, rows: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], tuple[Band, ...]]:
    """Which cell every row belongs to, and the bands of the labels: the most frequent first, unlabeled rows last.

    Within a label rows keep their order. Bands grow with the root of their rows, or rare labels would not be seen.
    """
    known = [label for own in gram.labels for label in own] if isinstance(gram, HasLabels) else []
    own = [known[row] for row in rows.tolist()] if known else []
    counts = Counter(own)
    names = sorted((label for label in counts if label is not None), key=lambda label: (-counts[label], label))
    if not names or len(counts) > size:
        return np.arange(len(rows)) * size // len(rows), ()
    ordered = [*names, *([None] if None in counts else [])]
    sizes = np.array([counts[label] for label in ordered])
    widths = np.clip(np.floor(size * np.sqrt(sizes) / np.sqrt(sizes).sum()).astype(int), 1, sizes)
    while (missing := size - int(widths.sum())) != 0:  # rounding, and labels with fewer rows than their share
        change = int(np.sign(missing))
        room = sizes - widths if change > 0 else widths - 1
        widths[int(np.argmax(room))] += change
    ends = offsets_from_lengths(widths)
    cell_of = np.empty(len(rows), np.int64)
    code_of = {label: code for code, label in enumerate(ordered)}
    of_row = np.array([code_of[label] for label in own], np.int64)
    for code, n_rows in enumerate(sizes.tolist()):
        cell_of[of_row == code] = ends[code] + np.arange(n_rows) * int(widths[code]) // n_rows
    return cell_of, tuple(
        Band(NO_LABEL if label is None else label, n_rows, float(end / size))
        for label, n_rows, end in zip(ordered, sizes.tolist(), ends[1:].tolist(), strict=True)
    )


def heatmap(small: Thumbnail) -> Markup:
    """The picture: an inline PNG with borders between labels, their names on both axes, and the scale of colours."""
    encoded = base64.b64encode(png(coloured(small.values))).decode()
    named = [
        (band, (first + band.end) / 2 * SIDE)
        for first, band in zip((0.0, *(band.end for band in small.bands)), small.bands, strict=False)
        if (band.end - first) * SIDE >= ROOM
    ]
    margin = 26 + LETTER * max((len(band.label) for band, _ in named), default=4)
    image = element(
        "image",
        href=f"data:image/png;base64,{encoded}",
        x=margin,
        y=0,
        width=SIDE,
        height=SIDE,
        preserveAspectRatio="none",
        style="image-rendering:pixelated",
    )
    parts = [image]
    for place in (band.end * SIDE for band in small.bands[:-1]):
        parts.append(line((margin + place, 0), (margin + place, SIDE), BORDER, 1.2))
        parts.append(line((margin, place), (margin + SIDE, place), BORDER, 1.2))
    parts.append(element("rect", x=margin, y=0, width=SIDE, height=SIDE, fill="none", stroke=INK))
    for band, middle in named:
        parts.append(text(band.label, margin - 6, middle + 4, "end"))
        turned = f"translate({margin + middle + 4:.1f} {SIDE + 8}) rotate(-90)"
        parts.append(element("text", band.label, transform=turned, text_anchor="end"))
    depth = margin - 14 if named else 18.0
    if not named:  # no label is known: the axes count rows
        parts += [text("1", margin - 6, 10, "end"), text(f"{small.rows_shown:,}", margin + SIDE, SIDE + 16, "end")]
    what = "position, by gold label" if named else "position, in the order of the corpus"
    parts.append(element("text", what, transform=f"translate(12 {SIDE / 2}) rotate(-90)", text_anchor="middle"))
    parts.append(text(what, margin + SIDE / 2, SIDE + depth + 14, "middle"))
    parts += _scale(small.values, margin + SIDE + 18)
    width = margin + SIDE + 18 + 16 + 8 + LETTER * 10
    title = "heat map of the Gram matrix: mean kernel values of positions sorted by label, with a scale of colours"
    return picture(round(width), round(SIDE + depth + 22), title, *parts)


def _scale(values: NDArray[np.float64], x: float) -> list[Markup]:
    """Colours from the smallest to the largest cell, with the values at the quarters."""
    stops = [
        element("stop", offset=offset, stop_color=f"rgb{colour}")
        for offset, colour in zip((0.0, 0.5, 1.0), (DARK, MIDDLE, PALE), strict=True)
    ]
    height = SIDE * 0.6
    shades = element("linearGradient", *stops, id="gram-scale", x1=0, y1=0, x2=0, y2=1)
    bar = element("rect", x=x, y=20, width=16, height=height, fill="url(#gram-scale)", stroke=INK)
    marks = [text("kernel value", x, 12)]
    for share, value in zip(QUARTERS, np.quantile(values, QUARTERS).tolist(), strict=True):
        y = 20 + height * (1 - share)
        marks += [line((x + 16, y), (x + 20, y), INK), text(f"{value:.3g}", x + 23, y + 4)]
    return [element("defs", shades), bar, *marks]


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
