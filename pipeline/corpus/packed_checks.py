"""Whether flat arrays from a store or a model make up a packed corpus: compiled loops trust them with their addresses.

Offsets begin at 0, never fall and end where their data ends; codes lie in their vocabulary; links stay inside their
structure and never come back to where they began.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING, LinkedPacked, Packed, PackedDags, PackedTagged
from gramline.pipeline.corpus.validation import check_acyclic, check_forest, checked_targets
from gramline.pipeline.errors import CorpusError, StoreError


def checked(packed: Packed) -> Packed:
    """The corpus itself; StoreError for the first array that does not fit the others."""
    n_positions = len(packed.symbols) if packed.symbols.ndim == 1 else -1
    check_offsets("starts", packed.starts, n_positions)
    features = packed.features
    check_offsets("feature_indptr", features.indptr, len(features.indices), n_positions + 1)
    vocabulary = packed.vocabulary
    # A corpus without named features (or symbols) has codes all the same; they are ranks of what was there.
    check_codes("symbols", packed.symbols, n_positions, MISSING, len(vocabulary.symbols))
    check_codes("feature_indices", features.indices, len(features.indices), 0, len(vocabulary.features))
    check_codes("labels", packed.labels, n_positions, MISSING, len(vocabulary.labels))
    if packed.codes is not None:
        check_codes("codes", packed.codes, n_positions, MISSING, None)
    if features.values is not None:
        _check_numbers("feature_values", features.values, (len(features.indices),))
    for name in ("prior", "table"):
        table = getattr(packed, name)
        if table is not None:
            _check_numbers(name, table, (n_positions, packed.n_labels))
    if isinstance(packed, PackedTagged):
        check_codes("tags", packed.tags, n_positions, 0, len(vocabulary.features))
    if isinstance(packed, LinkedPacked):
        _check_links(packed, n_positions)
    return packed


def check_offsets(name: str, offsets: NDArray[Any], end: int, length: int | None = None) -> None:
    """Offsets that divide `end` entries, into `length - 1` parts where that is known."""
    is_sound = (
        offsets.ndim == 1
        and offsets.dtype.kind in "iu"
        and len(offsets) >= 1
        and (length is None or len(offsets) == length)
        and offsets[0] == 0
        and offsets[-1] == end
        and bool((np.diff(offsets) >= 0).all())
    )
    if not is_sound:
        raise StoreError(f"the offsets {name!r} do not fit the {max(end, 0):,} entries they divide")


def check_codes(name: str, codes: NDArray[Any], length: int, lowest: int, count: int | None) -> None:
    """`length` whole numbers from `lowest` to `count - 1`."""
    if codes.ndim != 1 or len(codes) != length or codes.dtype.kind not in "iu":
        raise StoreError(f"the array {name!r} is {codes.dtype} {codes.shape} instead of {length} whole numbers")
    if codes.size and (codes.min() < lowest or (count is not None and codes.max() >= count)):
        place = int(np.argmax((codes < lowest) | (codes >= (np.inf if count is None else count))))
        raise StoreError(f"entry {place} of {name!r} is {codes[place]}, which names nothing")


def _check_numbers(name: str, numbers: NDArray[Any], shape: tuple[int, ...]) -> None:
    if numbers.shape != shape:
        raise StoreError(f"the array {name!r} has the shape {numbers.shape} instead of {shape}")
    if not np.isfinite(numbers).all():
        raise StoreError(f"the array {name!r} holds a value that is not a finite number")


def _check_links(packed: LinkedPacked, n_positions: int) -> None:
    check_offsets("link_indptr", packed.link_indptr, len(packed.link_targets), n_positions + 1)
    if packed.link_targets.ndim != 1:
        raise StoreError(f"the array 'link_targets' has the shape {packed.link_targets.shape}")
    if not n_positions:
        return
    is_graph = isinstance(packed, PackedDags)
    what = "edge" if is_graph else "child"
    try:
        sources, targets = checked_targets(packed.starts, packed.link_indptr, packed.link_targets, what)
        (check_acyclic if is_graph else check_forest)(packed.starts, sources, targets)
    except CorpusError as error:
        raise StoreError(str(error)) from None
