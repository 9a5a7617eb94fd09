"""Which reader reads a file, and which options each of them understands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gramline.pipeline.choices import TEMPLATE, CorpusFormat
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.brackets import read_brackets
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.readers.conllu import COLUMNS, KEYED, label_keys, read_conllu
from gramline.pipeline.corpus.readers.jsonl import read_jsonl
from gramline.pipeline.errors import InputError, UnknownLabelError
from gramline.pipeline.files import require_file


def import_corpus(
    path: str, layout: CorpusFormat | None, *, labels: str | None, like: Corpus | None, options: Mapping[str, Any]
) -> Corpus:
    """Read a file with the given options; an option that the format does not have is refused.

    Label names and kept template features are those of `like` if there is one; labels that it does not have come last.
    """
    chosen = layout or SUFFIXES.get(Path(path.removesuffix(".gz")).suffix, "conll")
    reader, understood = FORMATS[chosen]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in understood:
            option = "--" + key.replace("_", "-")
            advice = "leave it out or choose another --format"
            raise InputError(f"{option} has no effect on {chosen} files", advice=advice)
    require_file(path, f"a {chosen} file")
    if path.endswith(".parquet"):
        advice = "import the file that it was made from"
        raise InputError(f"{path} is a corpus already", advice=advice)
    names = None if labels is None else [name.strip() for name in labels.split(",")]
    if like is None or names is not None:
        return reader(path, given, names, like)
    known = like.label_names or None
    try:
        return reader(path, dict(given), known, like)
    except UnknownLabelError as error:
        return reader(path, given, [*(known or ()), *error.names], like)


def _conll(path: str, options: dict[str, Any], labels: list[str] | None, training: Corpus | None) -> Corpus:
    if options.pop("no_labels", False):
        options["label_column"] = None
    features = options.get("features", "token")
    if features.startswith(TEMPLATE):
        options["template"] = options.pop("features").removeprefix(TEMPLATE)
        if "window" in options:
            raise InputError("--window has no effect with a template, which names its neighbours itself")
        if training is not None:
            options["keep"] = training.packed().vocabulary.features
    elif "minimum_count" in options:
        advice = "give --features template:FILE"
        raise InputError("--minimum-count counts the features of a template", advice=advice)
    return read_conll(path, labels=labels, **options)


def _conllu(path: str, options: dict[str, Any], labels: list[str] | None, _training: Corpus | None) -> Corpus:
    if options.pop("no_labels", False):
        options["label"] = None
    return read_conllu(path, labels=labels, **options)


def _jsonl(path: str, options: dict[str, Any], labels: list[str] | None, _training: Corpus | None) -> Corpus:
    return read_jsonl(path, labels=labels, **options)


def _brackets(path: str, options: dict[str, Any], labels: list[str] | None, _training: Corpus | None) -> Corpus:
    if labels is not None:
        raise InputError("parse trees have no labels to order", advice="leave --labels and --like out")
    return read_brackets(path, **options)


def import_notes(
    read: Corpus, file: str, *, training: Corpus | None, like: str | None, key: str | None
) -> Iterator[str]:
    """Labels of an imported file that were probably not meant so."""
    strange = [name for name in read.label_names if training is not None and name not in training.label_names]
    if strange:
        yield (
            f"{like} has no label {', '.join(strange)}: a model trained on it never gives them, and "
            "`gramline evaluate` counts them as mistakes with --allow-unknown-labels"
        )
    if key is not None and len({label for labels in read.labels for label in labels}) == 1:
        there = label_keys(file)
        if key not in COLUMNS and key.removeprefix("MISC.").removeprefix("FEATS.") not in there:
            yield f"no word of {file} has {key} in {' or '.join(KEYED)}: all labels are O; there are {', '.join(there)}"


Reader = Callable[[str, dict[str, Any], list[str] | None, Corpus | None], Corpus]

FORMATS: dict[CorpusFormat, tuple[Reader, frozenset[str]]] = {
    "conll": (
        _conll,
        frozenset(
            ("features", "window", "minimum_count", "label_column", "no_labels", "missing_label", "skip_document_marks")
        ),
    ),
    "jsonl": (_jsonl, frozenset()),
    "conllu": (_conllu, frozenset(("features", "window", "no_labels", "label", "kind"))),
    "brackets": (_brackets, frozenset(("strip_functions", "strip_empty"))),
}
SUFFIXES: dict[str, CorpusFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".mrg": "brackets",
    ".ptb": "brackets",
    ".trees": "brackets",
}
