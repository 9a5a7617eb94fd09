"""Arrow arrays by their buffers are those that pyarrow's own conversions make and read."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from gramline.pipeline.corpus.arrow import (
    dictionary_array,
    flattened,
    lists,
    nulls,
    number_array,
    numbers,
    string_array,
)
from gramline.pipeline.errors import CorpusError


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
def test_numbers_there_and_back(kind: type) -> None:
    values = np.arange(11).astype(kind)
    missing = np.arange(11) % 3 == 1
    array = number_array(values, missing)
    array.validate(full=True)
    assert array.equals(pa.array(values, mask=missing))
    np.testing.assert_array_equal(nulls(array), missing)
    np.testing.assert_array_equal(numbers(array, -1), np.where(missing, -1, values))
    np.testing.assert_array_equal(numbers(array[3:7], -1), np.where(missing, -1, values)[3:7])
    np.testing.assert_array_equal(nulls(array[3:7]), missing[3:7])
    np.testing.assert_array_equal(numbers(number_array(values)), values)


def test_strings_and_their_codes() -> None:
    names = ["", "ä", "word", "日本"]
    assert string_array(names).equals(pa.array(names, pa.string()))
    assert string_array([]).equals(pa.array([], pa.string()))
    coded = dictionary_array(names, np.array([3, -1, 1], np.int32))
    coded.validate(full=True)
    assert coded.to_pylist() == ["日本", None, "ä"]
    with pytest.raises(CorpusError, match=r"'a\\ud800' is not valid Unicode text"):
        string_array(["a", "a\ud800"])
    with pytest.raises(TypeError):
        string_array(["a", 1])  # type: ignore[list-item]


def test_lists_and_their_entries() -> None:
    values = number_array(np.arange(6.0))
    array = lists(np.array([0, 2, 2, 5, 6]), values, np.array([False, True, False, False]))
    array.validate(full=True)
    assert array.to_pylist() == [[0, 1], None, [2, 3, 4], [5]]
    assert flattened(array).equals(values)
    assert flattened(array[2:]).to_pylist() == [2, 3, 4, 5]
    hiding = lists(np.array([0, 2, 5, 6]), values, np.array([False, True, False]))
    assert flattened(hiding).to_pylist() == [0, 1, 5]


def test_a_corpus_is_made_and_read_without_pandas() -> None:
    program = (
        "import sys; from gramline.pipeline import Corpus; "
        "Corpus.from_sequences([[{'word=a': 1.0, 'x': 2.0}, 'b']], [['A', 'B']]).packed(); "
        "assert not {'pandas', 'pyarrow.compute'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
