"""Records and numbers as people write and read them."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.pipeline.cli.terminal.notation import parse_record, parse_settings
from gramline.pipeline.cli.terminal.output import count, duration, size
from gramline.pipeline.errors import InputError


def test_a_record_is_a_name_and_values() -> None:
    text = "polynomial:degree=2,coef0=0.5,normalized=true,other=null,word=x-y"
    expected = {"name": "polynomial", "degree": 2, "coef0": 0.5, "normalized": True, "other": None, "word": "x-y"}
    assert parse_record(text, "it") == expected
    assert parse_record("identity", "it") == {"name": "identity"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,0.5,true,word", [1, 0.5, True, "word"]),
        ("[-1,1]", [[-1, 1]]),
        ("[-1],GPSL4,[-2,-1]", [[-1], "GPSL4", [-2, -1]]),
        ("[-1,1", ["[-1", 1]),
    ],
)
def test_settings_are_separated_by_commas(text: str, values: list[Any]) -> None:
    assert parse_settings(text) == values


@pytest.mark.parametrize("text", [":degree=2", "polynomial:degree", "polynomial:=2"])
def test_a_record_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="the kernel"):
        parse_record(text, "the kernel")


def test_numbers_for_people() -> None:
    assert [size(n) for n in (0, 999, 1500, 2.5e6, 8e9, 3e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "8.0 GB",
        "30.0 TB",
    ]
    assert [duration(s) for s in (0.04, 9.94, 12, 200, 7500)] == ["0.0 s", "9.9 s", "12 s", "3 min 20 s", "2 h 5 min"]
    assert [count(n, "tile") for n in (0, 1, 1234)] == ["0 tiles", "1 tile", "1,234 tiles"]
