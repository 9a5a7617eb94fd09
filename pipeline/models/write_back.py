"""Predictions written in the format of the file they are for: what it holds stays, the predicted labels are added.

CoNLL: a last column, and the confidence before it. CoNLL-U: `Predicted=` and `Confidence=` in MISC. JSON lines: the
keys "predicted" and "probabilities". Parquet: the columns `predicted` and `confidence`. FASTA: a line of labels below
the letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import format_of
from gramline.pipeline.corpus.readers.columns import COMMENT, DOCUMENT_MARK
from gramline.pipeline.corpus.readers.conllu import COLUMNS, HEAD, NO_VALUE
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.corpus.textfile import read_lines
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.predictions import PREDICTED, Predictions, in_column

Layout = Literal["conll", "conllu", "jsonl", "parquet", "brackets", "fasta"]
LAYOUTS: tuple[Layout, ...] = ("conll", "conllu", "jsonl", "parquet", "brackets", "fasta")
CONFIDENCE = "confidence"
SUFFIXES: dict[str, Layout] = {
    **dict.fromkeys((".conll", ".txt", ".tsv"), "conll"),
    ".conllu": "conllu",
    ".parquet": "parquet",
    **dict.fromkeys((".mrg", ".ptb", ".trees"), "brackets"),
    **dict.fromkeys((".fasta", ".fa", ".faa"), "fasta"),
}


def layout_of_input(path: str, recipe: Recipe | None) -> str:
    """The format of a file with structures, as a model with this recipe reads it."""
    if path.endswith(".parquet"):
        return "parquet"
    own: Any = "conll" if recipe is None or recipe.format == LISTS else recipe.format
    return format_of(path, own)


def layout_of_output(output: str | None, source: str) -> Layout:
    """How to write: as the name of the output says, else as the input of format `source` is; on a terminal, text."""
    by_name = SUFFIXES.get(Path(output).suffix.lower()) if output else None
    if by_name is not None:
        return by_name
    if output is not None and Path(output).suffix.lower() in (".jsonl", ".ndjson", ".json"):
        return "jsonl"
    return next((layout for layout in ("conll", "conllu", "fasta") if layout == source), "jsonl")


def annotated_lines(path: str, source: str, layout: Layout, predictions: Predictions, corpus: Corpus) -> Iterator[str]:
    """Lines of text in `layout`: those of the input at `path` where it has the same format, else new ones."""
    if layout == "conllu":
        return _conllu(read_lines(path) if source == "conllu" else _dependency_lines(corpus), predictions)
    if layout == "fasta":
        names = [line for line in read_lines(path) if line.startswith(">")] if source == "fasta" else None
        return _fasta(names or [f">{name}" for name in predictions.ids], predictions)
    if layout != source:
        return predictions.lines(layout)
    return (
        annotated_columns(read_lines(path), predictions, corpus.recipe)
        if layout == "conll"
        else _json(path, predictions)
    )


def with_predictions(corpus: Corpus, predictions: Predictions) -> Corpus:
    """The corpus with the predicted labels in a column of their own."""
    corpus = corpus.with_column(PREDICTED, [list(labels) for labels in predictions.labels])
    confidence = predictions.confidence()
    return corpus if confidence is None else corpus.with_column(CONFIDENCE, confidence)


def holds_predictions(path: str) -> bool:
    """Whether a Parquet file has the column of predicted labels, so that it can be made again."""
    try:
        return PREDICTED in pq.read_schema(path).names
    except (OSError, pa.ArrowInvalid):
        return False


def _flat(predictions: Predictions) -> Iterator[tuple[str, str | None]]:
    """(label, confidence as text) of every position."""
    confidence = predictions.confidence()
    for number, labels in enumerate(predictions.labels):
        for position, label in enumerate(labels):
            yield in_column(label, number), None if confidence is None else f"{confidence[number][position]:.4f}"


def annotated_columns(lines: Iterable[str], predictions: Predictions, recipe: Recipe | None) -> Iterator[str]:
    """Lines of columns, those of tokens with the confidence, where it is known, and the label."""
    flat = _flat(predictions)
    for line in lines:
        if not token_fields(line, recipe):
            yield line
            continue
        label, confidence = next(flat)
        separator = "\t" if "\t" in line else " "
        yield separator.join([line.rstrip(" \t"), *([] if confidence is None else [confidence]), label])


def token_fields(line: str, recipe: Recipe | None) -> list[str]:
    """The columns of a token; nothing where the line is blank, or one that the recipe skips."""
    fields = [field for field in line.replace("\t", " ").split(" ") if field]
    if recipe is None:
        return fields
    is_comment = bool(recipe.option("skip_comments")) and line.startswith(COMMENT)
    is_mark = bool(recipe.option("skip_document_marks")) and fields[:1] == [DOCUMENT_MARK]
    return [] if is_comment or is_mark else fields


def _conllu(lines: Iterable[str], predictions: Predictions) -> Iterator[str]:
    flat = _flat(predictions)
    for line in lines:
        row = line.split("\t")
        if len(row) != len(COLUMNS) or line.startswith("#") or not row[0].isdecimal():
            yield line
            continue
        label, confidence = next(flat)
        kept = [item for item in row[-1].split("|") if item != NO_VALUE]
        more = [] if confidence is None else [f"Confidence={confidence}"]
        yield "\t".join([*row[:-1], "|".join([*kept, f"Predicted={label}", *more])])


def _dependency_lines(corpus: Corpus) -> Iterator[str]:
    """Structures without a file of their own as CoNLL-U: words, and heads of trees."""
    if corpus.kind not in ("sequences", "trees"):
        raise InputError(f"{corpus.kind} do not fit into CoNLL-U", advice="write the predictions as jsonl")
    links: list[Any] = corpus.table["links"].to_pylist() if corpus.kind == "trees" else []
    for number, words in enumerate(corpus.tokens):
        heads = [NO_VALUE] * len(words)
        if links:
            heads = ["0"] * len(words)
            for node, below in enumerate(links[number]):
                for child in below:
                    heads[child] = str(node + 1)
        yield f"# sent_id = {corpus.ids[number]}"
        for position, word in enumerate(words):
            row = [str(position + 1), NO_VALUE if word is None else in_column(word, number)]
            row += [NO_VALUE] * (len(COLUMNS) - len(row))
            row[HEAD] = heads[position]
            yield "\t".join(row)
        yield ""


def _fasta(names: list[str], predictions: Predictions) -> Iterator[str]:
    """Three lines a structure: its name, its letters, its labels."""
    if predictions.probabilities is not None:
        raise InputError("FASTA has no place for probabilities", advice="write the predictions as jsonl")
    for number, (name, letters, labels) in enumerate(zip(names, predictions.tokens, predictions.labels, strict=True)):
        yield name
        for row in (letters, labels):
            long = next((letter for letter in row if letter is None or len(letter) != 1), "")
            if long != "":
                problem = f"{long!r} is not one letter, as FASTA has them"
                raise InputError(problem, advice="write the predictions as jsonl", structure=number)
            yield "".join(map(str, row))


def _json(path: str, predictions: Predictions) -> Iterator[str]:
    records = predictions.records()
    for line in read_lines(path):
        if not line.strip():
            continue
        own, found = json.loads(line), next(records)
        own[PREDICTED] = found["labels"]
        if "probabilities" in found:
            own["probabilities"] = found["probabilities"]
        yield json.dumps(own, ensure_ascii=False)
