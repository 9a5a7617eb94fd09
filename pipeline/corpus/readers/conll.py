"""CoNLL columns to a corpus: word and label in columns of choice, features from a built-in set or a template."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.notes import column_notes, label_notes, numbering_note
from gramline.pipeline.corpus.readers.columns import ColumnTable, read_columns
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.readers.templates import FeatureTemplate
from gramline.pipeline.corpus.recipe import BEFORE_WORD, BY_TEMPLATE, LIKE, Recipe, option_pairs
from gramline.pipeline.corpus.textfile import located
from gramline.pipeline.errors import CorpusError


def read_conll(
    path: str | Path,
    *,
    word_column: int | None = None,
    label_column: int | None = -1,
    features: str = "token",
    window: int | None = None,
    template: FeatureTemplate | str | Path | None = None,
    minimum_count: int = 1,
    keep: Collection[str] | None = None,
    labels: Iterable[str] | None = None,
    missing_label: str | None = None,
    skip_document_marks: bool = False,
    skip_comments: bool = False,
) -> Corpus:
    """Token sequences of a column file (plain or gzip): one token per line, blank lines between sentences.

    Parameters
    ----------
    path : the file.
    word_column : from 0, negative from the end; None for the first one that is not the label. Columns before the word
        are left out, unless one of them is the label; those behind it are read by feature sets and templates.
    label_column : as word_column, but None for a file without labels.
    features, window : the feature set ("token", "words", "spelling") and the neighbours whose features count too.
    template : a CRF++ template, instead of a feature set.
    minimum_count, keep : a feature of the template stays if this file has it so often, or if it is in `keep` (the
        features of the training corpus).
    labels : the label names in the order that breaks ties.
    missing_label : this label means that there is none.
    skip_document_marks : leave -DOCSTART- lines out.
    skip_comments : leave lines out that begin with # and a space.

    >>> from pathlib import Path
    >>> _ = Path("train.conll").write_text("Ann B\\nsaw O\\n\\nBob B\\n")
    >>> corpus = read_conll("train.conll")
    >>> corpus.tokens, corpus.labels
    ([['Ann', 'saw'], ['Bob']], [['B', 'O'], ['B']])
    >>> _ = Path("numbered.conll").write_text("1 Ann B\\n2 saw O\\n")
    >>> read_conll("numbered.conll", word_column=1).tokens
    [['Ann', 'saw']]
    """
    table = read_columns(path, skip_document_marks=skip_document_marks, skip_comments=skip_comments)
    word = _word_place(table, word_column, label_column)
    notes = [*table.notes, *numbering_note(table.columns, word, table.starts.tolist(), path)]
    y = None
    if label_column is not None:
        y = [
            [None if name == missing_label else name for name in sentence] for sentence in table.sentences(label_column)
        ]
        if label_column == -1:  # nobody chose another
            notes += column_notes(table.columns, label_column, word, path)
    table, before = _of_tokens(table, word, label_column)
    options = {
        BEFORE_WORD: before or None,
        "label_column": None if label_column == -1 else label_column,
        "no_labels": label_column is None,
        "missing_label": missing_label,
        "skip_document_marks": skip_document_marks,
        "skip_comments": skip_comments,
    }
    width = len(table.columns)
    if template is not None:
        ready = template if isinstance(template, FeatureTemplate) else FeatureTemplate.read(template)
        columns = ready.observe(table, minimum_count=minimum_count, keep=keep)
        recipe = Recipe(
            *("conll", "sequences", BY_TEMPLATE, 0, ready.text, minimum_count, width),
            options=option_pairs(options | {LIKE: keep is not None}),
        )
    else:
        recipe = Recipe.of("conll", "sequences", features, window, width, **options)
        columns = observe(table, features, window)
    try:
        corpus = Corpus.assembled("sequences", table.starts, columns, y, labels=labels)
    except CorpusError as error:
        raise located(error, path, table.lines) from None
    return corpus.described(recipe, [*notes, *label_notes(corpus.label_counts(), path)])


def _word_place(table: ColumnTable, word_column: int | None, label_column: int | None) -> int:
    """The number of the word's column, from 0."""
    width = len(table.columns)
    label = None if label_column is None else table.place(label_column)
    if label is not None and width == 1:
        advice = "read words alone without labels (--no-labels)"
        raise CorpusError(f"{table.source} has one column and it is the label", advice=advice)
    if word_column is None:
        return 1 if label == 0 else 0
    word = table.place(word_column)
    if word == label:
        advice = "give --label-column, or --no-labels" if label_column == -1 else "give another --word-column"
        raise CorpusError(f"column {word} of {table.source} cannot be both the word and the label", advice=advice)
    return word


def _of_tokens(table: ColumnTable, word: int, label_column: int | None) -> tuple[ColumnTable, int]:
    """The word's column and those behind it without the label's, and how many columns before the word are left out."""
    label = None if label_column is None else table.place(label_column)
    kept = tuple(column for k, column in enumerate(table.columns) if k >= word and k != label)
    before = word - (label is not None and label < word)
    return ColumnTable(table.starts, kept, table.lines, table.source), before
