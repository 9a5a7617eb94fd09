"""Tiles against indexed columns are those against plain ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramline.kernels.observations.base import ObservationKernel
from gramline.kernels.observations.features import Gaussian, Linear, Polynomial
from gramline.kernels.observations.indexed import IndexedFeatures
from gramline.kernels.packing import Features, PackedSequences
from gramline.kernels.positions import PositionKernel
from gramline.kernels.ranges import offsets_from_lengths


def random_rows(seed: int, n_rows: int, n_features: int, *, real: bool) -> PackedSequences:
    """Feature rows some of which are empty; low numbers are frequent."""
    draw = np.random.default_rng(seed)
    rows = [np.unique(draw.zipf(1.5, size=draw.integers(0, 9)) % n_features) for _ in range(n_rows)]
    indices = np.concatenate([np.zeros(0, np.int32), *rows]).astype(np.int32)
    features = Features(
        offsets_from_lengths([len(row) for row in rows]), indices, draw.normal(size=len(indices)) if real else None
    )
    nothing = np.full(n_rows, -1, np.int32)
    return PackedSequences(np.array([0, n_rows]), np.arange(n_rows, dtype=np.int32), features, nothing)


@pytest.mark.parametrize("real_rows", [False, True], ids=["binary-rows", "real-rows"])
@pytest.mark.parametrize("real_columns", [False, True], ids=["binary-columns", "real-columns"])
@pytest.mark.parametrize(
    "observation",
    [
        Linear(),
        Linear(normalized=True),
        Polynomial(2, normalized=True, unit=True),
        Gaussian(0.3),
        Gaussian(0.3, unit=True),
    ],
    ids=str,
)
def test_an_index_changes_no_number(observation: ObservationKernel, real_rows: bool, real_columns: bool) -> None:
    kernel = PositionKernel(observation)
    new = random_rows(1, 12, 80, real=real_rows)  # with features that no column has
    support = random_rows(2, 90, 50, real=real_columns)
    indexed = replace(support, features=IndexedFeatures.of(support.features))
    expected = kernel.tile(new, support)
    for _ in range(2):  # made, then used again
        np.testing.assert_array_equal(kernel.tile(new, indexed), expected)
    np.testing.assert_array_equal(kernel.tile(indexed, indexed), kernel.tile(support, support))


def test_columns_without_any_feature() -> None:
    empty = Features(np.zeros(4, np.int64), np.zeros(0, np.int32), None)
    support = replace(random_rows(2, 3, 5, real=False), features=IndexedFeatures.of(empty))
    tile = PositionKernel(Polynomial(2)).tile(random_rows(1, 4, 5, real=False), support)
    np.testing.assert_array_equal(tile, np.ones((4, 3)))
