"""Memory for one computed tile after the other; tested with the operators that use it, in test_lazy_scores.py."""

from __future__ import annotations

from threading import local

import numpy as np
from numpy.typing import NDArray

from gramline.learners.arrays import Tile


class TileMemory(local):
    """Grows to the largest tile; new memory for every tile costs a third of computing it. Every thread has its own."""

    def __init__(self, dtype: np.dtype[np.generic]) -> None:
        self._flat: NDArray[np.generic] = np.empty(0, dtype)

    def of(self, n_rows: int, n_cols: int) -> Tile:
        """Room of that shape, C-contiguous; what was lent before is overwritten."""
        if self._flat.size < n_rows * n_cols:
            self._flat = np.empty(n_rows * n_cols, self._flat.dtype)
        return self._flat[: n_rows * n_cols].reshape(n_rows, n_cols)  # type: ignore[return-value]
