"""Structures as flat read-only arrays plus offsets. Validated once, at the door; sliced by whole structures.

Knows nothing of files. A block of a corpus is the same type as the corpus: `packed.structures(a, b)`.
Every packed type turns into named flat arrays and back (`arrays`, `from_arrays`): how stores and models keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.errors import PackingError, Where
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths, range_containing

Ints = NDArray[np.int32]
Offsets = NDArray[np.int64]
Floats = NDArray[np.float64]

TAKEN_AT_ONCE = 1 << 17  # positions, whose numbers take more memory than what they choose
MISSING = -1  # label code of a position without a label


@dataclass(frozen=True)
class Vocabulary:
    """The strings behind the integers; two packed corpora can meet only if one extends the other's vocabulary."""

    symbols: tuple[str, ...] = ()  # name of each observation id
    features: tuple[str, ...] = ()  # name of each feature column
    labels: tuple[str, ...] = ()  # name of each label code, in the order that breaks ties


def frozen(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """`array` as a contiguous read-only array of `dtype`; copies only when it must."""
    result: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype)
    if result is array and result.flags.writeable:
        result = result.view()
    result.flags.writeable = False
    return result


@dataclass(frozen=True, eq=False)
class Features:
    """Sparse features in CSR form, one row per position; `values` is None when every value is 1."""

    indptr: Offsets  # shape (n + 1,)
    indices: Ints  # shape (nnz,), sorted and unique within a row
    values: Floats | None  # shape (nnz,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "indptr", frozen(self.indptr, np.int64))
        object.__setattr__(self, "indices", frozen(self.indices, np.int32))
        if self.values is not None:
            object.__setattr__(self, "values", frozen(self.values, np.float64))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def is_binary(self) -> bool:
        return self.values is None

    def rows(self, first: int, last: int) -> Features:
        """Rows first..last-1, rebased; indices and values are views."""
        low, high = int(self.indptr[first]), int(self.indptr[last])
        values = None if self.values is None else self.values[low:high]
        return Features(self.indptr[first : last + 1] - low, self.indices[low:high], values)

    def take(self, rows: NDArray[np.integer]) -> Features:
        """The given rows in the given order (a copy)."""
        lengths = np.diff(self.indptr)[rows]
        source = indices_of_ranges(self.indptr[:-1][rows], lengths)
        values = None if self.values is None else self.values[source]
        return Features(offsets_from_lengths(lengths), self.indices[source], values)


@dataclass(frozen=True, eq=False)
class Packed:
    """What all packed corpora share: structures with positions, their observations, labels and prior.

    `codes` is what observation kernels read as the identity of an observation; it is `symbols` unless the
    observation kernel has its own alphabet (`Substitution`). `prior` is set by `Kernel.prepare`.
    """

    kind: ClassVar[str] = "packed"

    starts: Offsets  # shape (n_structures + 1,); positions of structure s are starts[s]:starts[s + 1]
    symbols: Ints  # shape (n,); equal ids <=> equal observations
    features: Features  # n rows
    labels: Ints  # shape (n,); MISSING where there is none
    vocabulary: Vocabulary = field(default_factory=Vocabulary, repr=False)
    codes: Ints | None = None  # shape (n,); None: the symbols themselves
    prior: Floats | None = None  # shape (n, n_labels); None: uniform (or not resolved yet)
    table: Floats | None = None  # shape (n, n_labels); the prior table a corpus carries, for TabulatedPrior

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", frozen(self.starts, np.int64))
        for name in ("symbols", "labels", "codes"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.int32))
        for name in ("prior", "table"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, frozen(getattr(self, name), np.float64))

    def __len__(self) -> int:
        """Number of structures."""
        return len(self.starts) - 1

    @property
    def n_positions(self) -> int:
        return int(self.starts[-1])

    @property
    def n_labels(self) -> int:
        """Number of labels the prior is spread over; a corpus without any label counts as one label."""
        return max(1, len(self.vocabulary.labels))

    @property
    def lengths(self) -> Offsets:
        return np.diff(self.starts)

    @property
    def observed(self) -> Ints:
        """The observation identity that observation kernels compare, shape (n,)."""
        return self.symbols if self.codes is None else self.codes

    def structures(self, first: int, last: int) -> Self:
        """Structures first..last-1 as a packed corpus of their own, rebased at 0."""
        low, high = int(self.starts[first]), int(self.starts[last])
        sliced: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[low:high]
            for name in ("symbols", "labels", "codes", "prior", "table")
        }
        sliced |= {"starts": self.starts[first : last + 1] - low, "features": self.features.rows(low, high)}
        return replace(self, **(sliced | self._links(first, last)))

    def take(self, structures: NDArray[np.integer]) -> Self:
        """The given structures in the given order as a packed corpus of their own (a copy)."""
        ends = np.cumsum(self.lengths[structures])
        if not len(ends) or ends[-1] <= TAKEN_AT_ONCE:
            return self._take(structures)
        cuts = np.unique(np.searchsorted(ends, np.arange(TAKEN_AT_ONCE, ends[-1], TAKEN_AT_ONCE)) + 1)
        return concatenate([self._take(part) for part in np.split(structures, cuts) if len(part)])

    def _take(self, structures: NDArray[np.integer]) -> Self:
        """The same at once, with the numbers of all their positions."""
        lengths = self.lengths[structures]
        positions = indices_of_ranges(self.starts[structures], lengths)
        taken: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[positions]
            for name in ("symbols", "labels", "codes", "prior", "table")
        }
        taken |= {"starts": offsets_from_lengths(lengths), "features": self.features.take(positions)}
        return replace(self, **(taken | self._taken_links(positions)))

    def _links(self, _first: int, _last: int) -> dict[str, Any]:
        """What a subclass adds to the slice of structures first..last-1."""
        return {}

    def _taken_links(self, _positions: Offsets) -> dict[str, Any]:
        """What a subclass adds to the structures that have these positions."""
        return {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Every array that is present, by name; the vocabulary is kept apart."""
        arrays: dict[str, NDArray[Any]] = {
            "feature_indptr": self.features.indptr,
            "feature_indices": self.features.indices,
        }
        if self.features.values is not None:
            arrays["feature_values"] = self.features.values
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                arrays[item.name] = value
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], vocabulary: Vocabulary) -> Self:
        """The inverse of `arrays`."""
        rest = {name: array for name, array in arrays.items() if not name.startswith("feature_")}
        features = Features(arrays["feature_indptr"], arrays["feature_indices"], arrays.get("feature_values"))
        return cls(features=features, vocabulary=vocabulary, **rest)


@dataclass(frozen=True, eq=False)
class PackedSequences(Packed):
    """Sequences: position p follows p - 1 within its structure."""

    kind: ClassVar[str] = "sequences"


@dataclass(frozen=True, eq=False)
class LinkedPacked(Packed):
    """Structures whose positions point at other positions of the same structure, in CSR form."""

    link_indptr: Offsets = field(default_factory=lambda: np.zeros(1, np.int64))  # shape (n + 1,)
    link_targets: Ints = field(default_factory=lambda: np.zeros(0, np.int32))  # local: 0 = first of the structure

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "link_indptr", frozen(self.link_indptr, np.int64))
        object.__setattr__(self, "link_targets", frozen(self.link_targets, np.int32))

    def _links(self, first: int, last: int) -> dict[str, Any]:
        low, high = int(self.starts[first]), int(self.starts[last])
        begin, end = int(self.link_indptr[low]), int(self.link_indptr[high])
        return {
            "link_indptr": self.link_indptr[low : high + 1] - begin,
            "link_targets": self.link_targets[begin:end],
        }

    def _taken_links(self, positions: Offsets) -> dict[str, Any]:
        counts = np.diff(self.link_indptr)[positions]
        return {
            "link_indptr": offsets_from_lengths(counts),
            "link_targets": self.link_targets[indices_of_ranges(self.link_indptr[positions], counts)],
        }


@dataclass(frozen=True, eq=False)
class PackedTrees(LinkedPacked):
    """Ordered trees or forests: links lead from a node to its children, in sibling order; any node order."""

    kind: ClassVar[str] = "trees"


@dataclass(frozen=True, eq=False)
class PackedDags(LinkedPacked):
    """Directed acyclic graphs: links are the outgoing edges, without repeats, sorted."""

    kind: ClassVar[str] = "dags"


@dataclass(frozen=True, eq=False)
class PackedParses(LinkedPacked):
    """Constituency trees: positions are the nonterminal nodes in pre-order, links their nonterminal children in order.

    `symbols` holds production ids, MISSING for a node without children. The name of a production is the JSON list
    [label, child, ...], a word as a string and a nonterminal as a list of one: '["NP", ["DT"], ["NN"]]', '["DT", "a"]'.
    """

    kind: ClassVar[str] = "parses"


@dataclass(frozen=True, eq=False)
class PackedTagged(Packed):
    """Tagged sentences: `symbols` holds word ids, `tags` tag ids; the names of the tags are `vocabulary.features`."""

    kind: ClassVar[str] = "tagged"

    tags: Ints = field(default_factory=lambda: np.zeros(0, np.int32))  # shape (n,)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "tags", frozen(self.tags, np.int32))

    def _links(self, first: int, last: int) -> dict[str, Any]:
        return {"tags": self.tags[int(self.starts[first]) : int(self.starts[last])]}

    def _taken_links(self, positions: Offsets) -> dict[str, Any]:
        return {"tags": self.tags[positions]}


P = TypeVar("P", bound=Packed)


@runtime_checkable
class Packable(Protocol):
    """Anything that packs itself; the corpus of the pipeline does."""

    def packed(self, like: Packed | None = None) -> Packed:
        """The packed form; with `like`, in the vocabulary of `like` (extended) and with its labels."""
        ...


def check_packable(corpus: object) -> None:
    """Refuse what is not a corpus, such as the lists that one is made from."""
    if not isinstance(corpus, Packed | Packable) or isinstance(corpus, type):
        raise PackingError(
            f"expected a corpus, got {type(corpus).__name__}",
            advice="make one of lists with Corpus.from_sequences and its like",
        )


def pack_pair(corpus: Packable | Packed, other: Packable | Packed | None) -> tuple[Packed, Packed | None]:
    """Both corpora packed in one vocabulary; the labels of `corpus` decide, unless it has none."""
    for given in (corpus,) if other is None else (corpus, other):
        check_packable(given)
    if isinstance(corpus, Packed):
        rows = corpus
    elif isinstance(other, Packed):
        rows = corpus.packed(like=other)
    else:
        rows = corpus.packed()
    if other is None:
        return rows, None
    cols = other if isinstance(other, Packed) else other.packed(like=rows)
    if rows.vocabulary.labels != cols.vocabulary.labels:
        if rows.vocabulary.labels:
            raise PackingError(
                f"the two corpora have different label sets ({len(rows.vocabulary.labels)} and "
                f"{len(cols.vocabulary.labels)} labels)",
                advice="pack the second one with like= the first",
            )
        rows = replace(rows, vocabulary=replace(rows.vocabulary, labels=cols.vocabulary.labels))
    if rows.kind != cols.kind:
        problem = f"rows are {rows.kind} but columns are {cols.kind}"
        raise PackingError(problem, advice="a kernel compares one kind of structure")
    return rows, cols


def place(starts: Offsets, position: int) -> Where:
    """Structure, and position within it, of a position of a whole corpus; the fields an error takes."""
    structure = range_containing(starts, position)
    return Where(structure=structure, position=position - int(starts[structure]))


def concatenate(parts: Sequence[P]) -> P:
    """Packed corpora of one kind and one vocabulary (the last part's, which extends the others'), one after another."""
    if any(not part.features.is_binary for part in parts):
        parts = [replace(part, features=_with_values(part.features)) for part in parts]
    merged: dict[str, NDArray[Any]] = {}
    every = [part.arrays() for part in parts]
    for name in every[0]:
        pieces = [arrays[name] for arrays in every]
        if name == "starts" or name.endswith("indptr"):
            shifts = offsets_from_lengths([int(piece[-1]) for piece in pieces])[:-1]
            rebased = [piece[1:] + shift for piece, shift in zip(pieces, shifts, strict=True)]
            merged[name] = np.concatenate([np.zeros(1, np.int64), *rebased])
        else:
            merged[name] = np.concatenate(pieces)
    return type(parts[0]).from_arrays(merged, parts[-1].vocabulary)


def _with_values(features: Features) -> Features:
    return features if features.values is not None else replace(features, values=np.ones(len(features.indices)))
