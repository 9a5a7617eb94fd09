"""Lists that are grids, and lists that are one value."""

from __future__ import annotations

import pytest

from gramline.pipeline.crossval.job import MOST, expand, kernel_kinds, learner_kinds
from gramline.pipeline.errors import InputError

KINDS = kernel_kinds() | learner_kinds("gaussian-process")


def test_lists_are_multiplied_out_in_order() -> None:
    assert expand({"a": [1, 2], "b": "x", "c": [True, False]}, KINDS) == [
        {"a": 1, "b": "x", "c": True},
        {"a": 1, "b": "x", "c": False},
        {"a": 2, "b": "x", "c": True},
        {"a": 2, "b": "x", "c": False},
    ]
    assert expand({}, KINDS) == [{}]


def test_inner_tables_are_multiplied_out_as_well() -> None:
    found = expand({"observation": {"name": "polynomial", "degree": [1, 2]}}, KINDS)
    assert [choice["observation"]["degree"] for choice in found] == [1, 2]
    both = expand({"observation": ["identity", {"name": "gaussian", "gamma": [0.1, 1.0]}]}, KINDS)
    assert [choice["observation"] for choice in both] == [
        "identity",
        {"name": "gaussian", "gamma": 0.1},
        {"name": "gaussian", "gamma": 1.0},
    ]


def test_parameters_that_are_lists_themselves_are_no_grids() -> None:
    matrix = [[1, 0.5], [0.5, 1]]
    assert expand({"label_kernel": matrix}, KINDS) == [{"label_kernel": matrix}]
    assert len(expand({"label_kernel": [matrix, matrix]}, KINDS)) == 2
    assert expand({"offsets": [-1, 1]}, KINDS) == [{"offsets": [-1, 1]}]
    assert [c["offsets"] for c in expand({"offsets": [[-1], [-1, 1]]}, KINDS)] == [[-1], [-1, 1]]
    assert [c["offsets"] for c in expand({"offsets": ["GPSL1", "GPSL2"]}, KINDS)] == ["GPSL1", "GPSL2"]


def test_lists_that_multiply_without_end() -> None:
    with pytest.raises(InputError) as caught:
        expand({"a": list(range(MOST)), "b": [1, 2]}, {})
    assert caught.value.key == "a"
    assert str(caught.value) == "the lists make more than 100,000 settings, 100,000 of 'a' alone; give fewer"
