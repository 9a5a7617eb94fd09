"""predict and evaluate on raw files, and predictions written in the format they came in."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.labeler import KernelLabeler

WORDS = [["Ann", "saw", "Bob"], ["they", "ran"], ["Eve", "ran"]]
LABELS = [["B", "O", "B"], ["O", "O"], ["B", "O"]]
DEPENDENCIES = (
    "# sent_id = s1\n1-2\tcan't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tAnn\tAnn\tNOUN\t_\t_\t2\tsubj\t_\tSpaceAfter=No\n"
    "2\tran\trun\tVERB\t_\t_\t0\troot\t_\t_\n\n"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    KernelLabeler().fit(WORDS, LABELS).save(tmp_path / "model.zarr")
    return tmp_path / "model.zarr"


def test_columns_come_back_with_one_more(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw = tmp_path / "new.conll"
    raw.write_text("Ann B\nran O\n\n\nthey O\n")
    shown = gramline("predict", model, raw)
    assert (shown.code, shown.err[:8]) == (0, "cost    ")
    assert shown.out.splitlines() == ["Ann B B", "ran O O", "", "", "they O O"]
    raw.write_text("Ann\nran\n")
    assert gramline("predict", model, raw, "-o", tmp_path / "out.conll").code == 0
    assert (tmp_path / "out.conll").read_text() == "Ann B\nran O\n"
    assert gramline("predict", model, raw, "--format", "jsonl").json["labels"] == ["B", "O"]


def test_lines_that_were_skipped_stay(gramline: Any, tmp_path: Path) -> None:
    train, new = tmp_path / "train.conll", tmp_path / "new.conll"
    rows = "\n\n".join(
        "\n".join(f"{w}\t{t}" for w, t in zip(*pair, strict=True)) for pair in zip(WORDS, LABELS, strict=True)
    )
    train.write_text(f"-DOCSTART-\tO\n\n# first\n{rows}\n")
    corpus = Corpus.read(train, features="spelling", skip_comments=True, skip_document_marks=True)
    KernelLabeler().fit(corpus).save(tmp_path / "model.zarr")
    new.write_text("-DOCSTART-\tO\n\n# first\nAnn\tO\nran\tO\n")
    assert gramline("predict", tmp_path / "model.zarr", new).out.splitlines() == [
        *("-DOCSTART-\tO", "", "# first", "Ann\tO\tB", "ran\tO\tO")
    ]


def test_json_lines_keep_their_keys(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw = tmp_path / "new.jsonl"
    raw.write_text('{"id": "x", "tokens": ["Ann", "ran"], "source": 3, "labels": ["O", "O"]}\n\n{"tokens": ["they"]}\n')
    first, second = map(json.loads, gramline("predict", model, raw).out.splitlines())
    assert first == {"id": "x", "tokens": ["Ann", "ran"], "source": 3, "labels": ["O", "O"], "predicted": ["B", "O"]}
    assert second == {"tokens": ["they"], "predicted": ["O"]}


def test_dependencies_get_a_key(gramline: Any, model: Path, tmp_path: Path) -> None:
    words, raw = tmp_path / "words.model.zarr", tmp_path / "new.conllu"
    raw.write_text(DEPENDENCIES)
    trees = Corpus.read(raw, label="UPOS", features="words")
    KernelLabeler().fit(trees).save(words)
    lines = gramline("predict", words, raw).out.splitlines()
    assert lines[:2] == DEPENDENCIES.splitlines()[:2]
    assert [line.split("\t")[-1] for line in lines[2:4]] == ["SpaceAfter=No|Predicted=NOUN", "Predicted=VERB"]
    again = tmp_path / "again.conllu"
    again.write_text("\n".join(lines) + "\n")
    assert Corpus.read(again, label="MISC.Predicted").labels == [["NOUN", "VERB"]]
    trees.save(tmp_path / "trees.parquet")
    assert gramline("predict", words, tmp_path / "trees.parquet", "-o", tmp_path / "made.conllu").code == 0
    made = Corpus.read(tmp_path / "made.conllu", label="MISC.Predicted")
    assert (made.labels, made.table["links"].to_pylist()) == ([["NOUN", "VERB"]], [[[], [0]]])
    Corpus.from_sequences([["Ann"]]).save(tmp_path / "words.parquet")
    assert gramline("predict", model, tmp_path / "words.parquet", "--format", "conllu").out.splitlines() == [
        "# sent_id = 0",
        "1\tAnn" + "\t_" * 7 + "\tPredicted=B",
        "",
    ]


def test_a_corpus_gets_a_column(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw, out = tmp_path / "new.conll", tmp_path / "out.parquet"
    raw.write_text("Ann B\nran O\n\nthey O\n")
    assert gramline("predict", model, raw, "-o", out).code == 0
    labeled = Corpus.load(out)
    assert (labeled.column("predicted"), labeled.labels) == ([["B", "O"], ["O"]], [["B", "O"], ["O"]])
    assert gramline("evaluate", out, raw, "--json").json["accuracy"] == 1.0
    assert gramline("predict", model, raw, "-o", out).code == 0  # the same again
    answer = gramline("predict", model, raw, "--format", "parquet")
    assert (answer.code, answer.error) == (2, "a corpus cannot be written to stdout; say where to write it (-o FILE)")
    answer = gramline("predict", model, raw, "--format", "brackets")
    assert (answer.code, answer.error) == (2, "labels of positions do not fit into brackets; write them as jsonl")


def test_what_was_not_predicted_is_not_written_over(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw, corpus = tmp_path / "new.conll", tmp_path / "train.parquet"
    raw.write_text("Ann B\nran O\n\nthey O\n")
    assert gramline("corpus", "import", raw, "-o", corpus).code == 0
    before = corpus.read_bytes(), raw.read_text()
    for output, said in ((corpus, "holds other data than predictions"), (raw, "is what is to be labeled")):
        answer = gramline("predict", model, raw, "-o", output)
        assert (answer.code, said in answer.error) == (2, True)
    assert (corpus.read_bytes(), raw.read_text()) == before


def test_a_file_without_labels_has_nothing_to_compare_with(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw = tmp_path / "new.txt"
    raw.write_text("Ann\nran\n")
    answer = gramline("evaluate", model, raw)
    assert (answer.code, answer.error.partition(";")[0]) == (2, f"{raw} has no labels to compare with")


def test_a_raw_file_is_evaluated(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw = tmp_path / "test.txt"
    raw.write_text("Ann B\nran O\n\nEve B\nran B\n")
    scores = gramline("evaluate", model, raw, "--json").json
    assert (scores["structures"], scores["accuracy"]) == (2, 0.75)
    assert gramline("predict", model, raw, "-o", tmp_path / "p.conll").code == 0
    assert gramline("evaluate", tmp_path / "p.conll", raw, "--json").json["accuracy"] == 0.75


def test_a_file_made_otherwise_is_refused(gramline: Any, model: Path, tmp_path: Path) -> None:
    raw, corpus = tmp_path / "new.conll", tmp_path / "new.parquet"
    raw.write_text("Ann NNP B\n")
    for command in ("predict", "evaluate"):
        answer = gramline(command, model, raw)
        assert answer.code == 2
        assert "has 3 columns, where a token has 1 column, or one more with the label" in answer.error
    Corpus.read(raw, features="spelling").save(corpus)
    answer = gramline("predict", model, corpus)
    assert answer.code == 2
    assert "made otherwise than those the model learned from: columns 2 instead of 1" in answer.error


def test_sentences_are_labeled_as_they_arrive(model: Path) -> None:
    command = [str(Path(sys.executable).with_name("gramline")), "predict", str(model), "--stdin"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for word, label in (("Ann", "B"), ("ran", "O"), ("Zoë", None)):  # the answer comes before the input ends
            running.stdin.write(json.dumps({"tokens": [word], "n": 1}) + "\n")
            running.stdin.flush()
            answer = json.loads(running.stdout.readline())
            assert (answer["tokens"], answer["n"]) == ([word], 1)
            assert label in (None, *answer["predicted"])
        running.stdin.close()
        assert running.wait(60) == 0


@pytest.fixture
def from_stdin(gramline: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(text: str | bytes, *arguments: Any) -> Any:
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return gramline("predict", *arguments, "--stdin")

    return call


def test_blocks_of_columns_come_back(from_stdin: Any, model: Path) -> None:
    answer = from_stdin("\nAnn B\nran O\n\n\nEve O\nran O", model)
    assert (answer.code, answer.err[:8]) == (0, "cost    ")
    assert answer.out == "Ann B B\nran O O\n\nEve O B\nran O O\n\n"
    assert from_stdin("Ann\tB\r\n", model).out == "Ann\tB\tB\n\n"
    assert from_stdin("", model).out == ""
    assert (
        from_stdin('{"tokens": ["Ann"]}', model, "--input-format", "jsonl").out
        == '{"tokens": ["Ann"], "predicted": ["B"]}\n'
    )


@pytest.mark.parametrize(
    ("text", "said", "before"),
    [
        ('{"tokens": ["Ann"]}\n{"tokens": 3}\n', "stdin:2: expected a JSON object whose key 'tokens' holds a list", 1),
        ('{"tokens": ["Ann"]}\n\n{"tokens": ["Ann"]\n', "stdin:3: not a JSON object (", 1),
        ('{"tokens": []}\n', "stdin:1: no positions; leave empty structures out", 0),
        ('{"tokens": ["a", 7]}\n', "stdin:1: position 1: a token is a word, or a row of 1 strings, got 7", 0),
        ("Ann\n\nran B C\n", "stdin:3: 3 columns, where a token has 1, or one more with the label", 2),
        (b"Ann\n\n\xff\n", "stdin:3: not UTF-8 text; convert it to UTF-8", 2),
    ],
)
def test_bad_lines_are_named(from_stdin: Any, model: Path, text: str | bytes, said: str, before: int) -> None:
    answer = from_stdin(text, model)
    assert answer.code == 2
    assert answer.error.startswith(said)
    assert len(answer.out.splitlines()) == before, "what came before is answered"


def test_stdin_has_no_use_for_some_options(from_stdin: Any, gramline: Any, model: Path, tmp_path: Path) -> None:
    for options, said in (
        (["new.conll"], "CORPUS has no effect with --stdin; leave it out"),
        (["-o", tmp_path / "out.jsonl"], "-o has no effect with --stdin; leave it out"),
        (["--input-format", "conllu"], "conllu does not come line by line; send JSON lines or CoNLL columns"),
    ):
        answer = from_stdin("Ann\n", model, *options)
        assert (answer.code, answer.error) == (2, said)
    answer = gramline("predict", model)
    assert (answer.code, answer.error) == (2, "there is nothing to label; give a corpus or a file, or --stdin")


def test_letters_come_back_with_a_line_of_labels(gramline: Any, tmp_path: Path) -> None:
    train, new = tmp_path / "train.fasta", tmp_path / "new.fasta"
    train.write_text(">a\nMKVM\nHHCH\n>b\nVVK\nCCH\n")
    corpus = Corpus.read(train, label_lines=True)
    KernelLabeler().fit(corpus).save(tmp_path / "model.zarr")
    new.write_text(">x first one\nMV\n>y\nK\n")
    shown = gramline("predict", tmp_path / "model.zarr", new)
    assert (shown.code, shown.out) == (0, ">x first one\nMV\nHC\n>y\nK\nH\n")
    words = tmp_path / "words.conll"
    words.write_text("long\n")
    refused = gramline("predict", tmp_path / "model.zarr", words, "--input-format", "conll", "--format", "fasta")
    assert refused.code == 2


def test_a_model_of_a_stored_gram_reads_raw_files(gramline: Any, tmp_path: Path) -> None:
    train, new = tmp_path / "train.conll", tmp_path / "new.conll"
    rows = (zip(*pair, strict=True) for pair in zip(WORDS, LABELS, strict=True))
    train.write_text("\n\n".join("\n".join(map(" ".join, row)) for row in rows) + "\n")
    new.write_text("Ann\nran\n")
    corpus, gram, model = (tmp_path / name for name in ("train.parquet", "train.gram.zarr", "model.zarr"))
    assert gramline("corpus", "import", train, "--features", "spelling", "-o", corpus).code == 0
    kernel = ("--kernel", "position", "--observation", "polynomial")
    assert gramline("gram", "build", corpus, *kernel, "--inline", "-o", gram).code == 0
    assert gramline("fit", gram, "--learner", "labeling-perceptron", "-o", model).code == 0
    assert StoredGram.open(gram).recipe == Corpus.load(corpus).recipe
    assert gramline("predict", model, new).out == "Ann B\nran O\n"
    other = tmp_path / "other.parquet"
    assert gramline("corpus", "import", train, "--features", "words", "-o", other).code == 0
    refused = gramline("predict", model, other)
    assert refused.code == 2
    assert "spelling" in refused.err
