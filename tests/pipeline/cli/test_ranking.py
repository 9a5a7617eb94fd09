"""Candidates of a treebank, a ranker trained on them, its choices and their score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles.parsing import parse_score

from gramline.pipeline.corpus.corpus import Corpus

VERBS, NOUNS = ["saw", "met", "heard"], ["man", "dog", "friend", "park"]


def sentence(rng: np.random.Generator) -> str:
    """Attachment is to the noun after 'met', to the verb otherwise: a fragment that holds both words knows it."""
    verb, first, second = rng.choice(VERBS), rng.choice(NOUNS), rng.choice(NOUNS)
    phrase = f"(PP (P with) (NP (D a) (N {second})))"
    noun = f"(NP (D the) (N {first}))"
    objects = f"(NP {noun} {phrase})" if verb == "met" else f"{noun} {phrase}"
    return f"(TOP (S (NP (PRP I)) (VP (V {verb}) {objects})))"


ODD = "(TOP (X (Y q) (Z r)))"  # too short for the rules of the others


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("treebank")
    rng = np.random.default_rng(0)
    (folder / "train.mrg").write_text("\n".join(sentence(rng) for _ in range(30)))
    (folder / "new.mrg").write_text("\n".join([ODD, *(sentence(rng) for _ in range(16))]))
    return folder


@pytest.fixture
def candidates(gramline: Any, treebank: Path, tmp_path: Path) -> Path:
    """Candidates to train on and to choose from, and the Gram matrix of the first."""
    train, new = treebank / "train.mrg", treebank / "new.mrg"
    assert (
        gramline("corpus", "candidates", train, "--held-out", "5", "--best", "4", "-o", tmp_path / "t.parquet").code
        == 0
    )
    assert (
        gramline("corpus", "candidates", new, "--grammar", train, "--best", "4", "-o", tmp_path / "n.parquet").code == 0
    )
    built = gramline(
        "gram",
        "build",
        tmp_path / "t.parquet",
        "-o",
        tmp_path / "g.zarr",
        "--kernel",
        "subset-tree:decay=0.4",
        "--inline",
    )
    assert built.code == 0, built.err
    return tmp_path


def test_candidates_say_what_became_of_the_sentences(gramline: Any, treebank: Path, tmp_path: Path) -> None:
    arguments = ("corpus", "candidates", treebank / "new.mrg", "--grammar", treebank / "train.mrg")
    answer = gramline(*arguments, "--best", "4", "-o", tmp_path / "c.parquet")
    assert (answer.code, answer.err) == (0, "")
    for expected in ("parsed       16", "no parse     1", "out of time  0", "candidates in "):
        assert expected in answer.out
    told = gramline(*arguments, "--best", "4", "-o", tmp_path / "c.parquet", "--json").json
    assert told["outcomes"] == {"parsed": 16, "no parse": 1, "out of time": 0}
    corpus = Corpus.load(tmp_path / "c.parquet")
    assert told["candidates"] == len(corpus) > 16
    assert {"group", "probability", "score", "weight"} < set(corpus.table.column_names)
    assert set(corpus.column("group")) == set(range(1, 17))
    hurried = gramline(*arguments, "--seconds", "1e-9", "-o", tmp_path / "d.parquet")
    assert hurried.code == 2
    assert "no sentence has a parse" in hurried.error
    assert not (tmp_path / "d.parquet").exists()


def test_a_corpus_of_parses_is_a_treebank_too(gramline: Any, treebank: Path, tmp_path: Path) -> None:
    assert gramline("corpus", "import", treebank / "train.mrg", "-o", tmp_path / "t.parquet").code == 0
    by_corpus = gramline(
        "corpus",
        "candidates",
        tmp_path / "t.parquet",
        "--held-out",
        "3",
        "--horizontal",
        "1",
        "-o",
        tmp_path / "a.parquet",
    )
    by_file = gramline(
        "corpus",
        "candidates",
        treebank / "train.mrg",
        "--held-out",
        "3",
        "--horizontal",
        "1",
        "-o",
        tmp_path / "b.parquet",
    )
    assert (by_corpus.code, by_file.code) == (0, 0)
    assert Corpus.load(tmp_path / "a.parquet").fingerprint == Corpus.load(tmp_path / "b.parquet").fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give either --grammar TREEBANK, or --held-out FOLDS"),
        (["--held-out", "3", "--grammar", "x.mrg"], "give either --grammar TREEBANK, or --held-out FOLDS"),
        (["--held-out", "99"], "30 trees can be cut into 2 to 30 folds, not 99"),
        (["--grammar", "nothing.mrg"], "nothing.mrg"),
    ],
)
def test_candidates_refuse_what_makes_no_sense(
    gramline: Any, treebank: Path, tmp_path: Path, options: list[str], said: str
) -> None:
    answer = gramline("corpus", "candidates", treebank / "train.mrg", *options, "-o", tmp_path / "c.parquet")
    assert answer.code == 2
    assert said in answer.error


@pytest.mark.parametrize("options", [[], ["--average"], ["--set", "vote=false"]], ids=["voted", "averaged", "plain"])
def test_a_ranker_finds_what_the_grammar_cannot_know(
    gramline: Any, treebank: Path, candidates: Path, options: list[str]
) -> None:
    ranker, new, chosen = candidates / "r.zarr", candidates / "n.parquet", candidates / "chosen.jsonl"
    fitting = ("fit", candidates / "g.zarr", "-o", ranker, "--learner", "ranking-perceptron", "--rounds", "2", *options)
    fitted = gramline(*fitting, "--candidates", candidates / "t.parquet")
    assert fitted.code == 0, fitted.err
    assert "times smaller" in fitted.out
    assert "times faster than their sum" in fitted.out
    told = gramline(*fitting, "--overwrite", "--candidates", candidates / "t.parquet", "--json").json
    assert told["params"]["passes"] == 2
    assert told["forest"]["subtrees"] < told["forest"]["nodes"]
    assert gramline("predict", ranker, new, "-o", chosen).out.startswith("one of ")
    records = [json.loads(line) for line in chosen.read_text().splitlines()]
    assert [record["group"] for record in records] == list(range(1, 17))
    assert gramline("predict", ranker, new, "--json").json["predictions"] == records
    by_ranker = gramline("evaluate", ranker, new, "--json").json
    by_file = gramline("evaluate", chosen, new, "--json").json
    for key in ("source", "cost"):
        assert by_ranker.pop(key) != by_file.pop(key)
    assert by_ranker == by_file
    assert by_ranker["first"] < by_ranker["chosen"] == by_ranker["oracle"] == 1.0
    assert by_ranker["error_reduction"] == 1.0
    with_all = gramline("evaluate", ranker, new, "--gold", treebank / "new.mrg", "--json").json
    gold = Corpus.from_parses((treebank / "new.mrg").read_text().splitlines()).trees
    trees = [None, *(record["tree"] for record in records)]
    assert with_all["chosen"] == pytest.approx(parse_score(zip(trees, gold, strict=True)))
    assert with_all["n_groups"] == 17
    assert "error reduction" in gramline("evaluate", ranker, new).out


def test_chosen_trees_are_a_corpus_again(gramline: Any, candidates: Path) -> None:
    ranker = candidates / "r.zarr"
    options = ("--learner", "ranking-perceptron", "--candidates", candidates / "t.parquet")
    assert gramline("fit", candidates / "g.zarr", "-o", ranker, *options).code == 0
    assert gramline("predict", ranker, candidates / "n.parquet", "-o", candidates / "c.jsonl").code == 0
    again = gramline("corpus", "import", candidates / "c.jsonl", "-o", candidates / "c.parquet", "--json").json
    assert (again["kind"], again["structures"]) == ("parses", 16)
    shown = gramline("predict", ranker, candidates / "n.parquet", "--format", "brackets").out
    assert gramline("predict", ranker, candidates / "n.parquet", "-o", candidates / "c.mrg").code == 0
    assert (candidates / "c.mrg").read_text() == shown
    assert Corpus.read(candidates / "c.mrg").table["links"] == Corpus.load(candidates / "c.parquet").table["links"]


def test_refusals_are_one_line(gramline: Any, treebank: Path, candidates: Path) -> None:
    gram, train, new, ranker = (candidates / name for name in ("g.zarr", "t.parquet", "n.parquet", "r.zarr"))
    fitting = ("fit", gram, "-o", ranker, "--learner", "ranking-perceptron")
    assert "as --candidates CORPUS" in gramline(*fitting).error
    assert "is not the one that the Gram matrix was built from" in gramline(*fitting, "--candidates", new).error
    labeling = gramline("fit", gram, "-o", ranker, "--candidates", train)
    assert "--candidates has no effect with labeling-perceptron" in labeling.error
    assert not ranker.exists()
    assert gramline(*fitting, "--candidates", train).code == 0
    assert "do not fit into columns" in gramline("predict", ranker, new, "-o", candidates / "x.conll").error
    assert "is not a sentence of" in gramline("evaluate", ranker, new, "--gold", treebank / "train.mrg").error
    plain = candidates / "plain.parquet"
    Corpus.from_parses([["S", ["A", "x"]]]).save(plain)
    assert "no column 'group'" in gramline("predict", ranker, plain).error
    (candidates / "bad.jsonl").write_text('{"group": 1, "candidate": 99}\n')
    answer = gramline("evaluate", candidates / "bad.jsonl", new)
    assert "has no choice among the" in answer.error
    (candidates / "bad.jsonl").write_text('{"candidate": 0}\n')
    assert 'jsonl:1: a choice is an object with a "group"' in gramline("evaluate", candidates / "bad.jsonl", new).error
