"""Labels as strings, one list per structure, to integer codes in Gram row order and back.

None is a position without a label; a whole structure may be None. Every error names the structure and the position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Indices, WideCodes
from gramline.learners.errors import LabelError
from gramline.learners.estimator import is_listed
from gramline.learners.operators.operator import GramOperator

Labels = Iterable[Sequence[str | None] | None]  # one sequence per structure
Name = TypeVar("Name", str, str | None)


def encode_labels(gram: GramOperator, labels: Labels) -> tuple[WideCodes, tuple[str, ...]]:
    """(codes, names): one code per Gram row, MISSING where there is no label, and the name of every code.

    The names are those of the Gram; the given labels, sorted, when it knows none.
    """
    structures = label_lists(labels, gram.layout.rows.lengths)
    given = {label for structure in structures for label in structure if label is not None}
    if not given:
        raise LabelError("no position has a label", advice="a learner needs at least one labeled position")
    names = tuple(sorted(given)) if gram.label_names is None else tuple(gram.label_names)
    if unknown := first_unknown_label(structures, names):
        structure, position, label = unknown
        raise LabelError(
            f"the label {label!r} is unknown to the Gram matrix, which knows {_listing(names)}",
            advice="build it from a corpus that has this label",
            structure=structure,
            position=position,
        )
    _check_sizes(gram, names)
    code_of: dict[str | None, int] = {name: code for code, name in enumerate(names)} | {None: MISSING}
    every = (code_of[label] for structure in structures for label in structure)
    return np.fromiter(every, np.int64, gram.shape[0]), names


def decode_labels(codes: NDArray[np.integer], names: Sequence[Name], lengths: NDArray[np.integer]) -> list[list[Name]]:
    """One list of names per structure from one code per row."""
    flat = list(map(names.__getitem__, codes.tolist()))
    return [flat[first:last] for first, last in pairwise(offsets_from_lengths(lengths).tolist())]


def label_lists(labels: Labels, lengths: Indices, what: str = "label") -> list[list[str | None]]:
    """One checked list of labels for every structure of these lengths, None where there is no label."""
    if not is_listed(labels):
        raise LabelError(f"{what}s must be one list of strings per structure, got {labels!r}")
    structures = list(labels)
    if len(structures) != len(lengths):
        raise LabelError(f"there are {len(lengths)} structures, but {what}s for {len(structures)}")
    lists: list[list[str | None]] = []
    for number, (structure, length) in enumerate(zip(structures, lengths.tolist(), strict=True)):
        try:
            lists.append([None] * length if structure is None else _label_list(structure, length, what))
        except LabelError as error:
            raise error.at(structure=number) from None
    return lists


def _label_list(labels: Any, length: int, what: str) -> list[str | None]:
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        advice = "give a list of strings, None where there is none"
        raise LabelError(f"{labels!r} is no list of {what}s", advice=advice)
    if len(labels) != length:
        raise LabelError(f"{len(labels)} {what}s for {length} positions")
    for position, label in enumerate(labels):
        if label is not None and not isinstance(label, str):
            advice = f"{what}s are strings, or None where there is none"
            raise LabelError(f"the {what} is {label!r}", advice=advice, position=position)
    return list(labels)


def first_unknown_label(labels: Sequence[Sequence[str | None]], known: Iterable[str]) -> tuple[int, int, str] | None:
    """(structure, position, label) of the first label that is not among the known ones."""
    names = {None, *known}
    for structure, row in enumerate(labels):
        for position, label in enumerate(row):
            if label not in names:
                return structure, position, str(label)
    return None


def _check_sizes(gram: GramOperator, names: tuple[str, ...]) -> None:
    for what, table in (("prior", gram.row_prior), ("label kernel", gram.label_kernel)):
        if table is not None and table.shape[1] != len(names):
            raise LabelError(
                f"the {what} of the Gram matrix has {table.shape[1]} columns, but there are {len(names)} labels "
                f"({_listing(names)})",
                advice="give the Gram matrix its label_names",
            )


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
