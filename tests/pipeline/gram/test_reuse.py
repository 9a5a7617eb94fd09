"""A corpus that grew takes the tiles of its first structures from the store of the smaller one, bit for bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramline.kernels import (
    Polynomial,
    PositionKernel,
    SequenceLabeling,
    SubsetTree,
    Substitution,
    TreeLabeling,
)
from gramline.kernels.base import Kernel
from gramline.pipeline import Corpus, append_gram, build_gram
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.build import GramBuild, StoreChoices, create_or_open
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.missing import compute_missing
from gramline.pipeline.gram.reuse import link_leading_tiles, shared_blocks
from gramline.pipeline.gram.store import TileStore

WORDS = ["zebra", "ant", "cow", "bee", "dog", "elk", "fox"]


def spelled(n_structures: int, **options: object) -> Corpus:
    """Structures k have words that the smaller corpora do not know, which come first in the vocabulary."""
    X = [[WORDS[(k * k + t) % 7] if k < 8 else f"a{k}-{t}" for t in range(2 + k % 3)] for k in range(n_structures)]
    y = [["X" if t else "Y" for t in range(len(own))] for own in X]
    return Corpus.from_sequences(X, y, **options).with_features("spelling", 1)  # type: ignore[arg-type]


def letters(n_structures: int) -> Corpus:
    return Corpus.from_sequences([list("ACDEFGHIKLMNPQRSTVWY"[k : k + 4]) for k in range(n_structures)])


def trees(n_structures: int) -> Corpus:
    words = [[WORDS[(k + t) % 7] for t in range(3)] for k in range(n_structures)]
    return Corpus.from_trees(words, [[[1, 2], [], []]] * n_structures, [["A", "B", "A"]] * n_structures)


def parses(n_structures: int) -> Corpus:
    return Corpus.from_parses([f"(S (NP {WORDS[k % 7]}) (VP {WORDS[(2 * k) % 7]}))" for k in range(n_structures)])


CASES = {
    "features": (PositionKernel(Polynomial(2, unit=True, normalized=True)), spelled),
    "context": (SequenceLabeling(c=0.5, observation=Polynomial(2)), spelled),
    "alphabet": (SequenceLabeling(observation=Substitution(table="blosum62")), letters),
    "trees": (TreeLabeling(c=0.5), trees),
    "parses": (SubsetTree(), parses),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_tiles_of_the_first_blocks_are_those_that_would_be_computed(case: str, dtype: str, tmp_path: Path) -> None:
    kernel, make = CASES[case]
    choices = StoreChoices(dtype, 8)
    small = create_or_open(kernel, make(9), tmp_path / "small.zarr", choices)
    compute_missing(small, InlineExecutor())
    grown = create_or_open(kernel, make(14), tmp_path / "grown.zarr", choices)
    n_linked = link_leading_tiles(grown, small)
    n_blocks = shared_blocks(grown, small)
    assert n_blocks >= 1
    assert n_linked == n_blocks * (n_blocks + 1) // 2
    assert link_leading_tiles(grown, small) == 0
    computed = build_gram(kernel, make(14), tmp_path / "computed.zarr", dtype=dtype, block_rows=8)
    for i, j in grown.present():
        np.testing.assert_array_equal(grown.read_tile(i, j), computed.store.read_tile(i, j))
    compute_missing(grown, InlineExecutor())
    assert grown.present() == computed.store.present()


def other_word(corpus: Corpus) -> Corpus:
    X = [list(own) for own in corpus.tokens]
    X[0][0] = "gnu"
    return Corpus.from_sequences(X, corpus.labels).with_features("spelling", 1)


@pytest.mark.parametrize(
    ("kernel", "corpus", "choices"),
    [
        (SequenceLabeling(c=0.4), spelled(14), StoreChoices("float64", 8)),
        (SequenceLabeling(c=0.5), other_word(spelled(14)), StoreChoices("float64", 8)),
        (SequenceLabeling(c=0.5), spelled(14, labels=["X", "Y", "Z"]), StoreChoices("float64", 8)),
        (SequenceLabeling(c=0.5), spelled(14), StoreChoices("float32", 8)),
        (SequenceLabeling(c=0.5), spelled(14), StoreChoices("float64", 9)),
        (SequenceLabeling(c=0.5), spelled(14), StoreChoices("float64", 8, "lz4")),
    ],
    ids=["kernel", "first word", "labels", "dtype", "block", "codec"],
)
def test_what_differs_shares_nothing(kernel: Kernel, corpus: Corpus, choices: StoreChoices, tmp_path: Path) -> None:
    small = build_gram(SequenceLabeling(c=0.5), spelled(9), tmp_path / "small.zarr", block_rows=8)
    other = create_or_open(kernel, corpus, tmp_path / "other.zarr", choices)
    assert shared_blocks(other, small.store) == 0


def test_a_later_structure_that_differs_ends_the_shared_blocks(tmp_path: Path) -> None:
    small = build_gram(SequenceLabeling(), spelled(9), tmp_path / "small.zarr", block_rows=8)
    tail = spelled(14).select([0, 1, 2, *range(4, 14)])
    grown = create_or_open(SequenceLabeling(), tail, tmp_path / "grown.zarr", StoreChoices("float64", 8))
    assert 0 < shared_blocks(grown, small.store) < shared_blocks(small.store, small.store)


def test_a_cache_computes_only_what_is_new(tmp_path: Path) -> None:
    cache, kernel, choices = GramCache(tmp_path / "cache"), SequenceLabeling(), StoreChoices("float64", 8)
    with cache.using(kernel, spelled(9).packed(), choices) as small:
        compute_missing(small.store, InlineExecutor())
        files = {path.stat().st_ino for path in Path(small.path).glob("tiles/c/*/*")}
    planned = GramBuild(kernel, spelled(14), None, choices)
    with cache.using(kernel, spelled(14).packed(), choices) as grown:
        assert 0 < grown.status().n_present < grown.status().n_tiles
        shared = {path.stat().st_ino for path in Path(grown.path).glob("tiles/c/*/*")}
        assert shared <= files  # the same files
        assert len(shared) == cache.n_shared(planned)
        compute_missing(grown.store, InlineExecutor())
        np.testing.assert_allclose(grown.to_numpy(), kernel.gram(spelled(14)))
    cache.collect(older_than=0.0)
    assert cache.entries() == []


def test_stores_that_were_appended_to_share_their_first_blocks(tmp_path: Path) -> None:
    small = build_gram(SequenceLabeling(), spelled(9), tmp_path / "small.zarr", block_rows=8)
    append_gram(small.path, spelled(14).select(range(9, 14)))
    grown = create_or_open(SequenceLabeling(), spelled(14), tmp_path / "grown.zarr", StoreChoices("float64", 8))
    assert link_leading_tiles(grown, TileStore(small.path)) > 0
