"""Lines of the tables and keys of a settings file, and its own kinds of values: sizes in bytes and lists of words."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.kernels.parameters import plain_value
from gramline.pipeline.errors import InputError
from gramline.pipeline.settings_file import Size, TextList, TomlLines


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("2GiB", 2 << 30),
        ("2Gi", 2 << 30),
        ("500 MB", 500_000_000),
        ("1.5kb", 1500),
        (".5k", 500),
        ("1000", 1000),
        ("7B", 7),
        (77, 77),
    ],
)
def test_sizes(given: Any, expected: int) -> None:
    assert plain_value("it", Size(), given, InputError) == expected


@pytest.mark.parametrize(
    "given", ["much", "2XB", "-1GB", "0", "0.0001", "GiB", "2iB", "1e400GiB", "9" * 5000, "", 0, -1, True, 2.5, None]
)
def test_sizes_that_are_none(given: Any) -> None:
    with pytest.raises(InputError) as caught:
        plain_value("it", Size(), given, InputError)
    assert caught.value.key == "it"
    assert str(caught.value).startswith("it must be a size such as 2GiB or 500MB, got ")


def test_lists_of_strings_become_tuples() -> None:
    assert plain_value("it", TextList(), ["a", "b"], InputError) == ("a", "b")
    for given in ("a", ["a", ""], [1], {"a": 1}, None):
        with pytest.raises(InputError):
            plain_value("it", TextList(), given, InputError)


TEXT = '''# a job
title = "x"
[corpus]
path = "a.parquet"   # here

[[kernel]]
c = [0.5, 1.0]
observation.name = "polynomial"
[[kernel]]
"c" = 2
note = """
c = 3
[folds]
"""
gap = 0.1
[kernel.prior]
name = "uniform"
[folds]
count = 3
'''


def test_the_line_of_every_key() -> None:
    lines = TomlLines.of(TEXT)
    assert lines.line("title") == 2
    assert lines.line("corpus") == 3
    assert lines.line("corpus", "path") == 4
    assert lines.line("kernel", "c") == 7
    assert lines.line("kernel", "observation") == 8
    assert lines.line("kernel", "c", 1) == 10
    assert lines.line("kernel", "gap", 1) == 15
    assert lines.line("kernel", "prior", 1) == 16
    assert lines.line("folds", "count") == 19


def test_what_is_unknown_is_told_by_its_table_or_not_at_all() -> None:
    lines = TomlLines.of(TEXT)
    assert lines.line("folds", "seed") == 18
    assert lines.line("cluster", "workers") is None
