"""How far a labeling kernel should look: the reach at which context makes a wanted part of the Gram matrix.

    share(reach) = 1 - sum c^2 kx / sum |G|        over pairs of positions of different structures

grows with the reach, so the reach of a wanted share is found by bisection on a sample of the structures. A reach is
taken only as far as the similarity of a structure with itself, which grows fastest, stays below `LARGEST` times k_x.
"""

from __future__ import annotations

from itertools import combinations
from typing import TypeVar

import numpy as np

from gramline.kernels.base import check_kernel
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.marginalized import PositionLabeling, ReachingLabeling
from gramline.kernels.packing import Packable, Packed, pack_pair
from gramline.kernels.positions import PositionKernel

CONTEXT_SHARE = 0.5  # half of what two positions have in common is their own, half their neighbours'
GRID_SHARES = (0.05, 0.2, 0.5, 0.8)
LARGEST = 1e3  # of k(x, x) over k_x(x, x): beyond it large structures are like nothing but themselves; measured
SMALLEST_REACH, LARGEST_REACH = 1e-6, 1e6
STEPS = 24  # of the bisection: a hundredth of a per cent
N_RUNS, RUN_POSITIONS, N_LARGEST = 4, 400, 8  # of the sample

K = TypeVar("K", bound=ReachingLabeling)


class ReachSample:
    """A few runs of structures, compared with each other, and the largest structures, compared with themselves."""

    def __init__(self, kernel: ReachingLabeling, corpus: Packable | Packed) -> None:
        check_kernel(kernel)
        packed = kernel.prepare(pack_pair(corpus, None)[0])
        self.kernel = kernel
        self.pairs = list(combinations(_runs(packed), 2)) or [(packed, packed)]
        longest = np.argsort(packed.lengths, kind="stable")[-N_LARGEST:].tolist()
        self.largest = [packed.structures(number, number + 1) for number in longest]
        alone = PositionKernel(kernel.observation, kernel.prior, kernel.label_kernel, kernel.c)
        self.own_sum = self._total(alone)
        self.own_largest = max(self.largest_value(alone), np.finfo(float).tiny)

    def share(self, kernel: PositionLabeling) -> float:
        """The part of the Gram matrix that context makes; 1 where it overflows, 0 where nothing is alike."""
        try:
            total = self._total(kernel)
        except KernelOverflowError:
            return 1.0
        return 1.0 - self.own_sum / total if total > 0 else 0.0

    def fits(self, kernel: PositionLabeling) -> bool:
        """Whether the largest structures stay comparable with the others."""
        try:
            return self.largest_value(kernel) <= LARGEST * self.own_largest
        except KernelOverflowError:
            return False

    def _total(self, kernel: PositionLabeling) -> float:
        return sum(float(np.abs(kernel.tile(rows, cols)).sum()) for rows, cols in self.pairs)

    def largest_value(self, kernel: PositionLabeling) -> float:
        """k(x, x) at most, of the largest structures; KernelOverflowError where float64 does not hold it."""
        return max(float(np.abs(kernel.diagonal(one)).max()) for one in self.largest)

    def reach(self, share: float) -> float:
        """The largest reach, to three digits, at which context makes at most `share` and nothing grows too large."""
        low, high = np.log(SMALLEST_REACH), np.log(LARGEST_REACH)
        for _ in range(STEPS):
            middle = (low + high) / 2
            kernel = self.kernel.reaching(float(np.exp(middle)))
            if self.share(kernel) <= share and self.fits(kernel):
                low = middle
            else:
                high = middle
        return float(f"{np.exp(low):.3g}")


def context_share(kernel: ReachingLabeling, corpus: Packable | Packed) -> float:
    """Which part of the Gram matrix the neighbours make, on a sample of the structures; between 0 and 1.

    >>> from gramline.kernels import SequenceLabeling, context_share
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "b"], ["a", "b"]])
    >>> round(context_share(SequenceLabeling(reach=0.25), corpus), 2)
    0.2
    """
    return ReachSample(kernel, corpus).share(kernel)


def with_reach(kernel: K, corpus: Packable | Packed, share: float = CONTEXT_SHARE) -> K:
    """The kernel with the reach at which neighbours make `share` of its Gram matrix on this corpus.

    >>> from gramline.kernels import SequenceLabeling, with_reach
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "b"], ["a", "b"]], [["X", "Y"], ["X", "Y"]])
    >>> with_reach(SequenceLabeling(), corpus).reach
    1.0
    """
    reach = ReachSample(kernel, corpus).reach(share)
    return kernel.reaching(reach)


def reach_grid(kernel: K, corpus: Packable | Packed, shares: tuple[float, ...] = GRID_SHARES) -> list[K]:
    """The kernel at the reaches where neighbours make these shares of its Gram matrix: a grid to search.

    >>> from gramline.kernels import SequenceLabeling, reach_grid
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "b"], ["a", "b"]])
    >>> [kernel.reach for kernel in reach_grid(SequenceLabeling(), corpus)]
    [0.0526, 0.25, 1.0, 4.0]
    """
    sample = ReachSample(kernel, corpus)
    reaches = dict.fromkeys(sample.reach(share) for share in shares)
    return [kernel.reaching(reach) for reach in reaches]


def _runs(packed: Packed) -> list[Packed]:
    """Runs of whole structures from evenly spread places, of about RUN_POSITIONS positions each."""
    firsts = np.unique(np.linspace(0, len(packed), N_RUNS, endpoint=False).astype(int)).tolist()
    runs = []
    for first, end in zip(firsts, [*firsts[1:], len(packed)], strict=True):
        last = int(np.searchsorted(packed.starts, packed.starts[first] + RUN_POSITIONS, side="right")) - 1
        runs.append(packed.structures(first, min(max(last, first + 1), end)))
    return runs
