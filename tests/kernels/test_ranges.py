"""Offsets and indices of ranges, against lists built one range at a time."""

import numpy as np
import pytest

from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths, range_containing

LENGTHS = [[], [0], [3], [2, 0, 3], [0, 0, 1]]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_offsets_are_the_running_sums_in_64_bits(lengths: list[int]) -> None:
    expected = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    for given in (lengths, np.array(lengths, np.int32), np.array(lengths, np.int64)):
        offsets = offsets_from_lengths(given)
        assert offsets.dtype == np.int64
        assert offsets.tolist() == expected


def test_offsets_count_the_true_entries_of_a_mask() -> None:
    assert offsets_from_lengths(np.array([True, False, True])).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_indices_of_ranges_list_every_range_in_the_given_order(lengths: list[int]) -> None:
    starts = [10 - 3 * i for i in range(len(lengths))]
    indices = indices_of_ranges(np.array(starts, np.int64), np.array(lengths, np.int64))
    assert indices.dtype == np.int64
    assert indices.tolist() == [start + k for start, length in zip(starts, lengths, strict=True) for k in range(length)]


def test_the_range_of_an_index_skips_empty_ranges() -> None:
    assert [range_containing(np.array([0, 2, 2, 5]), index) for index in range(5)] == [0, 0, 2, 2, 2]
