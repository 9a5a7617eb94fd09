"""What only settings files have among kinds of values: sizes in bytes and lists of words."""

from __future__ import annotations

from typing import Any

import pytest

from gramline.kernels.parameters import plain_value
from gramline.pipeline.errors import InputError
from gramline.pipeline.settings_file import Size, TextList


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
