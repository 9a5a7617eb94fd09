"""Labels as strings, one list per structure, to integer codes in Gram row order and back.

None is a position without a label; a whole structure may be None. Every error names the structure and the position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import WideCodes
from gramline.learners.errors import LabelError
from gramline.learners.operators.operator import GramOperator
from gramline.learners.parameters import is_listed

Labels = Iterable[Sequence[str | None] | None]  # one sequence per structure


def encode_labels(gram: GramOperator, labels: Labels) -> tuple[WideCodes, tuple[str, ...]]:
    """(codes, names): one code per Gram row, MISSING where there is no label, and the name of every code.

    The names are those of the Gram; the labels found, sorted, when it knows none.
    """
    flat = _flat(gram.layout.rows.lengths, labels)
    found = {label for label in flat if label is not None}
    if not found:
        raise LabelError("no position has a label; a learner needs at least one labeled position")
    names = tuple(sorted(found)) if gram.label_names is None else tuple(gram.label_names)
    code_of = {name: code for code, name in enumerate(names)}
    unknown = found - code_of.keys()
    if unknown:
        row = next(row for row, label in enumerate(flat) if label in unknown)
        raise LabelError(
            f"label {flat[row]!r} at {_where(gram, row)} is unknown to the Gram matrix, "
            f"which knows {_listing(names)}; build it from a corpus that has this label"
        )
    _check_sizes(gram, names)
    codes = np.fromiter((MISSING if label is None else code_of[label] for label in flat), np.int64, len(flat))
    return codes, names


def decode_labels(codes: NDArray[np.integer], names: Sequence[str], lengths: NDArray[np.integer]) -> list[list[str]]:
    """One list of names per structure from one code per row."""
    flat = [names[code] for code in codes]
    return [flat[first:last] for first, last in pairwise(offsets_from_lengths(lengths).tolist())]


def _flat(lengths: NDArray[np.int64], labels: Labels) -> list[str | None]:
    if not is_listed(labels):
        raise LabelError(f"labels must be one list of strings per structure, got {labels!r}")
    structures = list(labels)
    if len(structures) != len(lengths):
        raise LabelError(f"there are labels for {len(structures)} structures, but the Gram matrix has {len(lengths)}")
    flat: list[str | None] = []
    for number, (length, structure) in enumerate(zip(lengths.tolist(), structures, strict=True)):
        if structure is None:
            flat.extend([None] * length)
            continue
        if isinstance(structure, str):
            raise LabelError(f"structure {number} has the string {structure!r} for its labels; give a list of strings")
        if not isinstance(structure, Sequence | np.ndarray):
            raise LabelError(
                f"structure {number} has {structure!r} for its labels; give a list of strings, None where there is none"
            )
        if len(structure) != length:
            raise LabelError(f"structure {number} has {len(structure)} labels, but {length} positions")
        for position, label in enumerate(structure):
            if label is not None and not isinstance(label, str):
                raise LabelError(
                    f"the label at structure {number}, position {position} is {label!r}; "
                    "labels are strings, or None where there is none"
                )
            flat.append(label)
    return flat


def _check_sizes(gram: GramOperator, names: tuple[str, ...]) -> None:
    for what, table in (("prior", gram.row_prior), ("label kernel", gram.label_kernel)):
        if table is not None and table.shape[1] != len(names):
            raise LabelError(
                f"the {what} of the Gram matrix has {table.shape[1]} columns, but there are {len(names)} labels "
                f"({_listing(names)}); give the Gram matrix its label_names"
            )


def _where(gram: GramOperator, row: int) -> str:
    starts = gram.layout.rows.structure_starts
    structure = int(np.searchsorted(starts, row, side="right")) - 1
    return f"structure {structure}, position {row - int(starts[structure])}"


def _listing(names: tuple[str, ...]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
