"""Pictures of Gram matrices: means of cells, colours and PNG files."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from png_pixels import png_chunks
from tolerances import assert_close

from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.reporting.heatmap import coloured, png, thumbnail


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
    assert small.borders == pytest.approx((gram.layout.rows.block_starts[1:-1] / len(half)).tolist())


def test_a_large_matrix_is_sampled() -> None:
    gram = DenseGram(np.eye(40), [1] * 40, block_rows=1)
    small = thumbnail(gram, "k", 10, blocks=5)
    assert (small.n_blocks, small.blocks_shown, small.values.shape) == (40, 5, (5, 5))
    assert_close(small.values, np.eye(5))
    assert (
        small.caption
        == "k: 40 rows in 40 blocks, 5 of them shown; darker is larger (by rank), lines are borders of blocks."
    )
    whole = thumbnail(DenseGram(np.eye(3), [3]), "k")
    assert whole.caption == "k: 3 rows in 1 block; darker is larger (by rank), lines are borders of blocks."


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
