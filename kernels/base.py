"""What a kernel is: a frozen record of parameters that turns two packed corpora into a tile.

A *position kernel* gives one row per position (token, node), a *structure kernel* one row per structure.
Knows no Dask, no Zarr, no files.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.errors import PackingError
from gramline.kernels.packing import Floats, Offsets, Packable, Packed, pack_pair
from gramline.kernels.parameters import Record
from gramline.kernels.tiles import Tile


class Kernel(Record):
    """A positive semidefinite similarity between structures or between their positions."""

    what: ClassVar[str] = "a kernel such as SequenceLabeling()"
    packed_kind: ClassVar[str]  # the `kind` of packed corpus it reads
    per_position: ClassVar[bool]  # True: a row per position; False: a row per structure

    def prepare(self, packed: Packed, like: Packed | None = None) -> Packed:  # noqa: ARG002
        """`packed` with everything resolved that the tiles need (observation codes, prior).

        `like` is the prepared training corpus when `packed` holds new structures. Checks the kind; a kernel
        extends it. What it returns is what stores keep and `tile` reads.
        """
        self.require_kind(packed)
        return packed

    def require_kind(self, packed: Packed) -> None:
        """Refuse a corpus of another kind of structure."""
        if packed.kind != self.packed_kind:
            raise PackingError(f"{type(self).__name__} compares {self.packed_kind}, but the corpus holds {packed.kind}")

    def check_prepared(self, packed: Packed) -> None:
        """Refuse a stored corpus of another kind; a kernel with an alphabet of its own also checks the codes."""
        if packed.kind != self.packed_kind:
            raise PackingError(f"the kernel {self.name} compares {self.packed_kind}, not {packed.kind}")

    @abstractmethod
    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        """Kernel values between all rows of two prepared corpora, computed in float64, stored as `dtype`.

        Shape (row_count(rows), row_count(cols)). Raises KernelOverflowError instead of returning inf or nan.
        `memory` is reused where given: a C-contiguous array of `dtype`, as large or larger. The tile is then a view of
        its first rows and columns; the others hold anything. New memory takes as long as a third of a tile.
        """

    @abstractmethod
    def diagonal(self, packed: Packed) -> Floats:
        """k(x, x) of every row of a prepared corpus."""

    def label_matrix(self) -> Floats | None:
        """The label kernel k_y, shape (n_labels, n_labels); None for the identity."""
        return None

    def row_lengths(self, packed: Packed) -> Offsets:
        """How many rows each structure has in the Gram matrix."""
        return packed.lengths if self.per_position else np.ones(len(packed), np.int64)

    def prepared_pair(
        self, corpus: Packable | Packed, other: Packable | Packed | None = None
    ) -> tuple[Packed, Packed | None]:
        """Both corpora packed in one vocabulary and prepared; the second in terms of the first."""
        rows, cols = pack_pair(corpus, other)
        ready = self.prepare(rows)
        return ready, None if cols is None else self.prepare(cols, like=ready)

    def gram(self, corpus: Packable | Packed, other: Packable | Packed | None = None) -> Tile:
        """The whole Gram matrix in memory, rows in corpus order: for data that fits."""
        rows, cols = self.prepared_pair(corpus, other)
        return self.tile(rows, rows if cols is None else cols)
