"""The kernel between positions without neighbours."""

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes, pack_tagged
from strategies import pack, words
from tolerances import assert_close

from gramline.kernels import Identity, Linear, Polynomial, PositionKernel, SequenceLabeling, TabulatedPrior
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.pipeline import Corpus


def test_is_the_labeling_kernel_of_structures_of_one_position():
    observation = Polynomial(2, unit=True)
    together = Corpus.from_sequences([["a", "b", "a"], ["b"]])
    alone = Corpus.from_sequences([["a"], ["b"], ["a"], ["b"]])
    assert_close(
        PositionKernel(observation, c=0.7).gram(together), SequenceLabeling(c=0.7, observation=observation).gram(alone)
    )


@pytest.mark.parametrize("kind", ["trees", "dags"])
def test_links_change_nothing(kind):
    linked = pack_nodes([[0, 1, 0]], [[[1, 2], [], []]], kind=kind, n_labels=2)
    assert_close(PositionKernel(Identity()).gram(linked), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_full_kernel_has_the_prior():
    packed = pack(words("ab"), [["B", "I"]], [[[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]]])
    full = PositionKernel(prior=TabulatedPrior()).full(packed)
    assert_close(full[0, 0], np.diag([0.25, 0.09, 0.04]))


def test_other_structures_are_refused():
    with pytest.raises(PackingError, match=r"positions of sequences, trees, dags, but the corpus holds tagged"):
        PositionKernel().gram(pack_tagged([[("a", "N")]]))


def test_overflow_names_the_structures():
    packed = pack([[{"f": 1.0}], [{"f": 1e200}]])
    with pytest.raises(KernelOverflowError) as caught:
        PositionKernel(Linear()).gram(packed)
    assert (caught.value.row, caught.value.column) == (1, 1)
