"""JSON lines: one structure per line, and back.

{"tokens": [...], "labels": [...]} and optionally "id", "prior", "words" (the words behind feature sets); "children"
or "heads" make it a tree, "edges" a graph, "tags" a tagged sentence; {"tree": ...} alone is a parse, bracketed or
nested. A token is a string, an object name -> value, or a list of feature names. Heads are numbers of words from 1, 0
for a root, as in CoNLL-U; or from 0, with -1 or null for a root. Every other key is carried along as a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramline.kernels.errors import did_you_mean
from gramline.pipeline.corpus.columns import children_column, edges_column, label_columns
from gramline.pipeline.corpus.corpus import CONTENT_COLUMNS, Corpus
from gramline.pipeline.corpus.heads import children_of_heads, root_notes
from gramline.pipeline.corpus.notes import Note, label_notes, repeated_ids
from gramline.pipeline.corpus.parses import bracketed
from gramline.pipeline.corpus.readers.columns import ColumnTable
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.textfile import excerpt, located, read_lines
from gramline.pipeline.corpus.tokens import TokenColumns
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import write_then_rename

_KIND_KEYS = {"children": "trees", "heads": "trees", "edges": "dags", "tags": "tagged", "tree": "parses"}
_OWN_KEYS = {"tokens", "labels", "id", "prior", "words", *_KIND_KEYS}
_EXPECTED = {"group"}  # columns that need no note: folds and rankers ask for it


@dataclass(frozen=True)
class Observation:
    """The feature set of string tokens, and its window."""

    features: str = "token"
    window: int | None = None


def read_jsonl(
    path: str | Path, *, features: str = "token", window: int | None = None, labels: Iterable[str] | None = None
) -> Corpus:
    """A corpus of the kind that the first line has; the module lists the keys of a line.

    Parameters
    ----------
    path : the file (plain or gzip).
    features, window : as for `read_conll`, of tokens that are words.
    labels : the label names in the order that breaks ties.

    >>> from pathlib import Path
    >>> _ = Path("train.jsonl").write_text('{"tokens": ["they", "run"], "labels": ["P", "V"], "group": 1}')
    >>> corpus = read_jsonl("train.jsonl")
    >>> corpus.labels, corpus.column("group")
    ([['P', 'V']], [1])
    """
    records: list[dict[str, Any]] = []
    lines: list[int] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"not a JSON object ({error})", path=str(path), line=number) from None
        if not isinstance(record, dict):
            raise CorpusError("expected a JSON object with the key 'tokens'", path=str(path), line=number)
        records.append(record)
        lines.append(number)
    if not records:
        raise CorpusError(f"{path} is empty", advice="expected one JSON object per line")
    try:
        corpus = _corpus(records, labels, Observation(features, window))
    except CorpusError as error:
        raise located(error, path, lines) from None
    notes = [*_key_notes(records, corpus.kind, path, lines)]
    if any("id" in record for record in records):
        notes += repeated_ids(corpus.ids, path, lines)
    if corpus.kind == "trees":
        notes += root_notes(corpus, path, lines)
    notes += label_notes(corpus.label_counts(), path, has_missing_label=False)
    return corpus.described(Recipe.of("jsonl", corpus.kind, features, window), notes)


def _kind(record: dict[str, Any]) -> str:
    return next((kind for key, kind in _KIND_KEYS.items() if key in record), "sequences")


def _key_notes(records: Sequence[dict[str, Any]], kind: str, path: str | Path, lines: Sequence[int]) -> Iterator[Note]:
    """Keys that decide no number: those nobody knows, and those that this kind of structure does not read."""
    first: dict[str, int] = {}
    for record, line in zip(records, lines, strict=True):
        for key in record:
            first.setdefault(key, line)
    strange = [key for key in first if key not in _OWN_KEYS | _EXPECTED]
    if strange:
        near = [f"{key!r}: {guess}" for key in strange if (guess := did_you_mean(key, _OWN_KEYS)).startswith("did")]
        listed = ", ".join(map(repr, strange[:8])) + (f" and {len(strange) - 8} more" if len(strange) > 8 else "")
        problem = f"unknown keys are kept as columns and decide nothing: {listed}"
        yield Note("unknown keys", problem, "; ".join(near), str(path), first[strange[0]])
    unread = {"parses": {"tokens", "labels", "prior", "words"}}.get(kind, set())
    if kind != "parses" and all(isinstance(token, str) for record in records for token in record["tokens"]):
        unread = {"words"}  # words stand behind feature sets, and here are none
    if ignored := [key for key in first if key in unread]:
        what = f"{kind} of this file do not read" if kind == "parses" else "tokens that are words have no use for"
        problem = f"{what} {', '.join(map(repr, ignored))}"
        yield Note("ignored keys", problem, path=str(path), line=first[ignored[0]])


def _corpus(records: list[dict[str, Any]], labels: Iterable[str] | None, observation: Observation) -> Corpus:
    kind = _kind(records[0])
    for index, record in enumerate(records):
        if _kind(record) != kind:
            problem = f"the structure is of kind {_kind(record)}, the first is {kind}"
            raise CorpusError(problem, advice="keep kinds apart", structure=index)
        if kind != "parses" and not isinstance(record.get("tokens"), list):
            raise CorpusError("the key 'tokens' must hold a list", structure=index)
    if kind in ("parses", "tagged") and observation.features != "token":
        problem = f"{kind} have no features to choose ({observation.features!r})"
        raise CorpusError(problem, advice="leave the feature set out (--features)")
    if kind == "parses":
        corpus = Corpus.from_parses(record["tree"] for record in records)
    else:
        collector = TokenColumns()
        for index, record in enumerate(records):
            collector.add(record["tokens"], _words(record, index))
        starts, columns = collector.columns()
        if observation.features != "token":
            words = _flat_words(records)
            columns = observe(ColumnTable(starts, (words,)), observation.features, observation.window)
        if kind == "tagged":
            columns["tags"], _ = label_columns([record["tags"] for record in records], starts, "tag")
        elif kind == "trees":
            for index, record in enumerate(records):
                if "heads" in record and "children" in record:
                    raise CorpusError("both heads and children are given", advice="give one of them", structure=index)
            children = children_of_heads([record.get("heads") for record in records])
            given = [record.get("children", below) for record, below in zip(records, children, strict=True)]
            columns["links"] = children_column(given, starts)
        elif kind == "dags":
            columns["links"] = edges_column([record["edges"] for record in records], starts)
        has_labels = any("labels" in record for record in records)
        has_prior = any("prior" in record for record in records)
        if has_prior and not has_labels and labels is None:
            index = next(number for number, record in enumerate(records) if "prior" in record)
            problem = "a prior needs labels to name its columns"
            raise CorpusError(problem, advice="give 'labels' as well", structure=index)
        y = [record.get("labels") for record in records] if has_labels else None
        prior = [record.get("prior") for record in records] if has_prior else None
        corpus = Corpus.assembled(kind, starts, columns, y, prior, labels)
    if any("id" in record for record in records):
        corpus = corpus.with_column("id", [str(record.get("id", index)) for index, record in enumerate(records)])
    for name in dict.fromkeys(key for record in records for key in record if key not in _OWN_KEYS):
        if any("\ud800" <= letter <= "\udfff" for letter in name):
            index = next(number for number, record in enumerate(records) if name in record)
            problem = f"the key {excerpt(name)} is not valid Unicode text"
            raise CorpusError(problem, advice="repair its encoding", structure=index)
        corpus = corpus.with_column(name, [record.get(name) for record in records])
    return corpus


def _flat_words(records: Sequence[dict[str, Any]]) -> list[str]:
    """All tokens, which must be words to have letters."""
    for index, record in enumerate(records):
        for position, token in enumerate(record["tokens"]):
            if not isinstance(token, str):
                problem = f"a feature set describes words, but this token is {excerpt(str(token))} already"
                advice = "leave --features out, or give words as tokens"
                raise CorpusError(problem, advice=advice, structure=index, position=position)
    return [token for record in records for token in record["tokens"]]


def _words(record: dict[str, Any], index: int) -> list[str] | None:
    words = record.get("words")
    if words is None:
        return None
    if not isinstance(words, list) or len(words) != len(record["tokens"]):
        raise CorpusError("'words' must hold one word per token", structure=index)
    return [str(word) for word in words]


def write_jsonl(corpus: Corpus, path: str | Path) -> None:
    """Write the corpus as JSON lines, whole or not at all; `read_jsonl` with the same `labels` reads an equal one.

    >>> from gramline.pipeline import Corpus
    >>> write_jsonl(Corpus.from_sequences([["they", "run"]]), "new.jsonl")
    >>> read_jsonl("new.jsonl").tokens
    [['they', 'run']]
    """
    target = Path(path)
    try:
        with write_then_rename(target) as partial, partial.open("w", encoding="utf-8") as stream:
            for record in _records(corpus):
                stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    except OSError as error:
        raise CorpusError(f"cannot write {target}: {error.strerror or error}") from None


def _records(corpus: Corpus) -> Iterable[dict[str, Any]]:
    trees = corpus.trees if corpus.kind == "parses" else []
    for index in range(len(corpus)):
        row: dict[str, Any] = corpus.table.slice(index, 1).to_pylist()[0]
        record: dict[str, Any] = {"id": row["id"]}
        if corpus.kind == "parses":
            record["tree"] = bracketed(trees[index])
        else:
            record |= _observed(row)
        for name in ("labels", "prior", "tags"):
            if name in row:
                record[name] = row[name]
        if corpus.kind == "trees":
            record["children"] = row["links"]
        elif corpus.kind == "dags":
            record["edges"] = [[u, v] for u, targets in enumerate(row["links"]) for v in targets]
        yield record | {name: value for name, value in row.items() if name not in CONTENT_COLUMNS}


def _observed(row: dict[str, Any]) -> dict[str, Any]:
    """Tokens as they were given, and the words behind feature sets where there are any."""
    if "features" not in row:
        return {"tokens": row["tokens"]}
    values = row.get("values") or [None] * len(row["tokens"])
    tokens, has_words = [], False
    for text, names, numbers in zip(row["tokens"], row["features"], values, strict=True):
        if names is None:
            tokens.append(text)
        else:
            tokens.append(names if numbers is None else dict(zip(names, numbers, strict=True)))
            has_words = has_words or text is not None
    return {"tokens": tokens} | ({"words": [text or "" for text in row["tokens"]]} if has_words else {})
