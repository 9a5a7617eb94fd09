"""Substitution and Identity: kernels that look at codes only."""

import numpy as np
import pytest
from strategies import pack, words
from tolerances import assert_close

from gramline.kernels import Identity, SequenceLabeling, Substitution
from gramline.kernels.errors import PackingError
from gramline.kernels.observations import base as codes

MATRIX = [[4.0, -1.0, 0.0], [-1.0, 5.0, -2.0], [0.0, -2.0, 0.0]]


def values(kernel, packed):
    ready = SequenceLabeling(observation=kernel).prepare(packed)
    out = np.empty((packed.n_positions,) * 2)
    kernel.strips(ready, ready).fill(0, packed.n_positions, out)
    return out, kernel.diagonal(ready)


def test_values_follow_the_symbols_not_their_codes():
    packed = pack(words("cab b"))  # vocabulary codes a, b, c are 0, 1, 2; the matrix has another order
    out, diagonal = values(Substitution("cba", MATRIX), packed)
    order = [0, 2, 1, 1]
    assert_close(out, np.array(MATRIX)[np.ix_(order, order)])
    assert_close(diagonal, out.diagonal())


def test_normalized_divides_by_what_is_positive():
    out, diagonal = values(Substitution("abc", MATRIX, normalized=True), pack(words("abc")))
    assert_close(out, [[1.0, -1 / np.sqrt(20), 0.0], [-1 / np.sqrt(20), 1.0, 0.0], [0.0, 0.0, 0.0]])
    assert_close(diagonal, [4.0, 5.0, 0.0])


def test_reports_a_matrix_that_is_not_positive_semidefinite():
    kernel = Substitution("abc", MATRIX)
    assert not kernel.is_positive_semidefinite
    assert_close(kernel.smallest_eigenvalue, np.linalg.eigvalsh(MATRIX)[0])
    assert Substitution("ab", [[2.0, 2.0], [2.0, 2.0]]).is_positive_semidefinite


def test_unknown_symbol():
    packed = pack(words("ab axb"))
    with pytest.raises(PackingError) as error:
        SequenceLabeling(observation=Substitution("ab", np.eye(2))).gram(packed)
    assert (error.value.structure, error.value.position) == (1, 1)
    assert "no row for the symbol 'x'" in error.value.problem
    assert error.value.advice.startswith("add it to symbols and matrix")


def test_needs_prepared_structures():
    packed = pack(words("ab"))
    with pytest.raises(PackingError, match=r"not encoded for Substitution; .*kernel\.prepare"):
        Substitution("ab", np.eye(2)).strips(packed, packed)


def test_identity_compares_whole_observations():
    packed = pack([[{"a": 1.0, "b": 1.0}, {"a": 1.0}, {"b": 1.0, "a": 1.0}, {"a": 2.0}]])
    out, diagonal = values(Identity(normalized=True), packed)
    assert np.array_equal(out, [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
    assert np.array_equal(diagonal, np.ones(4))


def test_compiled_equals_interpreted():
    rows, cols = np.array([2, 0, 1], np.int32), np.array([0, 2, 2, 1], np.int32)
    for function, leading in (
        (codes.fill_equal, ()),
        (codes.fill_gathered, (np.array(MATRIX),)),
    ):
        compiled, interpreted = np.empty((2, 3, 4))
        function(*leading, rows, cols, compiled)
        function.py_func(*leading, rows, cols, interpreted)
        assert np.array_equal(compiled, interpreted)
