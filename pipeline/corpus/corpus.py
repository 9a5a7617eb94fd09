"""The corpus: an immutable Arrow table with one row per structure, and everything that is read off it or made of it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence, Sized
from copy import copy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gramline.kernels.packing import Offsets, Packed
from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Number
from gramline.learners.estimator import is_listed
from gramline.learners.labels import decode_labels
from gramline.pipeline.corpus.arrow import string_array
from gramline.pipeline.corpus.columns import label_columns, prior_table, table_column
from gramline.pipeline.corpus.doors import OutsideData
from gramline.pipeline.corpus.flat import LIST_COLUMNS, column_array, fingerprint
from gramline.pipeline.corpus.notes import Note
from gramline.pipeline.corpus.pack import pack
from gramline.pipeline.corpus.parquet import IMPORT_AGAIN, read_table, write_table
from gramline.pipeline.corpus.parses import Tree, nested
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.corpus.validation import AT_LEAST_ONE, EMPTY, check_labels, name_list
from gramline.pipeline.errors import CorpusError

LabelLists = list[list[str | None]]
CONTENT_COLUMNS = ("id", "tokens", *LIST_COLUMNS)


class Corpus(OutsideData):
    """Structures of one kind, immutable: sequences, trees, dags, parses or tagged sentences.

    Made by a `from_` constructor, by `read` (or a reader such as `read_conll`), or by `load`. Labels go in and come
    out as strings.

    Attributes
    ----------
    kind : "sequences", "trees", "dags", "parses" or "tagged".
    labels : a list per structure of one label per position, None where there is none.
    label_names : all label names in the order that breaks ties: as given, otherwise the most frequent first.
    tokens : a list per structure of words (of parses: productions), None for a feature set without a word.
    lengths : positions per structure, shape (n_structures,); their sum is `n_positions`.
    ids : the name of every structure.
    table : the Arrow table, one row per structure.
    recipe : how it was read and described, None where nobody said.
    notes : what its reader noticed that was perhaps not meant.
    fingerprint : hash of everything that decides numbers; equal in every process for equal content.

    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["they", "run"], ["Ann", "ran"]], [["O", "O"], ["B", "O"]])
    >>> corpus.select([1]).labels, corpus.label_names
    ([['B', 'O']], ['O', 'B'])
    """

    @property
    def kind(self) -> str:
        return self._kind

    @property
    def table(self) -> pa.Table:
        return self._table

    @property
    def label_names(self) -> list[str]:
        return list(self._label_names)

    @property
    def ids(self) -> list[str]:
        return [str(name) for name in self._table.column("id").to_pylist()]

    @property
    def lengths(self) -> Offsets:
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
    def labels(self) -> LabelLists:
        labels = self._flat.labels
        if labels is None:
            return [[None] * int(length) for length in self.lengths]
        return decode_labels(labels.codes, (*labels.names, None), self.lengths)  # the code of no label is -1

    @property
    def tokens(self) -> list[list[str | None]]:
        tokens: list[Any] = self._table.column("tokens").to_pylist()
        return tokens

    @property
    def trees(self) -> list[Tree]:
        """The nested lists of a corpus of parses."""
        if self._kind != "parses":
            raise CorpusError(f"nested trees come from a corpus of parses, this one holds {self._kind}")
        links: list[Any] = self._table.column("links").to_pylist()
        return [nested(names, below) for names, below in zip(self.tokens, links, strict=True)]

    @property
    def recipe(self) -> Recipe | None:
        return self._recipe

    @property
    def notes(self) -> tuple[Note, ...]:
        return self._notes

    def label_counts(self) -> dict[str, int]:
        """How many positions have each label, in the order of the names."""
        counts = dict.fromkeys(self._label_names, 0)
        if self._flat.labels is not None:
            codes = self._flat.labels.codes
            frequency = np.bincount(codes[codes >= 0], minlength=len(self._flat.labels.names))
            counts |= dict(zip(self._flat.labels.names, map(int, frequency), strict=True))
        return counts

    def column(self, name: str) -> list[Any]:
        """A carried column, such as a group."""
        if name not in self._table.column_names:
            raise CorpusError(f"the corpus has no column {name!r}; it has {', '.join(self._table.column_names)}")
        return self._table.column(name).to_pylist()

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self._flat, self._kind, self._label_names)

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
        given = np.asarray(list(indices) if is_listed(indices) else indices)
        if given.ndim != 1 or (len(given) and given.dtype.kind not in "iu"):
            problem = f"structures are chosen by a list of their numbers, got {indices!r}"
            raise CorpusError(problem, advice="give numpy.flatnonzero(mask) for a mask")
        wanted = given.astype(np.int64)
        if (outside := wanted[(wanted < -len(self)) | (wanted >= len(self))]).size:
            raise CorpusError(f"out of range, the corpus has {len(self)} structures", structure=int(outside[0]))
        if not len(wanted):
            raise CorpusError(EMPTY, advice=AT_LEAST_ONE)
        chosen = wanted % len(self)
        if 2 * len(chosen) > len(self) and (np.diff(chosen) == 1).all():  # a view would keep the whole table
            return self._derived(self._table.slice(int(chosen[0]), len(chosen)))
        return self._derived(self._table.take(chosen))

    def split(self, fraction: float = 0.8, seed: int | None = None) -> tuple[Self, Self]:
        """Two parts, the first with `fraction` of the structures; in order, or drawn at random with a seed."""
        count = round(plain_value("fraction", Number(), fraction, CorpusError) * len(self))
        if not 0 < count < len(self):
            raise CorpusError(f"a fraction of {fraction} leaves a part of {len(self)} structures empty")
        order = list(range(len(self)))
        if seed is not None:
            seed = plain_value("seed", Number(whole=True), seed, CorpusError)
            random.Random(seed).shuffle(order)
        return self.select(order[:count]), self.select(order[count:])

    def with_labels(self, y: Iterable[Any], labels: Iterable[str] | None = None) -> Self:
        """The same structures with other labels; label names are `labels`, or those of this corpus, or those of y."""
        column, names_in_use = label_columns(y, self._starts)
        names = name_list(labels, "labels") if labels is not None else self._label_names or names_in_use
        corpus = self._derived(_replaced(self._table, "labels", column), names)
        check_labels(corpus._flat, names)
        return corpus

    def without_labels(self) -> Self:
        """The same structures with every label missing; the label names stay known."""
        table = self._table.drop_columns(["labels"]) if "labels" in self._table.column_names else self._table
        return self._derived(table)

    def with_prior(self, prior: Any, labels: Iterable[str] | None = None) -> Self:
        """The same structures with a table P(y|x) each, shape (positions, labels), which `TabulatedPrior` reads.

        `prior` is a list of them, or one array of all positions; its columns are `labels`, by default those of this
        corpus. Labels of either that the other does not have are added, with the probability 0.

        >>> from gramline.pipeline import Corpus
        >>> corpus = Corpus.from_sequences([["a", "b"]], [["x", "y"]])
        >>> corpus.with_prior([[[0.25, 0.75], [1, 0]]], labels=["y", "x"]).label_names
        ['x', 'y']
        """
        given = self._label_names if labels is None else name_list(labels, "labels")
        names = (*self._label_names, *(name for name in given if name not in self._label_names))
        if isinstance(prior, np.ndarray) and prior.ndim == 2 and len(prior) == self.n_positions:
            prior = self.by_structure(prior)
        table = np.zeros((self.n_positions, len(names)))
        table[:, [names.index(name) for name in given]] = prior_table(prior, self._starts, given)
        corpus = self._derived(_replaced(self._table, "prior", table_column(table, self._starts)), names)
        check_labels(corpus._flat, names)
        return corpus

    @property
    def has_features(self) -> bool:
        """Whether positions have features besides their word."""
        return "features" in self._table.column_names

    def with_features(self, features: str = "spelling", window: int | None = None) -> Self:
        """The same structures, their words described by a feature set and, in sequences, by that of their neighbours.

        `window` counts the neighbours on either side; nodes of trees and graphs have none.
        """
        reach = window if self._kind == "sequences" else 0
        recipe = Recipe.of(LISTS, "sequences", features, reach)
        words = recipe.corpus_of(self.tokens)
        own = replace(self._recipe or Recipe(LISTS, self._kind), features=features, window=recipe.window, columns=1)
        return self._derived(_replaced(self._table, "features", column_array(words.table, "features"))).described(
            own, self._notes
        )

    def with_column(self, name: str, values: Sequence[Any]) -> Self:
        """One more carried column, one value per structure; `id` may be replaced."""
        if not isinstance(name, str):
            raise CorpusError(f"the name of a column is a string, got {name!r}")
        if not is_listed(values):
            raise CorpusError(f"the column {name!r} must be a list with one value per structure, got {values!r}")
        values = values if isinstance(values, Sized) else list(values)
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
        description: dict[str, Any] = {
            "kind": self._kind,
            "label_names": self.label_names,
            "fingerprint": self.fingerprint,
        }
        if self._recipe is not None:
            description["recipe"] = self._recipe.to_dict()
        write_table(self._table, path, description)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that `save` wrote."""
        table, description = read_table(path)
        try:
            corpus = cls(table, description["kind"], description["label_names"])
            recipe = Recipe.from_dict(description["recipe"]) if "recipe" in description else None
        except CorpusError as error:
            raise error.at(path=str(path)) from None
        if corpus.fingerprint != description["fingerprint"]:
            problem = f"{path} is damaged: its content does not fit its fingerprint"
            raise CorpusError(problem, advice=IMPORT_AGAIN)
        return corpus.described(recipe)

    def show(self) -> dict[str, Any]:
        """Sizes, labels and fingerprint as a small dictionary."""
        counts = self.label_counts()
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
            "recipe": None if self._recipe is None else self._recipe.describe(),
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


def _replaced(table: pa.Table, name: str, column: pa.Array[Any]) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)
