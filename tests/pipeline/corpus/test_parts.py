"""Parts of a corpus and structures that occur again (`duplicates`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramline.pipeline.corpus import Corpus, duplicate_groups, generate_saleslog
from gramline.pipeline.corpus.duplicates import structure_fingerprints
from gramline.pipeline.corpus.parts import sample_corpus, split_corpus, without_duplicates
from gramline.pipeline.errors import CorpusError

CORPUS = Corpus.from_sequences([[f"w{k % 30}"] for k in range(40)], [["X" if k < 35 else "Y"] for k in range(40)])


def test_a_split_is_of_whole_structures_and_seeded() -> None:
    shares = {"train": 0.7, "dev": 0.1, "test": 0.2}
    parts = split_corpus(CORPUS, shares, seed=3)
    assert {name: len(part) for name, part in parts.items()} == {"train": 28, "dev": 4, "test": 8}
    ids = [name for part in parts.values() for name in part.ids]
    assert sorted(ids, key=int) == CORPUS.ids
    assert all(part.ids == sorted(part.ids, key=int) for part in parts.values())
    assert all(part.label_names == CORPUS.label_names for part in parts.values())
    assert split_corpus(CORPUS, shares, seed=3)["dev"].ids == parts["dev"].ids
    assert split_corpus(CORPUS, shares, seed=4)["dev"].ids != parts["dev"].ids
    assert (
        split_corpus(CORPUS, {"a": 70, "b": 30}, seed=3)["a"].ids
        == split_corpus(CORPUS, {"a": 0.7, "b": 0.3}, seed=3)["a"].ids
    )


def test_duplicates_stay_together() -> None:
    parts = split_corpus(CORPUS, {"a": 0.5, "b": 0.5}, seed=1, groups=duplicate_groups(CORPUS).tolist())
    a, b = ({token for row in part.tokens for token in row} for part in parts.values())
    assert not a & b
    assert (len(parts["a"]), len(parts["b"])) == (20, 20)
    columns = split_corpus(CORPUS, {"a": 0.5, "b": 0.5}, groups=[[k % 4] for k in range(40)])
    assert len({int(name) % 4 for name in columns["a"].ids}) == 2


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"a": 0.5, "b": 0.4}, "the shares sum to 0.9; make them sum to 1, or to 100"),
        ({"a": 1.0}, "a split has at least two parts"),
        ({"a": 1.5, "b": -0.5}, "the share of 'b' must be above 0, got -0.5"),
        ({"a": float("nan"), "b": 1}, "the share of 'a' must be above 0, got nan"),
        ({"a": 0.999, "b": 0.001}, "no structure is left for 'b', a part of 0.001 of 40 structures"),
    ],
)
def test_splits_that_do_not_fit(shares: Any, said: str) -> None:
    with pytest.raises(CorpusError) as error:
        split_corpus(CORPUS, shares)
    assert said in str(error.value)


def test_a_sample() -> None:
    drawn = sample_corpus(CORPUS, 10, seed=2)
    assert (len(drawn), len(set(drawn.ids))) == (10, 10)
    assert drawn.ids == sample_corpus(CORPUS, 10, seed=2).ids != sample_corpus(CORPUS, 10, seed=3).ids
    assert sample_corpus(CORPUS, 40).ids == CORPUS.ids
    with pytest.raises(CorpusError, match="cannot draw 41 of 40 structures; draw 1 to 40"):
        sample_corpus(CORPUS, 41)


def test_without_duplicates() -> None:
    kept = without_duplicates(CORPUS)
    assert (len(kept.corpus), kept.n_removed, kept.n_other_labels) == (30, 10, 5)
    assert kept.corpus.ids == CORPUS.ids[:30]
    assert without_duplicates(kept.corpus).n_removed == 0


@pytest.mark.parametrize("kind", ["sequences", "trees", "dags", "parses"])
def test_groups_of_every_kind(kind: str) -> None:
    corpus = generate_saleslog(6, seed=1, kind=kind, features="token")
    twice = corpus.select([0, 1, 2, 0, 3, 2, 2])
    distinct = duplicate_groups(corpus)
    assert duplicate_groups(twice).tolist() == [0, 1, 2, 0, 4, 2, 2]
    assert distinct.tolist() == list(range(6))
    one_by_one = [structure_fingerprints(corpus.select([k]))[0] for k in range(6)]
    assert structure_fingerprints(corpus) == one_by_one, "they do not depend on the vocabulary"


def test_what_makes_structures_differ() -> None:
    tokens = [[{"f": 1.0}], [{"f": 2.0}], [["f"]], [["f", "g"]], [["g", "f"]], ["f"]]
    assert duplicate_groups(Corpus.from_sequences(tokens)).tolist() == [0, 1, 0, 3, 3, 5]
    trees = Corpus.from_trees([["a", "b", "c"]] * 3, [[[1, 2], [], []], [[2, 1], [], []], [[1], [2], []]])
    assert duplicate_groups(trees).tolist() == [0, 1, 2]
    tagged = Corpus.from_tagged([[("a", "X")], [("a", "Y")], [("a", "X")]])
    assert duplicate_groups(tagged).tolist() == [0, 1, 0]
    joined = Corpus.from_sequences([["ab", "c"], ["a", "bc"], ["abc"]])
    assert duplicate_groups(joined).tolist() == [0, 1, 2]


def test_labels_do_not_count() -> None:
    corpus = Corpus.from_sequences([["a"], ["a"]], [["X"], ["Y"]])
    assert duplicate_groups(corpus).tolist() == [0, 0]
    assert duplicate_groups(corpus).dtype == np.int64
