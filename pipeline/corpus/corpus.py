"""The corpus: an immutable Arrow table with one row per structure, its kind and the order of its labels.

Columns: `id`, `tokens`, and where there are any `features`, `values`, `links`, `labels`, `prior`, `tags`; every other
column (a group, a source) is carried along and decides no number.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Offsets, Packed
from gramline.learners.parameters import is_listed
from gramline.pipeline.corpus.fingerprint import fingerprint
from gramline.pipeline.corpus.flat import LIST_COLUMNS, FlatCorpus, column_array, flatten, list_offsets
from gramline.pipeline.corpus.label_columns import label_columns, prior_column
from gramline.pipeline.corpus.links import children_column, edges_column, links_column
from gramline.pipeline.corpus.names import NONE, NameCodes, dictionary_array, lists, ranked, string_array
from gramline.pipeline.corpus.pack import PACKED_TYPES, pack
from gramline.pipeline.corpus.parquet import IMPORT_AGAIN, read_table, write_table
from gramline.pipeline.corpus.parses import Tree, nested, productions, single_tree
from gramline.pipeline.corpus.tokens import TokenColumns, listed
from gramline.pipeline.corpus.validation import AT_LEAST_ONE, EMPTY, check, check_columns, check_labels
from gramline.pipeline.errors import CorpusError

Labels = list[list[str | None]]
CONTENT_COLUMNS = ("id", "tokens", *LIST_COLUMNS)


class Corpus:
    """Structures of one kind: sequences, trees, dags, parses or tagged sentences."""

    def __init__(self, table: pa.Table, kind: str, label_names: Iterable[str] = ()) -> None:
        if kind not in PACKED_TYPES:
            raise CorpusError(f"a corpus holds {', '.join(PACKED_TYPES)}, not {kind!r}")
        check_columns(table, kind)
        self._hold(table, kind, tuple(label_names))
        check(self._flat, kind, self._label_names)

    def _hold(self, table: pa.Table, kind: str, label_names: tuple[str, ...]) -> None:
        self._table = table.combine_chunks()
        self._kind = kind
        self._label_names = label_names

    def _derived(self, table: pa.Table, label_names: tuple[str, ...] | None = None) -> Self:
        """A corpus of structures of this one, which need no second check."""
        corpus = type(self).__new__(type(self))
        corpus._hold(table, self._kind, self._label_names if label_names is None else label_names)
        return corpus

    # ---- constructors

    @classmethod
    def from_sequences(
        cls,
        X: Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        prior: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
    ) -> Self:
        """Token sequences. A token: a string, a mapping name -> value, or an iterable of feature names."""
        starts, columns = _token_columns(X)
        return cls.assembled("sequences", starts, columns, y, prior, labels)

    @classmethod
    def from_trees(
        cls,
        X: Iterable[Any],
        children: Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        prior: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
    ) -> Self:
        """Ordered trees or forests: children[i][node] = ordered child indices, in any node order."""
        starts, columns = _token_columns(X)
        columns["links"] = children_column(children, starts)
        return cls.assembled("trees", starts, columns, y, prior, labels)

    @classmethod
    def from_dags(
        cls,
        X: Iterable[Any],
        edges: Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        prior: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
    ) -> Self:
        """Directed acyclic graphs: edges[i] = [(u, v), ...]; a repeated edge is one edge."""
        starts, columns = _token_columns(X)
        columns["links"] = edges_column(edges, starts)
        return cls.assembled("dags", starts, columns, y, prior, labels)

    @classmethod
    def from_parses(cls, trees: Iterable[Any]) -> Self:
        """Constituency trees as nested lists ["S", ["NP", "they"], ...] or bracketed strings."""
        codes, names = NameCodes(), list[int]()
        starts, counts, targets = [0], list[int](), list[int]()
        for index, tree in enumerate(_structures(trees, "trees")):
            found, links = productions(single_tree(tree, index), index)
            names.extend(NONE if name is None else codes[name] for name in found)
            counts.extend(map(len, links))
            targets.extend(target for below in links for target in below)
            starts.append(len(names))
        offsets = np.array(starts, np.int64)
        columns = {
            "tokens": lists(offsets, dictionary_array(*ranked(list(codes), np.array(names, np.int32)))),
            "links": links_column(offsets, np.array(counts, np.int64), np.array(targets, np.int64)),
        }
        return cls.assembled("parses", offsets, columns)

    @classmethod
    def from_tagged(cls, sentences: Iterable[Any]) -> Self:
        """Tagged sentences [[(word, tag), ...], ...]."""
        collector, tag_lists = TokenColumns(), []
        for index, sentence in enumerate(_structures(sentences, "sentences")):
            pairs = listed(sentence, index, "a tagged sentence")
            for position, pair in enumerate(pairs):
                if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(p, str) for p in pair)):
                    problem = f"a tagged word is a pair (word, tag), got {pair!r}"
                    raise CorpusError(problem, structure=index, position=position)
            collector.add([word for word, _ in pairs])
            tag_lists.append([tag for _, tag in pairs])
        starts, columns = collector.columns()
        columns["tags"] = label_columns(tag_lists, starts, "tags")[0]
        return cls.assembled("tagged", starts, columns)

    @classmethod
    def assembled(
        cls,
        kind: str,
        starts: Offsets,
        columns: dict[str, pa.Array[Any]],
        y: Iterable[Any] | None = None,
        prior: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
        ids: Sequence[str] | None = None,
    ) -> Self:
        names = tuple(labels) if labels is not None else None
        if y is not None:
            columns["labels"], found = label_columns(y, starts, "labels")
            names = found if names is None else names
        if prior is not None:
            columns["prior"] = prior_column(prior, starts, names or ())
        numbered = [str(index) for index in range(len(starts) - 1)] if ids is None else ids
        return cls(pa.table({"id": string_array(numbered), **columns}), kind, names or ())

    # ---- what it holds

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def table(self) -> pa.Table:
        """The Arrow table, one row per structure."""
        return self._table

    @property
    def label_names(self) -> list[str]:
        """Label names in the order that breaks ties: as given, otherwise sorted."""
        return list(self._label_names)

    @property
    def ids(self) -> list[str]:
        return [str(name) for name in self._table.column("id").to_pylist()]

    @property
    def lengths(self) -> Offsets:
        """Positions per structure."""
        return np.diff(self._starts)

    def by_structure(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """`values` of all positions, shape (n_positions, ...), as one array per structure."""
        return np.split(values, self._starts[1:-1])

    @property
    def n_positions(self) -> int:
        return int(self._starts[-1])

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        return f"Corpus({len(self)} {self._kind}, {self.n_positions} positions, {len(self._label_names)} labels)"

    @cached_property
    def labels(self) -> Labels:
        """Label names per structure and position, None where there is none."""
        column = column_array(self._table, "labels")
        if column is None:
            return [[None] * int(length) for length in self.lengths]
        found: Labels = column.to_pylist()
        return found

    @property
    def tokens(self) -> list[list[str | None]]:
        """Words (of parses: productions) per structure; None for a feature set without a word."""
        found: list[Any] = self._table.column("tokens").to_pylist()
        return found

    @property
    def trees(self) -> list[Tree]:
        """The nested lists of a corpus of parses."""
        if self._kind != "parses":
            raise CorpusError(f"nested trees come from a corpus of parses, this one holds {self._kind}")
        links: list[Any] = self._table.column("links").to_pylist()
        return [nested(names, below) for names, below in zip(self.tokens, links, strict=True)]

    def column(self, name: str) -> list[Any]:
        """A carried column, such as a group."""
        if name not in self._table.column_names:
            raise CorpusError(f"the corpus has no column {name!r}; it has {', '.join(self._table.column_names)}")
        return self._table.column(name).to_pylist()

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that decides numbers; equal in every process for equal content."""
        return fingerprint(self._flat, self._kind, self._label_names)

    @cached_property
    def _starts(self) -> Offsets:
        return list_offsets(column_array(self._table, "tokens"))

    @cached_property
    def _flat(self) -> FlatCorpus:
        return flatten(self._table)

    # ---- packing

    def packed(self, like: Packed | None = None) -> Packed:
        """Flat arrays for the kernels; with `like`, in its vocabulary (extended) and with its labels if it has any."""
        return self._packed if like is None else pack(self._flat, self._kind, self._label_names, like)

    @cached_property
    def _packed(self) -> Packed:
        return pack(self._flat, self._kind, self._label_names, None)

    # ---- a corpus from this one

    def select(self, indices: Iterable[int]) -> Self:
        """The given structures in the given order; label names stay, so that codes stay."""
        wanted = np.asarray(list(indices), np.int64)
        if (outside := wanted[(wanted < -len(self)) | (wanted >= len(self))]).size:
            raise CorpusError(f"out of range, the corpus has {len(self)} structures", structure=int(outside[0]))
        if not len(wanted):
            raise CorpusError(EMPTY, advice=AT_LEAST_ONE)
        return self._derived(self._table.take(wanted % len(self)))

    def split(self, fraction: float = 0.8, seed: int | None = None) -> tuple[Self, Self]:
        """Two parts, the first with `fraction` of the structures; in order, or drawn at random with a seed."""
        count = round(fraction * len(self))
        if not 0 < count < len(self):
            raise CorpusError(f"a fraction of {fraction} leaves a part of {len(self)} structures empty")
        order = list(range(len(self)))
        if seed is not None:
            random.Random(seed).shuffle(order)
        return self.select(order[:count]), self.select(order[count:])

    def with_labels(self, y: Iterable[Any], labels: Iterable[str] | None = None) -> Self:
        """The same structures with other labels; label names are `labels`, or those there are, or those found."""
        column, found = label_columns(y, self._starts, "labels")
        names = tuple(labels) if labels is not None else self._label_names or found
        corpus = self._derived(_replaced(self._table, "labels", column), names)
        check_labels(corpus._flat, names)
        return corpus

    def without_labels(self) -> Self:
        """The same structures with every label missing; the label names stay known."""
        table = self._table.drop_columns(["labels"]) if "labels" in self._table.column_names else self._table
        return self._derived(table)

    def with_column(self, name: str, values: Sequence[Any]) -> Self:
        """One more carried column, one value per structure; `id` may be replaced."""
        if name in CONTENT_COLUMNS and name != "id":
            raise CorpusError(f"the column {name!r} holds the content of the corpus", advice="choose another name")
        if len(values) != len(self):
            raise CorpusError(f"the column {name!r} has {len(values)} values for {len(self)} structures")
        try:
            column = string_array(values) if name == "id" else pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            raise CorpusError(
                f"the column {name!r} cannot be kept",
                advice="give all structures values of one kind, valid text or numbers of at most 64 bits",
                structure=_odd_one(values),
            ) from None
        corpus = copy(self)  # no number depends on the column: packed arrays and fingerprint are shared
        corpus._table = _replaced(self._table, name, column)
        return corpus

    # ---- disk

    def save(self, path: str | Path) -> None:
        """Write one Parquet file, whole or not at all."""
        description = {"kind": self._kind, "label_names": self.label_names, "fingerprint": self.fingerprint}
        write_table(self._table, path, description)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        table, description = read_table(path)
        try:
            corpus = cls(table, description["kind"], description["label_names"])
        except CorpusError as error:
            raise error.at(path=str(path)) from None
        if corpus.fingerprint != description["fingerprint"]:
            problem = f"{path} is damaged: its content does not fit its fingerprint"
            raise CorpusError(problem, advice=IMPORT_AGAIN)
        return corpus

    def show(self) -> dict[str, Any]:
        """Sizes, labels and fingerprint as a small dictionary."""
        counts = dict.fromkeys(self._label_names, 0)
        if self._flat.labels is not None:
            codes = self._flat.labels.codes
            frequency = np.bincount(codes[codes >= 0], minlength=len(self._flat.labels.names))
            found = dict(zip(self._flat.labels.names, map(int, frequency), strict=True))
            counts = {name: found.get(name, 0) for name in self._label_names}
        return {
            "kind": self._kind,
            "structures": len(self),
            "positions": self.n_positions,
            "longest": int(self.lengths.max()),
            "labels": counts,
            "unlabeled": self.n_positions - sum(counts.values()),
            "features": len(self.packed().vocabulary.features),
            "links": None if self._flat.links is None else len(self._flat.links),
            "prior": self._flat.prior is not None,
            "columns": [name for name in self._table.column_names if name not in CONTENT_COLUMNS],
            "fingerprint": self.fingerprint,
        }


def _odd_one(values: Sequence[Any]) -> int:
    """The number of the structure whose value does not go with those before it."""
    kept = len(values)
    low = 0
    while low < kept:  # the shortest beginning that cannot be kept ends with it
        middle = (low + kept) // 2
        try:
            pa.array(values[: middle + 1])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            kept = middle
        else:
            low = middle + 1
    return min(low, len(values) - 1)


def _structures(given: Iterable[Any], what: str) -> Iterable[Any]:
    if not is_listed(given):
        raise CorpusError(f"{what} must be a list of structures, got {type(given).__name__}")
    return given


def _token_columns(X: Iterable[Any]) -> tuple[Offsets, dict[str, pa.Array[Any]]]:
    collector = TokenColumns()
    for structure in _structures(X, "X"):
        collector.add(structure)
    return collector.columns()


def _replaced(table: pa.Table, name: str, column: pa.Array[Any]) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)
