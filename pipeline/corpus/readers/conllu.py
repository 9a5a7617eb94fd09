"""CoNLL-U dependency trees to a corpus of trees (or of their token sequences).

Multiword ranges (1-2) and empty nodes (1.1) are skipped; a sentence may have several roots. Labels come from a column
(UPOS, XPOS, DEPREL, LEMMA) or from a key of the MISC or FEATS column, such as NER.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.estimator import is_listed
from gramline.pipeline.corpus.columns import children_column
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.heads import root_notes
from gramline.pipeline.corpus.notes import label_notes, repeated_ids
from gramline.pipeline.corpus.readers.columns import ColumnTable
from gramline.pipeline.corpus.readers.features import observe
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.textfile import excerpt, located, read_lines
from gramline.pipeline.errors import CorpusError

COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
HEAD = COLUMNS.index("HEAD")
KEYED = ("MISC", "FEATS")
NO_VALUE = "_"


@dataclass
class WordRows:
    """The words of one sentence: rows of ten columns, the line of each, and what its comments say."""

    rows: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    comments: dict[str, str] = field(default_factory=dict)


def read_conllu(
    path: str | Path,
    *,
    label: str | None = "UPOS",
    absent: str | None = "O",
    observation: Sequence[str] = ("FORM",),
    features: str = "token",
    window: int = 0,
    kind: str = "trees",
    labels: Iterable[str] | None = None,
) -> Corpus:
    """Dependency trees with one node per word, of a CoNLL-U file (plain or gzip).

    Parameters
    ----------
    path : the file.
    label : UPOS, XPOS, DEPREL, LEMMA, or a key of MISC or FEATS ("NER", "FEATS.Number"); None for no labels.
    absent : the label of a word without that key; None for a missing label.
    observation : the columns or keys that describe a word, the word itself first; several need a feature set.
    features, window : as for `read_conll`; neighbours are those in word order.
    kind : "trees", or "sequences" to leave the links out.
    labels : the label names in the order that breaks ties.

    >>> from pathlib import Path
    >>> rows = ["1 They they PRON _ _ 2 nsubj _ _", "2 run run VERB _ _ 0 root _ _"]
    >>> _ = Path("train.conllu").write_text("\\n".join(rows).replace(" ", "\\t"))
    >>> corpus = read_conllu("train.conllu")
    >>> corpus.labels, corpus.table["links"].to_pylist()
    ([['PRON', 'VERB']], [[[], [0]]])
    """
    if kind not in ("trees", "sequences"):
        raise CorpusError(f"a dependency file gives trees or sequences, not {kind!r}")
    if not is_listed(observation) or not observation or not all(isinstance(name, str) for name in observation):
        raise CorpusError(f"observation must be a list of names of columns or keys, got {observation!r}")
    if features == "token" and len(observation) > 1:
        problem = f"seeing words by {', '.join(observation)} needs a feature set"
        raise CorpusError(problem, advice="use the feature set words")
    sentences = list(_sentences(path))
    if not sentences:
        advice = "expected CoNLL-U with ten tab-separated columns"
        raise CorpusError(f"{path} has no sentences", advice=advice)
    starts = offsets_from_lengths([len(sentence.rows) for sentence in sentences])
    rows = [row for sentence in sentences for row in sentence.rows]
    table = ColumnTable(starts, tuple([_value(row, name) or NO_VALUE for row in rows] for name in observation))
    columns = observe(table, features, window)
    if kind == "trees":
        columns["links"] = children_column([_children(sentence, path) for sentence in sentences], starts)
    y = None
    if label is not None:
        default = None if label in COLUMNS else absent
        y = [[_value(row, label) or default for row in sentence.rows] for sentence in sentences]
    plain = tuple(observation) == ("FORM",)
    options = {"label": label, "no_labels": label is None, "observation": None if plain else tuple(observation)}
    options |= {"absent": absent} if absent != "O" else {}
    recipe = Recipe.of("conllu", kind, features, window, len(observation), **options)
    ids = [sentence.comments.get("sent_id", str(index)) for index, sentence in enumerate(sentences)]
    lines = [sentence.lines[0] for sentence in sentences]
    try:
        corpus = Corpus.assembled(kind, starts, columns, y, labels=labels).with_column("id", ids)
    except CorpusError as error:
        raise located(error, path, lines) from None
    documents = _documents(sentences)
    corpus = corpus if documents is None else corpus.with_column("group", documents)
    notes = [*repeated_ids(ids, path, lines), *label_notes(corpus.label_counts(), path, has_missing_label=False)]
    if kind == "trees":
        notes += root_notes(corpus, path, lines)
    return corpus.described(recipe, notes)


def _sentences(path: str | Path) -> Iterable[WordRows]:
    current = WordRows()
    for number, line in enumerate([*read_lines(path), ""], start=1):
        if not line.strip(" \t"):
            if current.rows:
                yield current
            current = WordRows()
        elif line.startswith("#"):
            name, _, value = line[1:].partition("=")
            current.comments[name.strip()] = value.strip()
        else:
            row = line.split("\t")
            if len(row) != len(COLUMNS):
                problem = f"{len(row)} tab-separated columns, CoNLL-U has {len(COLUMNS)}"
                raise CorpusError(problem, path=str(path), line=number)
            if "-" in row[0] or "." in row[0]:
                continue
            if row[0] != str(len(current.rows) + 1):
                problem = f"word number {excerpt(row[0])} where {len(current.rows) + 1} was expected"
                raise CorpusError(problem, path=str(path), line=number)
            current.rows.append(row)
            current.lines.append(number)


def _value(row: Sequence[str], name: str) -> str | None:
    """A column, or the value of a key in MISC and FEATS ("NER", "MISC.NER"); None if it is not there."""
    if name in COLUMNS:
        number = COLUMNS.index(name)
        return row[number] if row[number] != NO_VALUE or name in ("FORM", "LEMMA") else None
    prefix, dot, key = name.partition(".")
    places = (prefix,) if dot and prefix in KEYED else KEYED
    for place in places:
        for item in row[COLUMNS.index(place)].split("|"):
            item_key, equals, value = item.partition("=")
            if equals and item_key == (key if len(places) == 1 else name):
                return value
    return None


def label_keys(path: str | Path) -> list[str]:
    """The keys of MISC and FEATS that some word of a file has, sorted."""
    places = [COLUMNS.index(name) for name in KEYED]
    items = (
        item for sentence in _sentences(path) for row in sentence.rows for n in places for item in row[n].split("|")
    )
    return sorted({item.partition("=")[0] for item in items if "=" in item})


def _children(sentence: WordRows, path: str | Path) -> list[list[int]]:
    """Children of every word in sentence order."""
    children: list[list[int]] = [[] for _ in sentence.rows]
    for node, (row, line) in enumerate(zip(sentence.rows, sentence.lines, strict=True)):
        head = row[HEAD]
        if not head.isdecimal() or len(head) > 9 or int(head) > len(sentence.rows):
            raise CorpusError(
                f"the head {excerpt(head)} is not the number of a word of this sentence "
                f"(0 for a root, at most {len(sentence.rows)})",
                path=str(path),
                line=line,
            )
        if int(head) > 0:
            children[int(head) - 1].append(node)
    return children


def _documents(sentences: Sequence[WordRows]) -> list[str] | None:
    """The document of each sentence, from '# newdoc id = ...' comments; None when there are none."""
    documents, current = [], ""
    for sentence in sentences:
        current = sentence.comments.get("newdoc id", current)
        documents.append(current)
    return documents if current else None
