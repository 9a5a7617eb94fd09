"""Which reader reads a file, and which options each of them understands."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from gramline.kernels.errors import did_you_mean
from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Choice, Flag, Kind, Number, Words
from gramline.pipeline.choices import TEMPLATE, CorpusFormat, LowerCase, UnusualLetters
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.notes import ONE_LABEL, Note
from gramline.pipeline.corpus.readers.brackets import read_brackets
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.readers.conllu import COLUMNS, KEYED, label_keys, read_conllu
from gramline.pipeline.corpus.readers.fasta import read_fasta
from gramline.pipeline.corpus.readers.jsonl import read_jsonl
from gramline.pipeline.corpus.validation import name_list
from gramline.pipeline.errors import InputError, UnknownLabelError
from gramline.pipeline.files import require_file

Labels = list[str] | None
Kept = Collection[str] | None  # the features of a training corpus
Reader = Callable[[str, dict[str, Any], Labels, Kept], Corpus]


class Importer(NamedTuple):
    """A reader and the options it understands, by the names that the command line and `Corpus.read` share."""

    read: Reader
    options: frozenset[str]


def dashed(name: str) -> str:
    """An option as the command line writes it."""
    return "--" + name.replace("_", "-")


def import_corpus(
    path: str,
    layout: CorpusFormat | None,
    *,
    labels: str | Iterable[str] | None,
    like: Corpus | None,
    options: Mapping[str, Any],
    written: Callable[[str], str] = dashed,
) -> Corpus:
    """Read a file with the given options; an option that the format does not have is refused as it is `written`.

    Label names and kept template features are those of `like` if there is one; labels that it does not have come last.
    """
    chosen = layout or format_of(path)
    if not isinstance(chosen, str) or chosen not in FORMATS:
        raise InputError(f"there is no format {chosen!r}", advice=did_you_mean(chosen, FORMATS))
    importer = FORMATS[chosen]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in importer.options:
            known = frozenset().union(*(other.options for other in FORMATS.values()))
            if key not in known:
                raise InputError(
                    f"there is no option {written(key)}", advice=did_you_mean(key, sorted(importer.options))
                )
            advice = f"leave it out or choose another {written('format')}"
            raise InputError(f"{written(key)} has no effect on {chosen} files", advice=advice)
        if key in KINDS:
            given[key] = plain_value(written(key), KINDS[key], given[key], InputError)
    require_file(path, f"a {chosen} file")
    if path.endswith(".parquet"):
        advice = "import the file that it was made from"
        raise InputError(f"{path} is a corpus already", advice=advice)
    if isinstance(labels, str):
        labels = [*map(str.strip, labels.split(","))]
    names = None if labels is None else [*name_list(labels, written("labels"))]
    if like is not None and not isinstance(like, Corpus):
        raise InputError(f"{written('like')} must be a Corpus, got {like!r}", advice="read it with Corpus.load")
    if like is None:
        return importer.read(path, given, names, None)
    keep = like.packed().vocabulary.features
    known_names = names or like.label_names or None
    try:
        return importer.read(path, dict(given), known_names, keep)
    except UnknownLabelError as error:
        if names is not None:
            raise
        return importer.read(path, given, [*(known_names or ()), *error.names], keep)


def format_of(path: str, default: CorpusFormat = "conll") -> CorpusFormat:
    """The format that the name of a file says."""
    return SUFFIXES.get(Path(path.removesuffix(".gz")).suffix.lower(), default)


def _conll(path: str, options: dict[str, Any], labels: Labels, keep: Kept) -> Corpus:
    if options.pop("no_labels", False):
        options["label_column"] = None
    features = options.get("features", "token")
    if features.startswith(TEMPLATE):
        options["template"] = options.pop("features").removeprefix(TEMPLATE)
    if "template" in options:
        if "window" in options:
            raise InputError("--window has no effect with a template, which names its neighbours itself")
        options["keep"] = keep
    elif "minimum_count" in options:
        advice = "give --features template:FILE"
        raise InputError("--minimum-count counts the features of a template", advice=advice)
    return read_conll(path, labels=labels, **options)


def _conllu(path: str, options: dict[str, Any], labels: Labels, _keep: Kept) -> Corpus:
    if options.pop("no_labels", False):
        options["label"] = None
    return read_conllu(path, labels=labels, **options)


def _jsonl(path: str, options: dict[str, Any], labels: Labels, _keep: Kept) -> Corpus:
    return read_jsonl(path, labels=labels, **options)


def _brackets(path: str, options: dict[str, Any], labels: Labels, _keep: Kept) -> Corpus:
    if labels is not None:
        raise InputError("parse trees have no labels to order", advice="leave --labels and --like out")
    return read_brackets(path, **options)


def _fasta(path: str, options: dict[str, Any], labels: Labels, _keep: Kept) -> Corpus:
    return read_fasta(path, labels=labels, **options)


def import_notes(
    read: Corpus, file: str, *, training: Corpus | None, like: str | None, key: str | None
) -> Iterator[Note]:
    """What the reader noticed, and labels of an imported file that were probably not meant so."""
    strange = [name for name in read.label_names if training is not None and name not in training.label_names]
    if strange:
        yield Note(
            "unknown labels",
            f"{like} has no label {', '.join(strange)}: a model trained on it never gives them, and "
            "`gramline evaluate` counts them as mistakes with --allow-unknown-labels",
        )
    is_absent = False
    if key is not None and key not in COLUMNS and sum(map(bool, read.label_counts().values())) == 1:
        there = label_keys(file)
        is_absent = key.removeprefix("MISC.").removeprefix("FEATS.") not in there
        if is_absent:
            yield Note(
                "unknown key",
                f"no word of {file} has {key} in {' or '.join(KEYED)}: all labels are O; there are {', '.join(there)}",
            )
    yield from (note for note in read.notes if not (is_absent and note.kind == ONE_LABEL))  # which that explains


_FEATURES = ("features", "window")
KINDS: dict[str, Kind] = {  # of options that every reader takes as they are; the others are checked where they are used
    **dict.fromkeys(("features", "missing_label", "absent"), Words()),
    **dict.fromkeys(("no_labels", "skip_document_marks", "skip_comments"), Flag()),
    **dict.fromkeys(("strip_functions", "strip_empty", "label_lines"), Flag()),
    "label": Words(may_be_empty=False),
    **dict.fromkeys(("word_column", "label_column"), Number(whole=True)),
    "lower_case": Choice(get_args(LowerCase)),
    "unusual_letters": Choice(get_args(UnusualLetters)),
}
FORMATS: dict[CorpusFormat, Importer] = {
    "conll": Importer(
        _conll,
        frozenset(
            (*_FEATURES, "template", "minimum_count", "word_column", "label_column", "no_labels", "missing_label")
        )
        | {"skip_document_marks", "skip_comments"},
    ),
    "jsonl": Importer(_jsonl, frozenset(_FEATURES)),
    "conllu": Importer(_conllu, frozenset((*_FEATURES, "no_labels", "label", "absent", "observation", "kind"))),
    "brackets": Importer(_brackets, frozenset(("strip_functions", "strip_empty"))),
    "fasta": Importer(
        _fasta,
        frozenset((*_FEATURES, "label_file", "label_lines", "missing_label", "lower_case", "unusual_letters")),
    ),
}
SUFFIXES: dict[str, CorpusFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".mrg": "brackets",
    ".ptb": "brackets",
    ".trees": "brackets",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".faa": "fasta",
}
