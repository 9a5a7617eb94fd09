"""Tiles against blocks that keep their index are those against plain ones, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramline.kernels import Gaussian, Linear, Polynomial, PositionKernel, SequenceLabeling
from gramline.kernels.base import Kernel
from gramline.kernels.observations.reused import MOST_UNUSED, ReusedFeatures, reused
from gramline.kernels.packing import Features
from gramline.pipeline.corpus.corpus import Corpus

DRAW = np.random.default_rng(5)
CORPUS = Corpus.from_sequences(
    [[f"w{DRAW.integers(40)}" for _ in range(DRAW.integers(1, 9))] for _ in range(60)]
).with_features("spelling", 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "kernel",
    [
        PositionKernel(Polynomial(2, normalized=True)),
        PositionKernel(Polynomial(2, unit=True)),
        PositionKernel(Gaussian(0.1)),
        SequenceLabeling(0.5, observation=Polynomial(2, normalized=True)),
        SequenceLabeling(0.5, gap=0.5, observation=Linear(normalized=True)),
    ],
    ids=str,
)
def test_an_index_changes_no_number(kernel: Kernel, dtype: str) -> None:
    packed = kernel.prepare(CORPUS.packed())
    rows, cols = packed.structures(0, 40), packed.structures(30, 60)
    again = reused(cols)
    assert isinstance(again.features, ReusedFeatures)
    expected = kernel.tile(rows, cols, dtype)
    for _ in range(2):  # made, then used again
        np.testing.assert_array_equal(kernel.tile(rows, again, dtype), expected)
    np.testing.assert_array_equal(kernel.tile(again, again, dtype), kernel.tile(cols, cols, dtype))


def test_features_that_no_column_has_count_nothing() -> None:
    indptr = np.array([0, 2, 3])
    known = reused(replace(CORPUS.packed().structures(0, 0), features=Features(indptr, np.array([0, 5, 5]), None)))
    assert isinstance(known.features, ReusedFeatures)
    slots = known.features.slots(1).rows(Features(np.array([0, 4]), np.array([0, 3, 5, 900]), None), np.empty(0)).slots
    assert slots[1] == slots[3] == 1
    assert slots[0] != slots[2]


def test_few_features_of_a_large_vocabulary_are_not_indexed() -> None:
    packed = CORPUS.packed().structures(0, 0)
    for values, indices in ((None, [0, 2 * MOST_UNUSED + 1]), (np.ones(2), [0, 1]), (None, [])):
        features = Features(np.array([0, len(indices)]), np.array(indices, np.int32), values)
        assert reused(replace(packed, features=features)).features is features
