"""How a corpus was made travels with it, and makes the same features of new text: see also `recipe_reading`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.pipeline.corpus import (
    Corpus,
    Recipe,
    generate_saleslog,
    read_brackets,
    read_conll,
    read_conllu,
    read_fasta,
    read_jsonl,
    spelling,
)
from gramline.pipeline.corpus.recipe import LISTS
from gramline.pipeline.errors import CorpusError

COLUMNS = "The DT O\nold JJ O\nAnn NNP B\n\nAnn NNP B\nran VBD O\n"
RAW = [[("The", "DT"), ("old", "JJ"), ("Ann", "NNP")], [("Ann", "NNP"), ("ran", "VBD")]]
CONLLU = "1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n"
TEMPLATE = "# a comment\nU0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\n\nB\n"

Write = Callable[[str, str], Path]


def features(corpus: Corpus) -> Any:
    """Everything that a kernel sees, by name."""
    packed = corpus.packed()
    names = np.array([*packed.vocabulary.features, ""])
    rows = np.split(names[packed.features.indices], packed.features.indptr[1:-1])
    return packed.kind, packed.starts.tolist(), [row.tolist() for row in rows]


def test_what_readers_record(write: Write) -> None:
    columns = write("c.conll", COLUMNS)
    described = {
        read_conll(columns): "conll, 2 columns a token, tokens as they are",
        read_conll(columns, features="spelling"): "conll, 2 columns a token, spelling features with a window of 1",
        read_conll(columns, label_column=1, missing_label="X", features="words", skip_comments=True): (
            "conll, 2 columns a token, words features, label column 1, missing label X, skip comments True"
        ),
        read_conll(columns, template=write("t", TEMPLATE), minimum_count=2): (
            "conll, 2 columns a token, features seen 2 times or more of a template of 2 lines"
        ),
        read_conllu(write("c.conllu", CONLLU), features="words", window=2): (
            "conllu trees, words features with a window of 2, label UPOS"
        ),
        read_brackets(write("c.mrg", "(S (NP-SBJ they))"), strip_functions=True): "brackets, strip functions True",
        read_jsonl(write("c.jsonl", '{"tokens": ["a"], "edges": []}')): "jsonl dags, tokens as they are",
        read_fasta(write("c.fa", ">a\nMk\n"), lower_case="upper"): "fasta, tokens as they are, lower case upper",
        generate_saleslog(2, features="words"): "lists, 2 columns a token, words features",
    }
    for corpus, description in described.items():
        assert corpus.recipe is not None
        assert corpus.recipe.describe() == description
        assert Recipe.from_dict(corpus.recipe.to_dict()) == corpus.recipe
    assert Corpus.from_sequences([["a"]]).recipe is None


def test_it_survives_what_is_made_of_the_corpus(write: Write, tmp_path: Path) -> None:
    corpus = read_conll(write("c.conll", COLUMNS), template=write("t", TEMPLATE))
    recipe = corpus.recipe
    assert recipe is not None
    corpus.save(tmp_path / "c.parquet")
    derived = (
        corpus.select([1]),
        corpus.split(0.5)[0],
        corpus.with_labels([["X", "X", "Y"], ["X", "Y"]], labels=["X", "Y"]),
        corpus.without_labels(),
        corpus.with_column("group", ["a", "b"]),
        Corpus.load(tmp_path / "c.parquet"),
    )
    assert [other.recipe for other in derived] == [recipe] * 6
    assert corpus.described(None).fingerprint == corpus.fingerprint


def test_a_file_without_a_recipe_has_none(tmp_path: Path) -> None:
    Corpus.from_sequences([["a"]]).save(tmp_path / "c.parquet")
    assert Corpus.load(tmp_path / "c.parquet").recipe is None


@pytest.mark.parametrize("description", [None, [], {}, {"format": "conll", "colour": 1}, {"format": "x", "options": 3}])
def test_a_recipe_that_cannot_be_read(description: Any) -> None:
    with pytest.raises(CorpusError, match=r"recipe .*cannot be read; import the corpus again"):
        Recipe.from_dict(description)


@pytest.mark.parametrize("options", [{}, {"features": "words"}, {"features": "spelling", "window": 2}, {"template": 1}])
def test_columns_again(write: Write, options: dict[str, Any]) -> None:
    if options.get("template"):
        options = {"template": write("t", TEMPLATE), "minimum_count": 2}
    corpus = read_conll(write("c.conll", COLUMNS), **options)
    recipe = corpus.recipe
    assert recipe is not None
    keep = corpus.packed().vocabulary.features
    unlabeled = write("new.conll", COLUMNS.replace(" O", "").replace(" B", ""))
    for again in (
        recipe.read(write("same.conll", COLUMNS), keep=keep),
        recipe.read(unlabeled, keep=keep),
        recipe.corpus_of(RAW, keep=keep),
    ):
        assert features(again) == features(corpus)
        assert again.recipe is not None
        assert again.recipe.differences(recipe) == ()
    assert recipe.read(unlabeled, keep=keep).label_names == []
    assert recipe.read(write("same.conll", COLUMNS), keep=keep, labels=["B", "O"]).label_names == ["B", "O"]
    one = recipe.corpus_of(RAW[:1], [["O", "O", "B"]], keep=keep)
    assert features(one) == features(corpus.select([0]))
    assert one.labels == corpus.labels[:1]


def test_a_pruned_template_needs_the_features_of_training(write: Write) -> None:
    recipe = read_conll(write("c.conll", COLUMNS), template=write("t", TEMPLATE), minimum_count=2).recipe
    assert recipe is not None
    assert recipe.needs_kept_features
    for again in (lambda: recipe.read(write("c.conll", COLUMNS)), lambda: recipe.corpus_of(RAW)):
        with pytest.raises(CorpusError, match="kept the features that it has 2 times or more; give them as `keep`"):
            again()


def test_trees_and_graphs_again(write: Write) -> None:
    corpus = read_conllu(write("c.conllu", CONLLU), features="spelling", window=1)
    recipe = corpus.recipe
    assert recipe is not None
    again = recipe.corpus_of([["dogs", "bark"]], links=[[[], [0]]])
    assert features(again) == features(corpus)
    assert again.table["links"].to_pylist() == corpus.table["links"].to_pylist()
    assert features(recipe.read(write("again.conllu", CONLLU))) == features(corpus)
    with pytest.raises(CorpusError, match="a corpus of trees needs links; give children or edges"):
        recipe.corpus_of([["dogs", "bark"]])
    graph = generate_saleslog(1, kind="dags")
    assert graph.recipe is not None
    edges = [[(u, v) for u, targets in enumerate(graph.table["links"].to_pylist()[0]) for v in targets]]
    assert graph.recipe.corpus_of(graph.tokens, links=edges).table["links"] == graph.table["links"]


def test_parses_and_tagged_sentences_again(write: Write) -> None:
    text = "(S (NP-SBJ (-NONE- *)) (VP run))"
    corpus = read_brackets(write("c.mrg", text), strip_functions=True, strip_empty=True)
    assert corpus.recipe is not None
    assert corpus.recipe.corpus_of([text]).trees == corpus.trees == [["S", ["VP", "run"]]]
    tagged = read_jsonl(write("c.jsonl", '{"tokens": ["a"], "tags": ["X"]}'))
    assert tagged.recipe is not None
    assert tagged.recipe.corpus_of([[("a", "X")]]).fingerprint == tagged.fingerprint
    with pytest.raises(CorpusError, match="tagged are given whole"):
        tagged.recipe.corpus_of([[("a", "X")]], [["L"]])
    with pytest.raises(CorpusError, match="nothing but empty elements") as error:
        corpus.recipe.corpus_of([text, "(S (-NONE- *))"])
    assert error.value.structure == 1


def test_feature_sets_in_python_and_json_lines_again(write: Write) -> None:
    corpus = read_jsonl(write("c.jsonl", '{"tokens": ["a", {"f": 2, "g": "x"}]}'))
    assert corpus.recipe is not None
    assert features(corpus.recipe.corpus_of([["a", {"f": 2, "g": "x"}]])) == features(corpus)


def test_letters_again(write: Write) -> None:
    text = ">a\nMkBV\nHHCC\n"
    corpus = read_fasta(write("c.fa", text), label_lines=True, lower_case="upper", unusual_letters="drop")
    recipe = corpus.recipe
    assert recipe is not None
    assert corpus.tokens == [["M", "K", "V"]]
    again = recipe.corpus_of(["MkBV"], ["HHCC"])
    assert (again.tokens, again.labels) == (corpus.tokens, [["H", "H", "C"]])
    assert recipe.corpus_of([["M", "k", "B", "V"]]).tokens == corpus.tokens
    assert recipe.read(write("new.fa", ">a\nMkB\nV\n")).tokens == corpus.tokens
    assert recipe.read(write("again.fa", text)).labels == corpus.labels
    with pytest.raises(CorpusError, match="structure 0, position 1: a letter is expected, got 'KV'"):
        recipe.corpus_of([["M", "KV"]])


def test_words_with_spelling_in_python(write: Write) -> None:
    words, y = [["Ann", "ran"], ["The", "old", "cat"]], [["B", "O"], ["O", "O", "O"]]
    corpus = spelling(words, y, window=1)
    text = "\n\n".join("\n".join(f"{w} {t}" for w, t in zip(*pair, strict=True)) for pair in zip(words, y, strict=True))
    read = read_conll(write("c.conll", text), features="spelling")
    assert corpus.fingerprint == read.fingerprint
    assert corpus.label_names == ["O", "B"]
    assert corpus.recipe is not None
    assert read.recipe is not None
    assert corpus.recipe.differences(read.recipe) == ()
    assert corpus.recipe != read.recipe
    assert features(corpus.recipe.read(write("c.txt", text))) == features(corpus)
    lines = '{"tokens": ["Ann", "ran"]}\n{"tokens": ["The", "old", "cat"]}\n'
    assert features(corpus.recipe.read(write("c.jsonl", lines))) == features(corpus)


def test_differences_are_named() -> None:
    first = Recipe.of("conll", "sequences", "spelling", None, 2)
    second = Recipe.of("conll", "sequences", "words", None, 1, label_column=1)
    assert [tuple(difference) for difference in first.differences(second)] == [
        ("features", "spelling", "words"),
        ("window", "1", "0"),
        ("columns", "2", "1"),
    ]
    assert str(first.differences(second)[2]) == "columns 2 instead of 1"
    pruned = Recipe("conll", features="template", template="U0:%x[0,0]\nB", minimum_count=3)
    other = Recipe("conll", features="template", template="U0:%x[0,1]\nB", minimum_count=2)
    assert [difference.what for difference in pruned.differences(other)] == ["template", "minimum count"]
    letters = Recipe.of("fasta", "sequences", "token", None, lower_case="upper")
    assert list(map(str, letters.differences(Recipe("conll")))) == ["lower case upper instead of none"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a b c d e\n",
            "c.conll has 5 columns, where a token has 2 columns, or one more with the label; give the columns",
        ),
        ("a\n", "c.conll has 1 column, where a token has 2 columns"),
    ],
)
def test_files_with_other_columns_are_refused(write: Write, text: str, said: str) -> None:
    recipe = Recipe.of("conll", "sequences", "spelling", 1, 2)
    with pytest.raises(CorpusError, match=said):
        recipe.read(write("c.conll", text))


def test_files_of_other_kinds_are_refused(write: Write) -> None:
    recipe = Recipe.of(LISTS, "sequences", "spelling", 1)
    with pytest.raises(CorpusError, match="kind trees instead of sequences; give a file that can be read like"):
        recipe.read(write("c.jsonl", '{"tokens": ["a"], "children": [[]]}'))
    with pytest.raises(CorpusError, match="columns 1 instead of 2"):
        Recipe.of("conll", "sequences", "words", 0, 2).read(write("c.jsonl", '{"tokens": ["a"]}'))
    with pytest.raises(CorpusError, match=r"a template reads columns, and .*c\.jsonl is read as jsonl"):
        Recipe("conll", features="template", template="U0:%x[0,0]").read(write("c.jsonl", '{"tokens": ["a"]}'))


@pytest.mark.parametrize(
    ("sentences", "place", "said"),
    [
        ([["a"]], (0, 0), "the token 'a' has 1 column, where a row of 2 columns is expected"),
        ([[("a", "N")], [("a", "N"), ("b",)]], (1, 1), "has 1 column,"),
        ([[{"w": 1}]], (0, 0), "a token is a word, or a row of 2 strings"),
        ([[("a", 3)]], (0, 0), "a token is a word, or a row of 2 strings"),
        ([[("a", "N")], []], (1, None), "no positions"),
        ([], (None, None), "the corpus is empty"),
    ],
)
def test_sentences_that_do_not_fit(sentences: Any, place: Any, said: str) -> None:
    with pytest.raises(CorpusError) as error:
        Recipe.of("conll", "sequences", "words", 0, 2).corpus_of(sentences)
    assert (error.value.structure, error.value.position) == place
    assert said in str(error.value)
