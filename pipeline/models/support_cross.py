"""The Gram matrix between the support of a model and a few new positions, from a support that is indexed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.observations.features import FeatureKernel
from gramline.kernels.observations.indexed import IndexedFeatures
from gramline.kernels.packing import Packed
from gramline.kernels.priors import UniformPrior
from gramline.learners.arrays import Matrix, Tile
from gramline.learners.errors import LearnerError
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.counts import counted
from gramline.learners.operators.layout import BlockLayout

CELLS = 1 << 22  # of a cross that is held whole: 32 MiB
SMALL_PRODUCT = 1 << 18  # multiplications; a larger one is spread over threads, which costs more than it gains here


class IndexedSupport:
    """The support of a model, its features indexed, and how it is laid out."""

    def __init__(self, kernel: Kernel, support: Packed) -> None:
        self.kernel = kernel
        self.packed = replace(support, features=IndexedFeatures.of(support.features))
        self.layout = BlockLayout.of(kernel.row_lengths(support))

    @staticmethod
    def suits(kernel: Kernel) -> bool:
        """Position kernels whose observations need no alphabet of their own."""
        return isinstance(kernel, PositionLabeling) and kernel.observation.alphabet() is None

    @staticmethod
    def reads_symbols(kernel: Kernel) -> bool:
        """Whether it compares whole observations, or counts them."""
        if not isinstance(kernel, PositionLabeling):
            return True
        return not (isinstance(kernel.observation, FeatureKernel) and isinstance(kernel.prior, UniformPrior))

    def is_few(self, new: Packed) -> bool:
        """Whether all of the cross fits into memory that nobody misses."""
        return new.n_positions * max(1, self.packed.n_positions) <= CELLS


class SupportCross(ComputedGram):
    """G between the support and new structures; what a prediction needs of it is computed once, the short way round."""

    def __init__(self, support: IndexedSupport, new: Packed) -> None:
        super().__init__(support.kernel, support.packed, new, row_layout=support.layout)
        self._whole: Tile | None = None  # new positions x support

    def _turned(self) -> Tile:
        """G.T, whole; a kernel is symmetric, and the index is that of the columns."""
        if self._whole is None:
            self._whole = counted(self._kernel.tile(self._cols, self._rows))
        return self._whole

    def matmul(self, W: Matrix, *, transpose: bool = False) -> Matrix:
        if not transpose:
            return super().matmul(W, transpose=False)
        if len(W) != self.shape[0]:
            raise LearnerError(f"the matrix to multiply has {len(W)} rows, but the Gram matrix needs {self.shape[0]}")
        turned = self._turned()
        product = np.zeros((len(turned), *W.shape[1:]))
        step = max(64, SMALL_PRODUCT // max(1, product.size))
        for first in range(0, len(W), step):
            product += turned[:, first : first + step] @ W[first : first + step]
        return product
