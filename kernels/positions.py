"""The kernel between positions that sees no neighbours: for learners that know label chains themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.kernels.base import Tile
from gramline.kernels.errors import PackingError
from gramline.kernels.marginalized import LabelKernel, LabelPrior, Observation, PositionLabeling, Strip, Work
from gramline.kernels.observations.base import inverse_norms
from gramline.kernels.observations.features import Linear
from gramline.kernels.observations.products import PowerStrips, squared_norms, values_of
from gramline.kernels.packing import Features, Floats, Packed, PackedSequences
from gramline.kernels.parameters import Weight
from gramline.kernels.priors import UniformPrior

KINDS = ("sequences", "trees", "dags")


@dataclass(frozen=True)
class PositionKernel(PositionLabeling):
    """G(tau,t) = c^2 kx(tau,t): positions of sequences, trees or graphs, each compared by itself.

    O(1) per pair of positions besides k_x. Positive semidefinite when kx is. Marginalized labeling
    kernel, equation (2), whose features have one position: U' = D' = 0.

    >>> from gramline.kernels import PositionKernel
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["the", "dog"], ["dog"]], [["D", "N"], ["N"]])
    >>> PositionKernel().gram(corpus)
    array([[1., 0., 0.],
           [0., 1., 1.],
           [0., 1., 1.]])
    """

    name: ClassVar[str] = "position"
    summary: ClassVar[str] = "positions by themselves, no neighbours"
    packed_kind: ClassVar[str] = "sequences"

    observation: Observation = field(default_factory=lambda: Linear(normalized=True))
    prior: LabelPrior = field(default_factory=UniformPrior)
    label_kernel: LabelKernel = None
    c: Annotated[Weight, "its square is a factor of every value"] = 1.0

    def require_kind(self, kind: str) -> None:
        if kind not in KINDS:
            raise PackingError(f"PositionKernel compares positions of {', '.join(KINDS)}, but the corpus holds {kind}")

    def units(self, packed: Packed) -> Packed:
        """Every position by itself; what is known of its label beforehand takes no part in its rows."""
        return PackedSequences(
            np.arange(packed.n_positions + 1),
            packed.symbols,
            packed.features,
            packed.labels,
            packed.vocabulary,
            packed.codes,
        )

    def diagonal(self, packed: Packed) -> Floats:
        return float(self.c) ** 2 * self.observation.self_similarity(packed)

    def feature_rows(self, packed: Packed) -> Features | None:
        """The features themselves, times c, for the dot product; normalized where that is."""
        if not isinstance(self.observation, Linear):
            return None
        features = packed.features
        scales = np.full(len(features), float(self.c))
        if self.observation.normalized:
            scales *= inverse_norms(squared_norms(features))
        values = np.repeat(scales, np.diff(features.indptr)) * values_of(features)
        return Features(features.indptr, features.indices, values)

    def recursion(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> NoNeighbours:  # noqa: ARG002
        return NoNeighbours()

    def is_mirrored(self, work: Work) -> bool:
        return isinstance(work.observed, PowerStrips)

    def fill(self, work: Work, out: Tile) -> Iterator[tuple[int, int]]:
        if isinstance(work.observed, PowerStrips) and work.scale == 1:  # such powers fit, and are the values
            work.observed.fill(0, work.rows.n_positions, out)
        else:
            yield from super().fill(work, out)


class NoNeighbours:
    """U' = D' = 0."""

    columns = None

    def run(self, strip: Strip) -> bool:
        return scale_cells(strip.kx, strip.scale, strip.limit, strip.out)


@jit
def scale_cells(kx: NDArray[Any], scale: np.floating[Any], limit: np.floating[Any], out: NDArray[Any]) -> bool:
    """out = scale * kx, `out` perhaps wider; returns whether all of it is within +-limit."""
    n_bad = 0
    for i in range(kx.shape[0]):
        observed, target = kx[i], out[i, : kx.shape[1]]
        for t in range(len(observed)):
            value = scale * observed[t]
            n_bad += not (abs(value) <= limit)
            target[t] = value
    return n_bad == 0
