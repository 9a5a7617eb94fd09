"""G @ W from stored tiles, one tile at a time: which tiles are needed, and what each of them adds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.errors import LearnerError
from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.gram.stream import Key

STRIP_BYTES = 1 << 21  # of a tile in the product's precision: stays in the cache for both products


class TileProduct:
    """The sum of tile products for G @ W, or G.T @ W; thin matrices are kept transposed, (k, n), for BLAS' sake.

    A strip of rows of a tile is turned into the precision of W once, and multiplied from both sides while it is in
    the cache: out[i] += T W[j], and for a mirrored tile out[j] += T^T W[i].
    """

    def __init__(self, layout: GramLayout, W: NDArray[Any], *, transpose: bool = False) -> None:
        self._layout = layout
        self._forward = layout.is_symmetric or not transpose  # out[i] += T W[j]
        self._backward = layout.is_symmetric or transpose  # out[j] += T^T W[i]
        n_out, n_in = layout.shape if self._forward else layout.shape[::-1]
        if W.ndim != 2 or len(W) != n_in:
            raise LearnerError(f"the matrix to multiply has shape {W.shape}, but it needs {n_in} rows")
        precision = np.float32 if W.dtype == np.float32 else np.float64
        self._thin: NDArray[Any] = np.ascontiguousarray(W.T, precision)  # shape (k, n_in)
        self._out = np.zeros((W.shape[1], n_out))
        self._filled = _filled_blocks(layout.cols if self._forward else layout.rows, self._thin)
        self._strip: NDArray[Any] = np.empty(0, precision)

    def tiles(self) -> list[Key]:
        """Stored tiles that meet a row of W that is not zero, in row order."""
        return [(i, j) for i, j in self._layout.tiles() if self._needs_forward(j) or self._needs_backward(i, j)]

    def _needs_forward(self, j: int) -> bool:
        return self._forward and bool(self._filled[j])

    def _needs_backward(self, i: int, j: int) -> bool:
        return self._backward and bool(self._filled[i]) and not (self._layout.is_symmetric and i == j)

    def add(self, i: int, j: int, tile: NDArray[Any]) -> None:
        """Add what stored tile (i, j) contributes."""
        rows, cols = self._layout.rows.rows(i), self._layout.cols.rows(j)
        forward, backward = self._needs_forward(j), self._needs_backward(i, j)
        step = max(16, STRIP_BYTES // (self._thin.itemsize * max(1, tile.shape[1])))
        right = np.ascontiguousarray(self._thin[:, cols]) if forward else self._thin[:, :0]
        below = np.zeros((len(self._thin), tile.shape[1])) if backward else None
        for first in range(0, len(tile), step):
            strip = self._converted(tile[first : first + step])
            here = slice(rows.start + first, rows.start + first + len(strip))
            if forward:
                self._out[:, here] += right @ strip.T
            if below is not None:
                below += self._thin[:, here] @ strip
        if below is not None:
            self._out[:, cols] += below

    def _converted(self, part: NDArray[Any]) -> NDArray[Any]:
        if part.dtype == self._thin.dtype:
            return part
        if self._strip.size < part.size:
            self._strip = np.empty(part.size, self._thin.dtype)
        strip = self._strip[: part.size].reshape(part.shape)
        np.copyto(strip, part, casting="same_kind")
        return strip

    def result(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._out.T)


def _filled_blocks(layout: BlockLayout, thin: NDArray[Any]) -> NDArray[np.bool_]:
    """Which blocks of W have a row that is not zero, shape (n_blocks,)."""
    filled: NDArray[np.bool_] = np.any(thin, axis=0)
    return np.array([bool(filled[layout.rows(block)].any()) for block in range(layout.n_blocks)], np.bool_)
