"""Every reader of files from strangers: how a good input looks, and what is done with a bad one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from fuzz import inputs
from fuzz.mutations import mutated

from gramline.kernels.errors import KernelError
from gramline.learners.errors import LearnerError
from gramline.pipeline.choices import LowerCase, UnusualLetters
from gramline.pipeline.cli.cv_job import prepare
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.brackets import read_brackets
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.readers.conllu import read_conllu
from gramline.pipeline.corpus.readers.fasta import read_fasta
from gramline.pipeline.corpus.readers.jsonl import read_jsonl
from gramline.pipeline.crossval.folds import from_file
from gramline.pipeline.errors import InputError, RunError

OURS = (InputError, RunError, KernelError, LearnerError)
POSITION = re.compile(r":\d+\b|line \d+|structure \d+|fold \d+|entry \d+|node \d+")
# Complaints about a file as a whole; every other one must say where.
WHOLE = re.compile(
    r"has no (tokens|sentences|trees|sequences)|have no features to choose|"
    r"is empty|damaged gzip|expands to more|holds no fold|gives no features|"
    r"has one column|there is no column|columns besides the label|both the word and the label|"
    r"Parquet|is missing; name it|cannot be read: |"
    r"is not valid Unicode|cannot read .*:|is a corpus already|a job needs|no corpus file"
)


@dataclass(frozen=True)
class Reader:
    """One way in: a generator of good inputs and what opens them."""

    name: str
    suffix: str
    good: Callable[[random.Random], bytes]
    read: Callable[[Path, random.Random], object]


def _conll(path: Path, draw: random.Random) -> object:
    features = draw.choice(("token", "words", "spelling"))
    word, label = draw.choice(((None, -1), (None, 1), (None, None), (1, -1), (-1, 0)))
    return read_conll(path, features=features, word_column=word, label_column=label, skip_document_marks=True)


def _conllu(path: Path, draw: random.Random) -> object:
    label, kind = draw.choice(("UPOS", "NER", "FEATS.Number", None)), draw.choice(("trees", "sequences"))
    return read_conllu(path, label=label, kind=kind)


def _jsonl(path: Path, draw: random.Random) -> object:
    return read_jsonl(path, features=draw.choice(("token", "token", "spelling")))


def _brackets(path: Path, draw: random.Random) -> object:
    return read_brackets(path, strip_functions=draw.random() < 0.5, strip_empty=draw.random() < 0.5)


def _fasta(path: Path, draw: random.Random) -> object:
    unusual_letters: UnusualLetters = draw.choice(get_args(UnusualLetters))
    lower_case: LowerCase = draw.choice(get_args(LowerCase))
    label_lines = draw.random() < 0.8
    return read_fasta(path, label_lines=label_lines, unusual_letters=unusual_letters, lower_case=lower_case)


def _template(path: Path, _draw: random.Random) -> object:
    columns = path.with_name("columns.txt")
    if not columns.exists():
        columns.write_text("the D O\ndog N B\n\nruns V O\n", "utf-8")
    return read_conll(columns, template=path)


def _job(path: Path, _draw: random.Random) -> object:
    corpus = path.with_name("tiny.parquet")
    if not corpus.exists():
        X = [["a", "b"], ["b"], ["c", "a"], ["a"], ["b", "c"], ["c"]]
        Corpus.from_sequences(X, [["O"] * len(tokens) for tokens in X]).save(corpus)
    return prepare(str(path), OptionValues())


READERS = (
    Reader("CoNLL columns", ".conll", inputs.conll, _conll),
    Reader("CoNLL-U", ".conllu", inputs.conllu, _conllu),
    Reader("brackets", ".mrg", inputs.brackets, _brackets),
    Reader("JSON lines", ".jsonl", inputs.jsonl, _jsonl),
    Reader("FASTA", ".fasta", inputs.fasta, _fasta),
    Reader("feature templates", ".template", inputs.template, _template),
    Reader("fold files", ".json", inputs.fold_file, lambda path, _draw: from_file(path, 6)),
    Reader("job files", ".toml", inputs.job, _job),
)


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    refused: int = 0
    read: int = 0  # a mutation may leave a good file


def attack(reader: Reader, folder: Path, seed: int, count: int) -> Tally:
    """`count` bad inputs; each is read, or refused by an error of ours in one line that says where."""
    tally = Tally()
    path = folder / f"bad{reader.suffix}"
    for number in range(count):
        draw = random.Random(f"{reader.name} {seed} {number}")
        content = mutated(draw, reader.good(draw))
        path.write_bytes(content)
        said = refusal(reader, path, draw, f"{reader.name}, seed {seed}, input {number}: {content[:300]!r}")
        tally.read += said is None
        tally.refused += said is not None
    return tally


def refusal(reader: Reader, path: Path, draw: random.Random, what: str) -> str | None:
    """What was said of a bad file; None when it was read."""
    try:
        reader.read(path, draw)
    except OURS as error:
        said = str(error)
        assert "\n" not in said.strip(), f"{what}\nsaid in several lines: {said}"
        assert POSITION.search(said) or WHOLE.search(said), f"{what}\nsays not where: {said}"
        assert len(said) < 20_000, f"{what}\nsays too much: {said[:500]}"
        return said
    except Exception as error:
        raise AssertionError(f"{what}\nraised {type(error).__name__}: {error}") from error
    return None
