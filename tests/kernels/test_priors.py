"""Where P(y|x) comes from, and what is refused."""

import numpy as np
import pytest
from strategies import pack, words
from tolerances import assert_close

from gramline.kernels import EmpiricalPrior, SequenceLabeling, TabulatedPrior, UniformPrior
from gramline.kernels.errors import PackingError


def test_uniform_needs_no_table():
    assert UniformPrior().resolve(pack(words("ab"))) is None


def test_empirical_counts_labels_per_observation():
    packed = pack(words("aab ac"), [["B", "B", None], ["O", "I"]])
    table = EmpiricalPrior(0.5).resolve(packed)
    seen_a = np.array([2.5, 0.5, 1.5]) / 4.5
    assert_close(table, [seen_a, seen_a, [1 / 3] * 3, seen_a, np.array([0.5, 1.5, 0.5]) / 2.5])


def test_empirical_takes_new_structures_from_the_training_corpus():
    train = pack(words("ab"), [["B", "O"]])
    new = pack(words("xba"), [["I", "I", "I"]], like=train)
    kernel = SequenceLabeling(prior=EmpiricalPrior())
    ready = kernel.prepare(new, like=kernel.prepare(train))
    assert_close(ready.prior, np.array([[4 / 3] * 3, [1, 1, 2], [2, 1, 1]]) / 4)


def test_empirical_without_any_label():
    with pytest.raises(PackingError, match="EmpiricalPrior counts training labels, but no position"):
        EmpiricalPrior().resolve(pack(words("ab")))


def test_tabulated_is_the_table():
    table = [[[0.5, 0.5, 0.0]], [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5 + 5e-7]]]
    assert_close(TabulatedPrior().resolve(pack(words("a ab"), tables=table)), [row for part in table for row in part])


def test_tabulated_without_a_table():
    with pytest.raises(
        PackingError, match=r"TabulatedPrior reads a prior table, but the corpus carries none; .*a \"prior\" row"
    ):
        TabulatedPrior().resolve(pack(words("ab")))


@pytest.mark.parametrize(
    "row", [[0.5, 0.6, -0.1], [1.5, -0.5, 0.0], [0.5, 0.4, 0.0], [0.5, 0.5, 0.1], [np.nan, 0.5, 0.5], [np.inf, 0, 0]]
)
def test_tabulated_row_that_is_no_distribution(row):
    packed = pack(words("a abc"), tables=[[[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], row, row]])
    with pytest.raises(PackingError) as error:
        TabulatedPrior().resolve(packed)
    assert (error.value.structure, error.value.position) == (1, 1)
    assert error.value.problem.startswith("the prior row has values from ")
    assert error.value.advice == "give values between 0 and 1 that sum to 1"


def test_tabulated_with_another_number_of_labels():
    packed = pack(words("a"), tables=[[[0.5, 0.5]]])
    with pytest.raises(PackingError, match=r"shape \(1, 2\), but the corpus has 1 positions and 3 labels"):
        TabulatedPrior().resolve(packed)
