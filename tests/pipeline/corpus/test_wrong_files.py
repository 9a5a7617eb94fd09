"""Mistakes of newcomers where corpora are read and saved: one sentence each, with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from wrong_calls import CORPUS, Calls, cases, check_refused

from gramline.pipeline import Corpus

FILES = {
    "empty.conll": "",
    "blank.conll": "\n\n\n",
    "ragged.conll": "Ann NNP B\nran O\n",
    "a.conll": "Ann B\nran O\n",
    "a.conllu": "1\tdogs\tdog\tNOUN\t_\t_\t2\tnsubj\t_\tNER=B\n2\tbark\tbark\tVERB\t_\t_\t0\troot\t_\t_\n",
    "cut.conllu": "1\ta\tb\n",
    "a.fasta": ">a\nMKV\n",
    "no.fasta": "MKV\n",
    "a.mrg": "(S (A a))\n",
    "open.mrg": "(S (A a)\n",
    "cut.jsonl": '{"tokens": ["a"]}\n{"tokens": \n',
    "keys.jsonl": '{"words": ["a"]}\n',
    "list.jsonl": '["a"]\n',
    "text.parquet": "hello",
    "empty.parquet": "",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that can be read, and such that cannot."""
    path = tmp_path_factory.mktemp("doors")
    for name, text in FILES.items():
        (path / name).write_text(text)
    (path / "latin.conll").write_bytes(b"\xff\xfeAnn\n")
    (path / "folder").mkdir()
    pq.write_table(pa.table({"a": [1]}), path / "foreign.parquet")
    return path


DOORS: Calls = {
    "read": {
        "no.conll": (lambda f: Corpus.read(f / "no.conll"), "FOLDER/no.conll does not exist"),
        "empty.conll": (lambda f: Corpus.read(f / "empty.conll"), "FOLDER/empty.conll has no tokens"),
        "blank.conll": (lambda f: Corpus.read(f / "blank.conll"), "FOLDER/blank.conll has no tokens"),
        "ragged.conll": (lambda f: Corpus.read(f / "ragged.conll"), "FOLDER/ragged.conll:2: 2 columns, but line 1"),
        "latin.conll": (lambda f: Corpus.read(f / "latin.conll"), "FOLDER/latin.conll:1: not UTF-8 text"),
        "cut.conllu": (lambda f: Corpus.read(f / "cut.conllu"), "FOLDER/cut.conllu:1: 3 tab-separated columns,"),
        "no.fasta": (lambda f: Corpus.read(f / "no.fasta"), "FOLDER/no.fasta:1: letters before the first name: 'MKV'"),
        "open.mrg": (lambda f: Corpus.read(f / "open.mrg"), "FOLDER/open.mrg:1: the tree that begins here is not"),
        "cut.jsonl": (lambda f: Corpus.read(f / "cut.jsonl"), "FOLDER/cut.jsonl:2: not a JSON object (Expecting"),
        "keys.jsonl": (lambda f: Corpus.read(f / "keys.jsonl"), "FOLDER/keys.jsonl:1: structure 0: the key 'tokens'"),
        "list.jsonl": (lambda f: Corpus.read(f / "list.jsonl"), "FOLDER/list.jsonl:1: expected a JSON object with"),
        "folder": (lambda f: Corpus.read(f / "folder"), "FOLDER/folder is not a conll file but a folder"),
        "text.parquet": (lambda f: Corpus.read(f / "text.parquet"), "FOLDER/text.parquet is not a corpus but a file"),
        "empty.parquet": (lambda f: Corpus.read(f / "empty.parquet"), "FOLDER/empty.parquet is not a corpus but an"),
        "foreign.parquet": (lambda f: Corpus.read(f / "foreign.parquet"), "FOLDER/foreign.parquet is not a corpus"),
        "None": (lambda _: Corpus.read(None), "expected a path, got NoneType"),
        "a number": (lambda _: Corpus.read(3), "expected a path, got int"),
        "an empty path": (lambda _: Corpus.read(""), "the path is empty"),
        "a zero byte": (lambda _: Corpus.read("a\0b"), "'a\\x00b' is no path: it has a zero byte in it"),
        "a long path": (lambda _: Corpus.read("x" * 5000), "the path "),
        "format unknown": (lambda f: Corpus.read(f / "a.conll", format="xml"), "there is no format 'xml'"),
        "format a list": (lambda f: Corpus.read(f / "a.conll", format=["conll"]), "there is no format ['conll']"),
        "misspelled": (lambda f: Corpus.read(f / "a.conll", feature="words"), "there is no option feature"),
        "features unknown": (
            lambda f: Corpus.read(f / "a.conll", features="speling"),
            "there is no feature set 'speling'",
        ),
        "features a number": (lambda f: Corpus.read(f / "a.conll", features=3), "features must be a string, got 3"),
        "window -1": (
            lambda f: Corpus.read(f / "a.conll", features="words", window=-1),
            "the window of a feature set is 0 or more neighbours, got -1",
        ),
        "window a word": (
            lambda f: Corpus.read(f / "a.conll", features="words", window="1"),
            "the window of a feature set is 0 or more neighbours, got '1'",
        ),
        "window a fraction": (
            lambda f: Corpus.read(f / "a.conll", features="words", window=1.5),
            "the window of a feature set is 0 or more neighbours, got 1.5",
        ),
        "label_column 9": (lambda f: Corpus.read(f / "a.conll", label_column=9), "FOLDER/a.conll has 2 columns"),
        "label_column a word": (
            lambda f: Corpus.read(f / "a.conll", label_column="last"),
            "label_column must be a whole number, got 'last'",
        ),
        "labels a number": (lambda f: Corpus.read(f / "a.conll", labels=3), "labels must be a list of label names,"),
        "labels of numbers": (
            lambda f: Corpus.read(f / "a.conll", labels=[1, 2]),
            "FOLDER/a.conll: label names must be strings, got 1",
        ),
        "labels too few": (lambda f: Corpus.read(f / "a.conll", labels=["B"]), "FOLDER/a.conll:1: structure 0,"),
        "labels twice": (
            lambda f: Corpus.read(f / "a.conll", labels=["B", "B", "O"]),
            "FOLDER/a.conll: the label 'B' is listed twice",
        ),
        "like a path": (lambda f: Corpus.read(f / "a.conll", like="a.parquet"), "like must be a Corpus, got"),
        "template missing": (
            lambda f: Corpus.read(f / "a.conll", template=f / "no"),
            "cannot read FOLDER/no: No such file or directory",
        ),
        "template a number": (lambda f: Corpus.read(f / "a.conll", template=3), "expected a path, got int"),
        "no_labels a word": (
            lambda f: Corpus.read(f / "a.conll", no_labels="yes"),
            "no_labels must be true or false, got 'yes'",
        ),
        "missing_label a number": (
            lambda f: Corpus.read(f / "a.conll", missing_label=3),
            "missing_label must be a string, got 3",
        ),
        "of another format": (
            lambda f: Corpus.read(f / "a.conll", strip_empty=True),
            "strip_empty has no effect on conll files",
        ),
        "label a number": (lambda f: Corpus.read(f / "a.conllu", label=3), "label must be a string that is not"),
        "observation a string": (
            lambda f: Corpus.read(f / "a.conllu", observation="FORM"),
            "observation must be a list of names of columns or keys, got 'FORM'",
        ),
        "observation empty": (
            lambda f: Corpus.read(f / "a.conllu", observation=[]),
            "observation must be a list of names of columns or keys, got []",
        ),
        "observation a number": (
            lambda f: Corpus.read(f / "a.conllu", observation=3),
            "observation must be a list of names of columns or keys, got 3",
        ),
        "kind unknown": (lambda f: Corpus.read(f / "a.conllu", kind="graph"), "a dependency file gives trees or"),
        "lower_case unknown": (
            lambda f: Corpus.read(f / "a.fasta", lower_case="x"),
            "lower_case must be one of keep, upper, unknown, got 'x'",
        ),
        "unusual_letters unknown": (
            lambda f: Corpus.read(f / "a.fasta", unusual_letters="x"),
            "unusual_letters must be one of keep, drop, unknown, got 'x'",
        ),
        "label_file missing": (
            lambda f: Corpus.read(f / "a.fasta", label_file=f / "no"),
            "cannot read FOLDER/no: No such file or directory",
        ),
        "label_file a number": (lambda f: Corpus.read(f / "a.fasta", label_file=3), "expected a path, got int"),
        "labels of parses": (lambda f: Corpus.read(f / "a.mrg", labels=["a"]), "parse trees have no labels to order"),
    },
    "load and save": {
        "load nothing": (lambda f: Corpus.load(f / "no.parquet"), "there is no corpus file at FOLDER/no.parquet"),
        "load a text": (lambda f: Corpus.load(f / "a.conll"), "FOLDER/a.conll is not a corpus but a file that is not"),
        "load a folder": (lambda f: Corpus.load(f / "folder"), "there is no corpus file at FOLDER/folder"),
        "load None": (lambda _: Corpus.load(None), "expected a path, got NoneType"),
        "load bytes": (lambda _: Corpus.load(b"a"), "expected a path, got bytes"),
        "save to a folder": (lambda f: CORPUS.save(f / "folder"), "cannot write the corpus to FOLDER/folder: Is a"),
        "save to None": (lambda _: CORPUS.save(None), "expected a path, got NoneType"),
        "save to an empty path": (lambda _: CORPUS.save(""), "the path is empty"),
        "save to a zero byte": (lambda _: CORPUS.save("a\0b"), "'a\\x00b' is no path: it has a zero byte in it"),
    },
}


@cases(DOORS)
def test_one_sentence_says_what_and_where(folder: Path, group: str, case: str) -> None:
    check_refused(DOORS, group, case, folder)
