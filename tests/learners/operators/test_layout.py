from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramline.learners.errors import LayoutError
from gramline.learners.operators.layout import DEFAULT_BLOCK_ROWS, BlockLayout, GramLayout

sizes = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@given(sizes, st.integers(6, 15))
def test_blocks_cover_whole_structures_in_order(lengths: list[int], block_rows: int) -> None:
    layout = BlockLayout.of(lengths, block_rows)
    covered = [s for block in range(layout.n_blocks) for s in range(*layout.structures(block).indices(len(lengths)))]
    assert covered == list(range(len(lengths)))
    rows = [row for block in range(layout.n_blocks) for row in range(layout.rows(block).start, layout.rows(block).stop)]
    assert rows == list(range(sum(lengths)))
    for block in range(layout.n_blocks):
        n = layout.rows(block).stop - layout.rows(block).start
        assert n == sum(lengths[layout.structures(block)]) <= block_rows
        if block + 1 < layout.n_blocks:
            assert n + lengths[layout.structures(block + 1).start] > block_rows, "a block is filled before the next"


@given(sizes, sizes, st.integers(6, 15))
def test_appending_keeps_the_blocks_there_are(old: list[int], new: list[int], block_rows: int) -> None:
    before = BlockLayout.of(old, block_rows)
    after = before.appended(new)
    assert after.lengths.tolist() == old + new
    assert after.block_structures[: before.n_blocks + 1].tolist() == before.block_structures.tolist()
    assert after.block_starts[: before.n_blocks + 1].tolist() == before.block_starts.tolist()
    assert after.n_rows == sum(old) + sum(new)


@pytest.mark.parametrize(("rows", "block_rows"), [(1, 512), (512, 512), (513, 1024), (1025, 2048), (5000, 2048)])
def test_small_data_gets_a_small_block(rows: int, block_rows: int) -> None:
    assert BlockLayout.of([1] * rows).block_rows == block_rows


def test_a_block_size_that_was_not_given_grows() -> None:
    assert BlockLayout.of([1000, 1000]).block_rows == DEFAULT_BLOCK_ROWS
    assert BlockLayout.of([3, DEFAULT_BLOCK_ROWS + 9]).block_rows == DEFAULT_BLOCK_ROWS + 9
    with pytest.raises(LayoutError, match=r"structure 1 has 7 rows, more than a block of 5; .* at least 7"):
        BlockLayout.of([3, 7], 5)


def test_tiles_of_both_shapes() -> None:
    rows, cols = BlockLayout.of([2, 2, 2], 2), BlockLayout.of([3, 1], 3)
    square = GramLayout.symmetric(rows)
    assert list(square.tiles()) == [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    assert square.n_tiles == 6
    assert square.shape == (6, 6)
    between = GramLayout.rectangular(rows, cols)
    assert list(between.tiles()) == [(i, j) for i in range(3) for j in range(2)]
    assert between.n_tiles == 6
    assert between.shape == (6, 4)


def test_no_structures_no_blocks() -> None:
    layout = BlockLayout.of(np.zeros(0, int))
    assert (layout.n_blocks, layout.n_rows, layout.n_structures) == (0, 0, 0)
