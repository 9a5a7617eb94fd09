"""Rows added up by distinct row, a few at a time, beside the sum of all at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from gramline.kernels import SequenceLabeling
from gramline.kernels.distinct import DistinctRows
from gramline.learners.operators import row_sums
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.row_sums import RowSums
from gramline.pipeline.corpus.corpus import Corpus

KERNEL = SequenceLabeling()
SENTENCES = [["a", "b"], ["c"], ["a", "b"], ["b", "c", "a"], ["c"], ["c"], ["d"]]


@pytest.mark.parametrize("step", [1, 3, 100])
def test_sums_are_those_of_all_rows_at_once(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(row_sums, "STEP", step)
    distinct = DistinctRows.of(KERNEL, KERNEL.prepare(Corpus.from_sequences(SENTENCES).packed()))
    W = np.random.default_rng(0).normal(size=(len(distinct.row_of), 3))
    W[distinct.row_of == 2] = [[1.0, 0.0, 0.0], [-2.0, 0.0, 0.0], [1.0, 0.0, 0.0]]  # they cancel
    whole = np.zeros((distinct.n_rows, 3))
    np.add.at(whole, distinct.row_of, W)
    sums = RowSums(distinct, W)
    assert sums.all().tobytes() == whole.tobytes()
    some = np.array([4, 1, 2])
    assert sums.of(some).tobytes() == whole[some].tobytes()
    assert sums.nonzero().tolist() == [0, 1, 3, 4, 5, 6]


def test_a_product_needs_no_second_copy_of_the_weights() -> None:
    """Of 40,000 rows few have weights: they are looked for a block at a time."""
    corpus = Corpus.from_sequences([[f"w{k}"] * 20 for k in range(2000)])
    prepared = KERNEL.prepare(corpus.packed())
    new = KERNEL.prepare(Corpus.from_sequences([["w1", "w2"]]).packed(like=prepared))
    W = np.zeros((prepared.n_positions, 13))
    W[:40] = 1.0
    gram = ComputedGram(KERNEL, prepared, new)
    before = gram.matmul(W, transpose=True)
    tracemalloc.start()
    after = gram.matmul(W, transpose=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(before, after)
    assert peak < W.nbytes
