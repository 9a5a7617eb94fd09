"""JSON lines: one structure per line, and back.

{"tokens": [...], "labels": [...]} and optionally "id", "prior", "words" (the words behind feature sets); "children"
makes it a tree, "edges" a graph, "tags" a tagged sentence; {"tree": ...} alone is a parse, bracketed or nested. A token
is a string, an object name -> value, or a list of feature names. Every other key is carried along as a column.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gramline.pipeline.corpus.columns import children_column, edges_column, label_columns
from gramline.pipeline.corpus.corpus import CONTENT_COLUMNS, Corpus
from gramline.pipeline.corpus.parses import bracketed
from gramline.pipeline.corpus.textfile import excerpt, located, read_lines
from gramline.pipeline.corpus.tokens import TokenColumns
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.files import write_then_rename

_KIND_KEYS = {"children": "trees", "edges": "dags", "tags": "tagged", "tree": "parses"}
_OWN_KEYS = {"tokens", "labels", "id", "prior", "words", *_KIND_KEYS}


def read_jsonl(path: str | Path, *, labels: Iterable[str] | None = None) -> Corpus:
    """A corpus of the kind that the first line has; the module lists the keys of a line.

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
        return _corpus(records, labels)
    except CorpusError as error:
        raise located(error, path, lines) from None


def _kind(record: dict[str, Any]) -> str:
    return next((kind for key, kind in _KIND_KEYS.items() if key in record), "sequences")


def _corpus(records: list[dict[str, Any]], labels: Iterable[str] | None) -> Corpus:
    kind = _kind(records[0])
    for index, record in enumerate(records):
        if _kind(record) != kind:
            problem = f"the structure is of kind {_kind(record)}, the first is {kind}"
            raise CorpusError(problem, advice="keep kinds apart", structure=index)
        if kind != "parses" and not isinstance(record.get("tokens"), list):
            raise CorpusError("the key 'tokens' must hold a list", structure=index)
    if kind == "parses":
        corpus = Corpus.from_parses(record["tree"] for record in records)
    else:
        collector = TokenColumns()
        for index, record in enumerate(records):
            collector.add(record["tokens"], _words(record, index))
        starts, columns = collector.columns()
        if kind == "tagged":
            columns["tags"], _ = label_columns([record["tags"] for record in records], starts, "tag")
        elif kind == "trees":
            columns["links"] = children_column([record["children"] for record in records], starts)
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
