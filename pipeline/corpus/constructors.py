"""How a corpus is made: of an Arrow table, or of lists of tokens, links and labels; it is checked here, once.

Columns of the table: `id`, `tokens`, and where there are any `features`, `values`, `links`, `labels`, `prior`, `tags`;
every other column (a group, a source) is carried along and decides no number.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa

from gramline.kernels.packing import Offsets
from gramline.learners.estimator import is_listed
from gramline.pipeline.corpus.arrow import NONE, dictionary_array, lists, string_array
from gramline.pipeline.corpus.columns import children_column, edges_column, label_columns, links_column, prior_column
from gramline.pipeline.corpus.flat import FlatCorpus, NameCodes, column_array, flatten, list_offsets, ranked
from gramline.pipeline.corpus.notes import Note
from gramline.pipeline.corpus.pack import PACKED_TYPES
from gramline.pipeline.corpus.parses import productions, single_tree
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.tokens import TokenColumns, listed
from gramline.pipeline.corpus.validation import check, check_columns, name_list
from gramline.pipeline.errors import CorpusError


class CheckedTable:
    """A table of structures with its kind and its label names: the base of `Corpus`, which adds what to do with it.

    The constructors for sequences, trees and graphs share three options:

    y : one list of labels per structure, None for a position or a structure without labels.
    prior : one table P(y|x) per structure, shape (positions, labels), read by `TabulatedPrior()`.
    labels : the label names in the order that breaks ties. If they are not given: the names of y, the most frequent
        first, equally frequent ones by name; all by name where a prior is given, whose columns they name.
    """

    def __init__(self, table: pa.Table, kind: str, label_names: Iterable[str] = ()) -> None:
        if not isinstance(kind, str) or kind not in PACKED_TYPES:
            raise CorpusError(f"a corpus holds {', '.join(PACKED_TYPES)}, not {kind!r}")
        check_columns(table, kind)
        self._hold(table, kind, tuple(label_names))
        check(self._flat, kind, self._label_names)

    def _hold(self, table: pa.Table, kind: str, label_names: tuple[str, ...]) -> None:
        self._table = table.combine_chunks()
        self._kind = kind
        self._label_names = label_names
        self._recipe: Recipe | None = None
        self._notes: tuple[Note, ...] = ()

    def _derived(self, table: pa.Table, label_names: tuple[str, ...] | None = None) -> Self:
        """A corpus of structures of this one, which need no second check."""
        corpus = type(self).__new__(type(self))
        corpus._hold(table, self._kind, self._label_names if label_names is None else label_names)
        corpus._recipe = self._recipe
        return corpus

    def described(self, recipe: Recipe | None, notes: Iterable[Note] = ()) -> Self:
        """The same corpus with how it was made and what its reader noticed."""
        corpus = copy(self)  # no number depends on them: packed arrays and fingerprint are shared
        corpus._recipe, corpus._notes = recipe, tuple(notes)
        return corpus

    @cached_property
    def _starts(self) -> Offsets:
        return list_offsets(column_array(self._table, "tokens"))

    @cached_property
    def _flat(self) -> FlatCorpus:
        return flatten(self._table)

    @classmethod
    def from_sequences(
        cls,
        X: Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        prior: Iterable[Any] | None = None,
        labels: Iterable[str] | None = None,
        letters: bool = False,
    ) -> Self:
        """Token sequences.

        Parameters
        ----------
        X : one list of tokens per structure; a token is a string, a mapping from feature name to value, or a
            collection of feature names. {"pos": "NN"} is the binary feature "pos=NN"; nested mappings and lists are
            spelled out, {"a": {"b": 1.0}, "tags": ["x"]} is "a:b" and "tags:x".
        y, prior, labels : see the class.
        letters : read a structure that is a string, and labels that are one, letter by letter.

        >>> from gramline.pipeline import Corpus
        >>> corpus = Corpus.from_sequences([["Ann", {"lower": "saw", "length": 3}]], [["name", None]])
        >>> corpus
        Corpus(1 sequences, 2 positions, 1 labels)
        >>> corpus.packed().vocabulary.features
        ('Ann', 'length', 'lower=saw')
        """
        if letters:
            X = [list(text) if isinstance(text, str) else text for text in _structures(X, "X")]
            y = y if y is None else [list(row) if isinstance(row, str) else row for row in _structures(y, "y")]
        starts, columns = token_columns(X)
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
        """Ordered trees or forests, nodes in any order.

        Parameters
        ----------
        X : one list of tokens per structure, as for `from_sequences`; a position is a node.
        children : children[i][node] lists the children of a node of structure i in their order.
        y, prior, labels : see the class.

        >>> from gramline.pipeline import Corpus
        >>> Corpus.from_trees([["Ann", "saw", "Bob"]], [[[], [0, 2], []]], [["N", "V", "N"]])
        Corpus(1 trees, 3 positions, 2 labels)
        """
        starts, columns = token_columns(X)
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
        """Directed acyclic graphs.

        Parameters
        ----------
        X : one list of tokens per structure, as for `from_sequences`; a position is a node.
        edges : edges[i] lists the edges (source, target) of structure i; a repeated edge is one edge.
        y, prior, labels : see the class.

        >>> from gramline.pipeline import Corpus
        >>> Corpus.from_dags([["a", "b", "c"]], [[(0, 1), (0, 2), (1, 2)]], labels=["X", "Y"])
        Corpus(1 dags, 3 positions, 2 labels)
        """
        starts, columns = token_columns(X)
        columns["links"] = edges_column(edges, starts)
        return cls.assembled("dags", starts, columns, y, prior, labels)

    @classmethod
    def from_parses(cls, trees: Iterable[Any]) -> Self:
        """Constituency trees; a position is a node, its token the production of the node.

        Parameters
        ----------
        trees : nested lists [label, child, ...] with words as strings, or bracketed strings.

        >>> from gramline.pipeline import Corpus
        >>> corpus = Corpus.from_parses(["(S (NP they) (VP run))", ["NP", "they"]])
        >>> corpus.tokens[1], corpus.trees[0]
        (['["NP", "they"]'], ['S', ['NP', 'they'], ['VP', 'run']])
        """
        codes, names = NameCodes(), list[int]()
        starts, counts, targets = [0], list[int](), list[int]()
        for index, tree in enumerate(_structures(trees, "trees")):
            tree_names, links = productions(single_tree(tree, index), index)
            names.extend(NONE if name is None else codes[name] for name in tree_names)
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
        """Tagged sentences, which the kernel `Tagging` compares.

        Parameters
        ----------
        sentences : one list of pairs (word, tag) per sentence.

        >>> from gramline.pipeline import Corpus
        >>> Corpus.from_tagged([[("they", "PRP"), ("run", "VBP")]])
        Corpus(1 tagged, 2 positions, 0 labels)
        """
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
        columns["tags"] = label_columns(tag_lists, starts, "tag")[0]
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
    ) -> Self:
        """A corpus of columns that a reader made; structure i has the positions starts[i]:starts[i + 1]."""
        names = () if labels is None else name_list(labels, "labels")
        if y is not None:
            columns["labels"], names_in_use = label_columns(y, starts)
            if labels is None:  # the columns of a prior must not depend on how often a label occurs
                names = names_in_use if prior is None else tuple(sorted(names_in_use))
        if prior is not None:
            columns["prior"] = prior_column(prior, starts, names)
        ids = string_array(str(index) for index in range(len(starts) - 1))
        return cls(pa.table({"id": ids, **columns}), kind, names)


def _structures(given: Iterable[Any], what: str) -> Iterable[Any]:
    if not is_listed(given):
        raise CorpusError(f"{what} must be a list of structures, got {type(given).__name__}")
    return given


def token_columns(X: Iterable[Any]) -> tuple[Offsets, dict[str, pa.Array[Any]]]:
    """Positions per structure as offsets, and the columns of its tokens."""
    collector = TokenColumns()
    for structure in _structures(X, "X"):
        collector.add(structure)
    return collector.columns()
