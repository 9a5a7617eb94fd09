"""Columns of a tile cut into runs of whole structures, so that the tables of a recursion stay in a fast cache."""

from __future__ import annotations

import numpy as np

from gramline.kernels.packing import Offsets

CHUNK_COLUMNS = 512


def chunk_starts(starts: Offsets, width: int | None = None) -> Offsets:
    """First column of each chunk, and the end; a chunk has at most `width` columns, unless one structure has more."""
    limit = CHUNK_COLUMNS if width is None else width
    cuts = [0]
    structure, n_structures = 0, len(starts) - 1
    while structure < n_structures:
        last = int(np.searchsorted(starts, starts[structure] + limit, side="right")) - 1
        structure = min(max(last, structure + 1), n_structures)
        cuts.append(int(starts[structure]))
    return np.array(cuts, np.int64)
