"""Numbers that are not finite are found wherever they are."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.pipeline.storage.finite_loops import all_finite


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -np.nan])
def test_every_place_is_looked_at(dtype: str, value: float) -> None:
    tile = np.random.default_rng(0).normal(size=(5, 7)).astype(dtype)
    for place in range(tile.size):
        tile.flat[place], kept = value, tile.flat[place]
        assert not all_finite(tile)
        assert not all_finite(tile.T)
        tile.flat[place] = kept
    assert all_finite(tile)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_largest_and_the_smallest_numbers_are_finite(dtype: str) -> None:
    limits = np.finfo(dtype)
    extremes = np.array([limits.max, limits.min, limits.tiny, limits.smallest_subnormal, -0.0, 0.0], dtype)
    assert all_finite(np.tile(extremes, (4, 3)))
    assert all_finite(np.empty((0, 3), dtype))
