"""Pictures of Gram matrices: means of cells, colours and PNG files."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from png_pixels import png_chunks
from tolerances import assert_close

from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.reporting.heatmap import coloured, heatmap, png, thumbnail


@pytest.mark.parametrize(("block_rows", "cells"), [(9, 7), (20, 5), (20, 1000)])
def test_a_thumbnail_is_the_mean_of_its_cells(block_rows: int, cells: int) -> None:
    rng = np.random.default_rng(1)
    lengths = [3, 5, 4, 8, 2, 7, 1, 6]
    half = rng.normal(size=(sum(lengths), sum(lengths)))
    gram = DenseGram(half + half.T, lengths, block_rows=block_rows)
    small = thumbnail(gram, "k", cells)
    size = min(cells, len(half))
    owner = np.arange(len(half)) * size // len(half)
    expected = [[gram.matrix[np.ix_(owner == i, owner == j)].mean() for j in range(size)] for i in range(size)]
    assert_close(small.values, np.array(expected))
    assert small.bands == ()  # no label is known


class LabeledGram(DenseGram):
    """A matrix that knows the labels of its rows."""

    labels: list[list[str | None]]


def test_rows_are_sorted_by_label_and_rare_labels_are_seen() -> None:
    labels: list[list[str | None]] = [["O", "A", "O"], ["O", None, "O"], ["O", "B", "A", "O"]]
    codes = np.array([{"O": 1.0, "A": 2.0, "B": 3.0, None: 4.0}[label] for own in labels for label in own])
    gram = LabeledGram(np.outer(codes, codes), [3, 3, 4], block_rows=4)
    gram.labels = labels
    small = thumbnail(gram, "k", cells=8)
    assert [(band.label, band.n_rows) for band in small.bands] == [("O", 6), ("A", 2), ("B", 1), ("no label", 1)]
    assert [band.end for band in small.bands] == sorted(band.end for band in small.bands)
    assert small.bands[-1].end == 1.0
    ends = [round(band.end * 8) for band in small.bands]
    expected = np.repeat([1.0, 2.0, 3.0, 4.0], np.diff([0, *ends]))
    assert_close(small.values, np.outer(expected, expected))
    assert "sorted by gold label: O 6, A 2, B 1, no label 1. Bands grow with the root of their rows." in small.caption


def test_the_picture_has_a_scale_axes_and_names() -> None:
    gram = LabeledGram(np.outer(np.arange(1.0, 41), np.arange(1.0, 41)), [40])
    gram.labels = [["<O>"] * 20 + ["A"] * 20]
    drawn = str(heatmap(thumbnail(gram, "k")))
    assert drawn.count("&lt;O&gt;") == drawn.count(">A<") == 2  # on both axes
    assert drawn.count("position, by gold label") == 2
    assert ">kernel value<" in drawn
    assert ">1<" in drawn
    assert ">1.6e+03<" in drawn  # the ends of the scale
    plain = str(heatmap(thumbnail(DenseGram(np.eye(3), [3]), "k")))
    assert plain.count("position, in the order of the corpus") == 2


def test_a_large_matrix_is_sampled() -> None:
    gram = DenseGram(np.eye(40), [1] * 40, block_rows=1)
    small = thumbnail(gram, "k", 10, blocks=5)
    assert (small.n_blocks, small.blocks_shown, small.values.shape) == (40, 5, (5, 5))
    assert_close(small.values, np.eye(5))
    cells = "A cell is the mean of its kernel values; colours go by rank."
    assert small.caption == f"k: 40 rows, 5 of them shown (5 of 40 blocks), in the order of the corpus. {cells}"
    assert thumbnail(DenseGram(np.eye(3), [3]), "k").caption == f"k: 3 rows, in the order of the corpus. {cells}"


def test_a_png_holds_its_pixels() -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    content = png(pixels)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    chunks = png_chunks(content)
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (7, 5)
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(5, 22)
    assert not rows[:, 0].any()
    assert np.array_equal(rows[:, 1:].reshape(5, 7, 3), pixels)


def test_larger_values_are_darker() -> None:
    shades = coloured(np.array([[0.0, 1.0], [5.0, 1e9]])).astype(int).sum(axis=2)
    assert shades[0, 0] > shades[0, 1] > shades[1, 0] > shades[1, 1]
    assert (coloured(np.ones((3, 3))) == coloured(np.ones((3, 3)))[0, 0]).all()
