"""Equal structures are one row, and what is taken of a corpus keeps its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramline.kernels import DagLabeling, Polynomial, PositionKernel, SequenceLabeling, SubsetTree, TreeLabeling
from gramline.kernels.distinct import DistinctRows, first_equals
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.priors import TabulatedPrior
from gramline.pipeline.corpus.corpus import Corpus

WORDS = [["a", "b"], ["b"], ["a", "b"], ["b", "a"], ["b"]]
CHAIN, FORK = [[1], [2], []], [[1, 2], [], []]
CORPORA: dict[str, tuple[Any, Corpus]] = {
    "sequences": (SequenceLabeling(c=0.7), Corpus.from_sequences(WORDS)),
    "positions": (PositionKernel(Polynomial(2)), Corpus.from_sequences([[{"f": 1.0}, {"g": 2.0}], [{"g": 2.0}]])),
    "trees": (TreeLabeling(c=0.5), Corpus.from_trees([["a", "b", "c"]] * 3, [CHAIN, FORK, CHAIN])),
    "dags": (DagLabeling(c=0.5), Corpus.from_dags([["a", "b", "c"]] * 3, [[(0, 1)], [(0, 1), (1, 2)], [(0, 1)]])),
    "parses": (SubsetTree(), Corpus.from_parses(["(S (A a))", "(S (B a))", "(S (A a))"])),
}
every_corpus = pytest.mark.parametrize("name", CORPORA)


@every_corpus
def test_rows_that_are_merged_are_equal(name: str) -> None:
    kernel, corpus = CORPORA[name]
    packed = kernel.prepare(corpus.packed())
    distinct = DistinctRows.of(kernel, packed)
    assert distinct.n_rows < kernel.row_lengths(packed).sum()
    merged = kernel.tile(distinct.units, distinct.units)
    assert np.array_equal(merged[np.ix_(distinct.row_of, distinct.row_of)], kernel.tile(packed, packed))


@every_corpus
def test_structures_taken_in_any_order(name: str) -> None:
    kernel, corpus = CORPORA[name]
    packed = kernel.prepare(corpus.packed())
    order = np.array([len(packed) - 1, 0])
    taken = packed.take(order)
    lengths = kernel.row_lengths(packed)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in order])
    whole = kernel.tile(packed, packed)
    assert np.array_equal(kernel.tile(taken, taken), whole[np.ix_(rows, rows)])


def test_labels_do_not_tell_structures_apart_but_priors_do() -> None:
    tables = [[[0.5, 0.5]], [[0.9, 0.1]], [[0.5, 0.5]]]
    corpus = Corpus.from_sequences([["a"]] * 3, [["X"], ["Y"], ["Y"]], prior=tables)
    packed = corpus.packed()
    assert first_equals(SequenceLabeling().prepare(packed)).tolist() == [0, 0, 0]
    assert first_equals(SequenceLabeling(prior=TabulatedPrior()).prepare(packed)).tolist() == [0, 1, 0]


def test_positions_of_one_observation_are_one_unit() -> None:
    kernel = PositionKernel()
    packed = kernel.prepare(Corpus.from_sequences([["a", "b"], ["b", "a", "a"]]).packed())
    distinct = DistinctRows.of(kernel, packed)
    assert len(distinct.units) == 2
    assert distinct.row_of.tolist() == [0, 1, 1, 0, 0]
    assert distinct.first.tolist() == [0, 0]


def test_an_overflow_names_structures_of_the_corpus() -> None:
    kernel = SequenceLabeling()
    packed = kernel.prepare(Corpus.from_sequences(WORDS).packed())
    distinct = DistinctRows.of(kernel, packed)
    error = distinct.located(KernelOverflowError("K", 1, 0, "float64", "x"), np.array([0, 2]), np.array([1]))
    assert (error.row, error.column) == (3, 1)
