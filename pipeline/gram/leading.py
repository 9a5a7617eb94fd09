"""The leading structures of a stored Gram matrix, seen as a Gram matrix of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramline.learners.operators.layout import BlockLayout, GramLayout
from gramline.pipeline.errors import StoreError
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import GramStatus, StoredGram


class LeadingGram(StoredGram):
    """The first `n_structures` of a symmetric store; they must end where a block ends, as an appended corpus begins."""

    def __init__(self, store: TileStore, n_structures: int) -> None:
        super().__init__(store)
        rows = store.layout.rows
        ends = np.flatnonzero(rows.block_structures == n_structures)
        if not store.layout.is_symmetric or len(ends) == 0:
            raise StoreError(f"{store.url} has no block that ends after structure {n_structures}")
        n_blocks = int(ends[0])
        self._layout = GramLayout.symmetric(
            BlockLayout(rows.lengths[:n_structures], rows.block_structures[: n_blocks + 1], rows.block_rows)
        )

    @property
    def layout(self) -> GramLayout:
        return self._layout

    def status(self) -> GramStatus:
        n_blocks = self._layout.rows.n_blocks
        own = sum(i < n_blocks and j < n_blocks for i, j in self.store.present())
        return replace(super().status(), n_present=own, stored_bytes=own * self.store.tiles.tile_bytes)
