"""Built-in tables of amino acids: the published figures, and kernels of them for every letter."""

from importlib.resources import files
from typing import get_args

import numpy as np
import pytest
from strategies import pack, words
from tolerances import assert_close

from gramline.kernels import PositionKernel, Substitution, Sum
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelParameterError, PackingError
from gramline.kernels.observations.amino_acids import (
    AMINO_ACIDS,
    HALF_BITS,
    LETTERS,
    MEANT,
    AminoAcidTable,
    letter_similarity,
    published_scores,
    without_negative_part,
)
from gramline.kernels.observations.base import ObservationKernel

TABLES = get_args(AminoAcidTable)
# A few entries of each publication.
KNOWN = {
    "blosum45": {"WW": 15, "CC": 12, "AA": 5, "IV": 3, "KR": 3, "FP": -3, "YF": 3, "ST": 2, "HY": 2},
    "blosum62": {"WW": 11, "CC": 9, "AA": 4, "IV": 3, "KR": 2, "WD": -4, "FP": -4, "YF": 3, "ST": 1},
    "blosum80": {"WW": 16, "CC": 13, "AA": 7, "IV": 4, "KR": 3, "WD": -8, "FP": -6, "YF": 4, "ST": 2},
    "pam120": {"WW": 12, "CC": 9, "AA": 3, "IV": 3, "KR": 2, "WC": -8, "FP": -5, "YF": 4, "ST": 2},
    "pam250": {"WW": 17, "CC": 12, "AA": 2, "IV": 4, "KR": 3, "WC": -8, "FP": -5, "YF": 7, "ST": 1},
}


def similar(table, a, b, sharpness=0.15):
    return letter_similarity(table, sharpness)[LETTERS.index(a), LETTERS.index(b)]


def test_every_table_has_a_file_a_unit_and_known_entries():
    assert set(TABLES) == set(HALF_BITS) == set(KNOWN)


@pytest.mark.parametrize("table", TABLES)
def test_published_scores(table):
    scores = published_scores(table)
    rows = files("gramline.kernels.observations").joinpath(f"{table}.txt").read_text("utf-8").splitlines()
    assert rows[-21].split() == ["#", *AMINO_ACIDS]
    assert [row[0] for row in rows[-20:]] == list(AMINO_ACIDS)
    assert scores.shape == (20, 20)
    assert (scores == scores.T).all()
    assert (np.diagonal(scores) == scores.max(axis=1)).all()
    for pair, score in KNOWN[table].items():
        assert scores[AMINO_ACIDS.index(pair[0]), AMINO_ACIDS.index(pair[1])] == score


@pytest.mark.parametrize("sharpness", [0.01, 0.15, 0.5])
@pytest.mark.parametrize("table", TABLES)
def test_positive_semidefinite_for_all_letters_though_the_scores_are_not(table, sharpness):
    assert np.linalg.eigvalsh(published_scores(table))[0] < -1
    values = letter_similarity(table, sharpness)
    assert values.shape == (len(LETTERS),) * 2
    assert_close(values, values.T)
    assert np.linalg.eigvalsh(values)[0] > -1e-12
    assert_close(np.diagonal(values)[:20], 1.0)
    assert Substitution.named(table, sharpness=sharpness, normalized=True).is_positive_semidefinite


def test_similarity_falls_with_every_half_bit():
    assert_close(similar("blosum62", "I", "V"), np.exp(0.15 * (3 - (4 + 4) / 2)))
    assert_close(similar("blosum45", "I", "V", 0.3), np.exp(0.3 * 2 / 3 * (3 - (5 + 5) / 2)))


def test_a_table_with_negative_eigenvalues_loses_only_them():
    scores = 2 / 3 * published_scores("pam250")
    own = np.diagonal(scores) / 2
    raw = np.exp(0.15 * (scores - own[:, None] - own))
    assert np.linalg.eigvalsh(raw)[0] < -0.01
    assert np.abs(letter_similarity("pam250", 0.15)[:20, :20] - raw).max() < 0.05
    assert_close(without_negative_part(np.array([[1.0, 2.0], [2.0, 1.0]])), np.ones((2, 2)))


@pytest.mark.parametrize("table", TABLES)
def test_ambiguous_letters_are_means_and_signs_are_alone(table):
    for letter, meant in MEANT.items():
        for other in "AWK":
            assert_close(similar(table, letter, other), np.mean([similar(table, one, other) for one in meant]))
    assert_close(similar(table, "B", "B"), (1 + similar(table, "N", "D")) / 2)
    for sign in "*-.":
        assert [letter for letter in LETTERS if similar(table, sign, letter)] == [sign]


def test_letters_of_any_case_are_known_and_others_refused():
    kernel = PositionKernel(Substitution.named("blosum62"))
    assert_close(kernel.gram(pack(words("ivxu"))), kernel.gram(pack(words("IVXC"))))
    with pytest.raises(PackingError) as error:
        kernel.gram(pack(words("AC A1")))
    assert (error.value.structure, error.value.position) == (1, 1)
    assert error.value.advice == "replace it in the corpus"


def test_the_name_is_all_that_travels():
    kernel = Substitution.named("pam250", sharpness=0.1)
    expected = {"name": "substitution", "normalized": False, "table": "pam250", "sharpness": 0.1}
    assert kernel.to_dict() == expected
    assert from_dict(expected, ObservationKernel) == kernel
    assert eval(repr(kernel)) == kernel
    assert Sum(kernel, Substitution.named("blosum62")).alphabet() == LETTERS


@pytest.mark.parametrize(
    ("parameters", "key", "sentence"),
    [
        (
            {"table": "blosum63"},
            "table",
            "Substitution.table must be one of blosum45, blosum62, blosum80, pam120, pam250, got 'blosum63'",
        ),
        ({}, "symbols", "Substitution.symbols is missing; give symbols and matrix, or a built-in table: blosum45, "),
        ({"symbols": "AB"}, "matrix", "Substitution.matrix is missing; "),
        ({"symbols": "AB", "table": "pam250"}, "symbols", "Substitution.symbols is given beside the table 'pam250'"),
        ({"matrix": [[1.0]], "table": "pam250"}, "matrix", "Substitution.matrix is given beside the table 'pam250'"),
        (
            {"symbols": "A", "matrix": [[1.0]], "sharpness": 0.2},
            "sharpness",
            "Substitution.sharpness is that of a table; give a table, or leave it out",
        ),
    ],
)
def test_what_is_refused(parameters, key, sentence):
    with pytest.raises(KernelParameterError) as error:
        Substitution(**parameters)
    assert error.value.key == key
    assert str(error.value).startswith(sentence)
