"""CoNLL columns to a corpus: word first, label in a column of choice, features from a built-in set or a template."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.columns import ColumnTable, read_columns
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.readers.templates import FeatureTemplate
from gramline.pipeline.corpus.textfile import located
from gramline.pipeline.errors import CorpusError


def read_conll(
    path: str | Path,
    *,
    label_column: int | None = -1,
    features: str = "token",
    window: int | None = None,
    template: FeatureTemplate | str | Path | None = None,
    minimum_count: int = 1,
    keep: Collection[str] | None = None,
    labels: Iterable[str] | None = None,
    missing_label: str | None = None,
    skip_document_marks: bool = False,
) -> Corpus:
    """Token sequences of a column file (plain or gzip): one token per line, blank lines between sentences.

    Parameters
    ----------
    path : the file; its first column is the word.
    label_column : from 0, negative from the end; None for a file without labels.
    features, window : the feature set ("token", "words", "spelling") and the neighbours whose features count too.
    template : a CRF++ template, instead of a feature set.
    minimum_count, keep : a feature of the template stays if this file has it so often, or if it is in `keep` (the
        features of the training corpus).
    labels : the label names in the order that breaks ties.
    missing_label : this label means that there is none.
    skip_document_marks : leave -DOCSTART- lines out.

    >>> from pathlib import Path
    >>> _ = Path("train.conll").write_text("Ann B\\nsaw O\\n\\nBob B\\n")
    >>> corpus = read_conll("train.conll")
    >>> corpus.tokens, corpus.labels
    ([['Ann', 'saw'], ['Bob']], [['B', 'O'], ['B']])
    """
    table = read_columns(path, skip_document_marks=skip_document_marks)
    y = None
    if label_column is not None:
        y = [
            [None if name == missing_label else name for name in sentence] for sentence in table.sentences(label_column)
        ]
        table = _without(table, label_column)
    if template is not None:
        ready = template if isinstance(template, FeatureTemplate) else FeatureTemplate.read(template)
        columns = ready.observe(table, minimum_count=minimum_count, keep=keep)
    else:
        columns = observe(table, features, window)
    try:
        return Corpus.assembled("sequences", table.starts, columns, y, labels=labels)
    except CorpusError as error:
        raise located(error, path, table.lines) from None


def _without(table: ColumnTable, number: int) -> ColumnTable:
    dropped = number % len(table.columns)
    kept = tuple(column for k, column in enumerate(table.columns) if k != dropped)
    if not kept:
        advice = "read words alone without labels (--no-labels)"
        raise CorpusError(f"{table.source} has one column and it is the label", advice=advice)
    return ColumnTable(table.starts, kept, table.lines, table.source)
