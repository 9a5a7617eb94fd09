"""Records and numbers as people write and read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.terminal.notation import parse_record, parse_settings, parse_sum
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
        ("[[1,0],[0,1]],2", [[[1, 0], [0, 1]], 2]),
    ],
)
def test_settings_are_separated_by_commas(text: str, values: list[Any]) -> None:
    assert parse_settings(text) == values


LINEAR = {"name": "linear", "normalized": True}
SQUARE = {"name": "polynomial", "degree": 2}


@pytest.mark.parametrize(
    ("text", "record"),
    [
        ("linear:normalized=true", LINEAR),
        ("linear:normalized=true + polynomial:degree=2", {"name": "sum", "first": LINEAR, "second": SQUARE}),
        ("linear:normalized=true+polynomial:degree=2", {"name": "sum", "first": LINEAR, "second": SQUARE}),
        (
            "linear:normalized=true + 0.5 * polynomial:degree=2",
            {"name": "sum", "first": LINEAR, "second": SQUARE, "weight": 0.5},
        ),
        (
            "linear:normalized=true + 1e-3*polynomial:degree=2 + identity",
            {
                "name": "sum",
                "first": {"name": "sum", "first": LINEAR, "second": SQUARE, "weight": 0.001},
                "second": {"name": "identity"},
            },
        ),
        ("gaussian:gamma=1e+5", {"name": "gaussian", "gamma": 1e5}),
        (
            "gaussian:gamma=1e+5+identity",
            {"name": "sum", "first": {"name": "gaussian", "gamma": 1e5}, "second": {"name": "identity"}},
        ),
        ("substitution:blosum62", {"name": "substitution", "table": "blosum62"}),
        ("substitution: pam250 , sharpness=0.1", {"name": "substitution", "table": "pam250", "sharpness": 0.1}),
        ('{"name": "polynomial", "degree": 2}', SQUARE),
        (
            ' {"name": "sum", "first": {"name": "identity"}, "weight": 2}',
            {"name": "sum", "first": {"name": "identity"}, "weight": 2},
        ),
    ],
)
def test_sums_of_kernels(text: str, record: dict[str, Any]) -> None:
    assert parse_sum(text, "the observation kernel") == record


def test_a_plus_in_the_name_of_a_file_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "a+b.json").write_text('{"gamma": 2}')
    assert parse_sum("gaussian:file=a+b.json", "it", tmp_path) == {"name": "gaussian", "gamma": 2}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (":degree=2", "has no name; write it like"),
        ("polynomial:degree", "'degree' is not of the form key=value"),
        ("polynomial:=2", "'=2' is not of the form key=value"),
        ("polynomial:degree=2,degree=3", "has 'degree' twice; leave one of them out"),
        ("polynomial:name=linear", "has 'name' twice"),
        ("substitution:blosum62,pam250", "has 'table' twice"),
        ("2 * linear + identity", "begins with a factor, and only what is added has one; write it second"),
        ('{"degree": 2}', 'has no "name"; write it like {"name": "polynomial", "degree": 2}'),
        ('{"name": 3}', 'has no "name"'),
        ("{name: polynomial}", "begins like a JSON object but is none"),
    ],
)
def test_a_record_that_is_none(text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_sum(text, "the kernel")
    assert str(caught.value).startswith("the kernel ")
    assert sentence in str(caught.value)


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
