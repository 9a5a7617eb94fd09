"""Predicted labels as text, JSON lines or CoNLL columns, written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.labels import first_unknown_label
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import system_reason, write_then_rename

NO_WORD = "_"  # what a column shows for a position without a word
PREDICTED = "predicted"  # the key or column beside those of the input


@dataclass(frozen=True)
class Predictions:
    """One label per position of every structure."""

    ids: Sequence[str | None]
    tokens: Sequence[Sequence[str | None]]
    labels: Sequence[Sequence[str | None]]
    probabilities: Sequence[Sequence[Mapping[str, float]]] | None = None  # of every label at every position

    def records(self) -> Iterator[dict[str, Any]]:
        for number, (name, tokens, labels) in enumerate(zip(self.ids, self.tokens, self.labels, strict=True)):
            record: dict[str, Any] = {"id": name, "tokens": list(tokens), "labels": list(labels)}
            if self.probabilities is not None:
                record["probabilities"] = list(self.probabilities[number])
            yield record

    def confidence(self) -> list[list[float]] | None:
        """The probability of every predicted label."""
        if self.probabilities is None:
            return None
        pairs = zip(self.labels, self.probabilities, strict=True)
        return [[table[str(label)] for label, table in zip(*pair, strict=True)] for pair in pairs]

    def lines(self, layout: str) -> Iterator[str]:
        """Lines of text without their ends; `layout` is jsonl or conll (word, confidence where known, label)."""
        if layout == "jsonl":
            yield from (json.dumps(record, ensure_ascii=False) for record in self.records())
            return
        confidence = self.confidence()
        for number, record in enumerate(self.records()):
            for position, (token, label) in enumerate(zip(record["tokens"], record["labels"], strict=True)):
                row = [NO_WORD if token is None else in_column(token, number)]
                row += [] if confidence is None else [f"{confidence[number][position]:.4f}"]
                yield "\t".join([*row, in_column(label, number)])
            yield ""


def in_column(text: str | None, structure: int) -> str:
    """A word or a label that fits into a column."""
    if text is not None and (not text or set(text) & set(" \t\r\n")):
        problem = f"{text!r} does not fit into a column"
        raise InputError(problem, advice="write the predictions as jsonl", structure=structure)
    return str(text)


def by_label(tables: list[NDArray[np.float64]], names: tuple[str, ...]) -> list[list[dict[str, float]]]:
    """{label: probability} at every position of every structure."""
    return [[dict(zip(names, row, strict=True)) for row in table.tolist()] for table in tables]


def write_lines(lines: Iterable[str], path: str) -> None:
    """Replace a file by these lines at once."""
    with write_then_rename(Path(path)) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def read_predictions(path: str) -> Predictions:
    """Read `Predictions.lines` of a file; also columns of other programs, whose last column is the label."""
    try:
        text = Path(path).read_text("utf-8")
    except OSError as error:
        why = system_reason(error)
        raise InputError(f"the predictions cannot be read: {why}", path=path) from None
    except UnicodeDecodeError:
        raise InputError(
            "the predictions are not UTF-8 text",
            advice="give a model that `gramline fit` wrote, or predictions as JSON lines or CoNLL columns",
            path=path,
        ) from None
    predictions = _from_json(text, path) if text.lstrip().startswith("{") else _from_columns(text, path)
    if not predictions.labels:
        raise InputError(f"{path} holds no predictions")
    return predictions


def labels_in_file(path: str, gold: Corpus) -> list[list[str | None]]:
    """Labels from a file of predictions for these structures."""
    if path.endswith(".parquet"):
        labeled = Corpus.load(path)
        if PREDICTED not in labeled.table.column_names:
            raise InputError(
                f"{path} is a corpus without predictions",
                advice="give a model that `gramline fit` wrote, or predictions that `gramline predict` wrote",
            )
        return [list(labels) for labels in labeled.column(PREDICTED)]
    predictions = read_predictions(path)
    for number, (name, right) in enumerate(zip(predictions.ids, gold.ids, strict=False)):
        if name is not None and name != right:
            raise InputError(
                f"prediction {number} is for structure {name!r}, but the corpus has {right!r} there",
                advice="give the corpus that was labeled",
                path=path,
            )
    return [list(labels) for labels in predictions.labels]


def require_known_labels(gold: Corpus, known: tuple[str, ...]) -> None:
    """A label that cannot be predicted is more often another notation than a hard case."""
    if unknown := first_unknown_label(gold.labels, known):
        structure, position, label = unknown
        raise InputError(
            f"the label {label!r} is unknown to the model (it knows {', '.join(known)})",
            advice="rename it, or give --allow-unknown-labels to count it as a mistake",
            structure=structure,
            position=position,
        )


def _from_json(text: str, path: str) -> Predictions:
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}", path=path, line=number) from None
        labels = record.get(PREDICTED, record.get("labels")) if isinstance(record, dict) else None
        if not isinstance(labels, list) or not all(label is None or isinstance(label, str) for label in labels):
            raise InputError('a prediction is an object with a list of "labels"', path=path, line=number)
        records.append(record | {"labels": labels})
    return Predictions(
        [record.get("id") for record in records],
        [record.get("tokens", [None] * len(record["labels"])) for record in records],
        [record["labels"] for record in records],
    )


def _from_columns(text: str, path: str) -> Predictions:
    tokens: list[list[str | None]] = []
    labels: list[list[str | None]] = []
    is_open = False
    for number, line in enumerate(text.split("\n"), 1):
        columns = line.replace("\t", " ").strip(" \r").split(" ")
        if columns == [""]:
            is_open = False
            continue
        if len(columns) < 2:
            raise InputError("a prediction needs two columns, a token and a label", path=path, line=number)
        if not is_open:
            tokens.append([])
            labels.append([])
            is_open = True
        tokens[-1].append(columns[0])
        labels[-1].append(columns[-1])
    return Predictions([None] * len(labels), tokens, labels)
