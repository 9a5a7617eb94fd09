"""Tile memory: reuse, symmetry, range, and the cuts into strips and chunks of whole structures."""

import numpy as np
import pytest

from gramline.kernels import base
from gramline.kernels.base import chunk_starts, mirror, placed, require_fit, row_strips, structure_runs, tile_memory
from gramline.kernels.errors import KernelOverflowError


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mirror(n, dtype):
    tile = np.random.default_rng(n).random((n, n)).astype(dtype)
    expected = np.triu(tile) + np.triu(tile, 1).T
    interpreted = tile.copy()
    mirror(tile)
    mirror.py_func(interpreted)
    assert np.array_equal(tile, expected)
    assert np.array_equal(interpreted, expected)


def test_a_tile_is_written_into_the_memory_that_is_given():
    memory = np.zeros((4, 5), np.float32)
    assert tile_memory(2, 3, np.float32, memory).base is memory
    assert tile_memory(2, 3, np.float64, None).shape == (2, 3)
    tile = placed(np.ones((2, 3)), np.float32, memory)
    assert tile.base is memory
    assert memory.sum() == 6
    assert placed(np.ones((2, 3)), np.float32, None).dtype == np.float32


@pytest.mark.parametrize("value", [1e39, np.inf, np.nan])
def test_a_value_out_of_range_is_refused_with_its_row_and_column(value):
    tile = np.ones((2, 3))
    require_fit(tile, np.float32, "Tagging", "lower decay")
    require_fit(np.empty((0, 3)), np.float32, "Tagging", "lower decay")
    tile[1, 2] = value
    with pytest.raises(KernelOverflowError) as error:
        require_fit(tile, np.float32, "Tagging", "lower decay")
    assert (error.value.row, error.value.column, error.value.dtype) == (1, 2, "float32")
    assert (error.value.problem, error.value.advice) == ("Tagging", "lower decay")


def test_runs_hold_whole_structures_up_to_the_limit():
    offsets = np.array([0, 3, 4, 4, 9, 10])
    assert list(structure_runs(offsets, 4)) == [(0, 3), (3, 4), (4, 5)]
    assert list(structure_runs(offsets, 100)) == [(0, 5)]
    assert list(structure_runs(np.zeros(1, np.int64), 4)) == []


def test_strips_and_chunks_are_runs_of_rows_and_of_columns(monkeypatch):
    starts = np.array([0, 3, 4, 9, 10])
    monkeypatch.setattr(base, "STRIP_BYTES", 8 * 6 * 4)
    assert list(row_strips(starts, 6)) == [(0, 2), (2, 3), (3, 4)]
    assert list(row_strips(starts, 0)) == [(0, 4)]
    assert chunk_starts(starts, 4).tolist() == [0, 4, 9, 10]
    assert chunk_starts(starts).tolist() == [0, 10]
