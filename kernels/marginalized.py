"""What the position labeling kernels share: parameters, prior, marginal factor, and the walk over a tile in strips.

    K(tau,t,a,b) = G(tau,t) P'(a|tau) P(b|t) ky(a,b)          G = c^2 kx (1+U') (1+D')          kap = c^2 kx (P'^T ky P)

With `reach` kap = reach * labels * kx (P'^T ky P): reach * kx under a uniform prior, whatever the number of labels.

A family (sequences, trees, DAGs) adds only its `Recursion`: how U' and D' follow from kap.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gramline.kernels.base import Kernel, Tile, is_same, mirror, require_fit, row_strips, tile_memory
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.marginals import Marginals, marginal_factor, prior_table
from gramline.kernels.matrices import Matrix, SquareMatrix
from gramline.kernels.observations.base import Identity, ObservationKernel, OrderedStrips, Strips
from gramline.kernels.observations.indexed import IndexedFeatures
from gramline.kernels.packing import Floats, Offsets, Packable, Packed
from gramline.kernels.parameters import Positive, Weight
from gramline.kernels.priors import Prior, UniformPrior
from gramline.kernels.value_kinds import Refused

SINGLE = np.finfo(np.float32)
EIGENVALUE_TOLERANCE = 1e-10


class SemidefiniteMatrix(SquareMatrix):
    """A symmetric positive semidefinite matrix."""

    def plain(self, value: Any) -> tuple[tuple[float, ...], ...]:
        matrix = super().plain(value)
        array = np.array(matrix)
        if not array.size:
            raise Refused("is empty", "give one row and column per label")
        if not np.allclose(array, array.T, rtol=1e-12, atol=0):
            raise Refused("is not symmetric", "a label kernel must be")
        eigenvalues = np.linalg.eigvalsh(array)
        if eigenvalues[0] < -EIGENVALUE_TOLERANCE * max(abs(eigenvalues[-1]), abs(eigenvalues[0])):
            raise Refused(
                f"is not positive semidefinite (smallest eigenvalue {eigenvalues[0]:.6g})",
                "add that much to its diagonal, or use another label kernel",
            )
        return matrix


Observation = Annotated[ObservationKernel, "k_x: how two observations are compared"]
LabelPrior = Annotated[Prior, "what is known of a position's label beforehand"]
LabelKernel = Annotated[
    Matrix | None, SemidefiniteMatrix(), "k_y: labels x labels, positive semidefinite; none is the identity"
]
Reach = Annotated[
    Positive | None,
    "weight of one matching neighbour, times its k_x, whatever the number of labels; in place of c^2 / labels",
]


class Strip(NamedTuple):
    """Row structures first..last-1 against all columns, as the compiled sweeps read them; kap = factor * weights.

    All but `out` is of the precision of the recursion: float32 only where `out` is float32, too.
    """

    first: int
    last: int
    kx: NDArray[Any]  # shape (n_rows, n_cols); columns as the recursion wants them
    weights: NDArray[Any]  # of the same shape; `kx` itself under a uniform prior
    factor: np.floating[Any]
    scale: np.floating[Any]  # c^2
    limit: np.floating[Any]  # the largest number that `out` holds
    out: Tile  # at least as wide as the tile; columns in their own order


class Recursion(Protocol):
    """U' and D' of one tile, prepared once (masks, orders); run strip by strip."""

    @property
    def columns(self) -> Offsets | None:
        """Which columns of the tile it wants as those of `kx` and `weights`, perhaps some twice; None: as they are."""
        ...

    def run(self, strip: Strip) -> bool:
        """Write G = c^2 kx (1+U') (1+D') of a strip into `strip.out`; True if every value is within its limit."""
        ...


class Work(NamedTuple):
    """What one tile is made of, all in the precision of its arithmetic."""

    rows: Packed
    cols: Packed  # in the order of the recursion
    precision: type[np.floating[Any]]
    recursion: Recursion
    observed: Strips
    marginals: Marginals
    factor: np.floating[Any]
    scale: np.floating[Any]
    limit: np.floating[Any]


class PositionLabeling(Kernel):
    """A marginalized labeling kernel between positions; a subclass is a frozen dataclass with these fields."""

    per_position: ClassVar[bool] = True

    c: Weight
    observation: Observation
    prior: LabelPrior
    label_kernel: LabelKernel

    def link(self, n_labels: int) -> float:  # noqa: ARG002 - a kernel with a reach needs it
        """kap / (kx P'^T ky P): the weight of a neighbour before its k_x and what is known of its label."""
        return float(self.c) ** 2

    @abstractmethod
    def recursion(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> Recursion:
        """The continuation sums between two prepared corpora, in arithmetic of `precision`."""

    def prepare(self, packed: Packed, like: Packed | None = None) -> Packed:
        packed = super().prepare(packed, like)
        if self.label_kernel is not None and len(self.label_kernel) != packed.n_labels:
            raise PackingError(
                f"{type(self).__name__}.label_kernel compares {len(self.label_kernel)} labels, but the corpus has "
                f"{packed.n_labels}",
                advice="give a row and a column per label, or fix the labels of the corpus",
                owner=type(self),
            )
        return replace(packed, codes=self.observation.encode(packed), prior=self.prior.resolve(packed, like))

    def check_prepared(self, packed: Packed) -> None:
        super().check_prepared(packed)
        self.observation.check_codes(packed)

    def label_matrix(self) -> Floats | None:
        return None if self.label_kernel is None else np.array(self.label_kernel)

    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        n_cols = cols.n_positions
        out = tile_memory(rows.n_positions, n_cols, dtype, memory)
        is_single = out.dtype == np.float32 and self.is_single(rows, cols)
        work = self.work(rows, cols, out.dtype, np.float32 if is_single else np.float64)
        for strip in self.fill(work, out):
            if not is_single:
                raise self.overflow_in(rows, cols, strip, out.dtype)
            self.mend(rows, cols, strip, out)
        if not self.is_mirrored(work) and is_same(rows, cols):
            mirror(out)
        return out[:, :n_cols]

    def is_mirrored(self, work: Work) -> bool:  # noqa: ARG002 - a kernel that is needs it
        """Whether values are the same bit for bit with rows and columns swapped: every operation on both commutes."""
        return False

    def is_single(self, rows: Packed, cols: Packed) -> bool:
        """Whether float32 tiles are computed in float32: where nothing is negative, rounding errors stay small.

        Asks the kernel and not the numbers: a value must not depend on the other structures of its tile.
        """
        known = float(self.c) ** 2, self.link(rows.n_labels) * marginal_factor(rows, cols, self.label_matrix())
        return (
            self.observation.is_never_negative(rows, cols)
            and (self.label_kernel is None or bool(np.min(self.label_kernel) >= 0))
            and all(SINGLE.tiny <= number <= SINGLE.max for number in known)
        )

    def work(self, rows: Packed, cols: Packed, dtype: np.dtype[Any], precision: type[np.floating[Any]]) -> Work:
        """Everything prepared to fill a tile of `dtype`, in arithmetic of `precision`."""
        recursion = self.recursion(rows, cols, precision)
        order = recursion.columns
        ordered = cols if order is None else in_order(cols, order)
        if order is not None and isinstance(cols.features, IndexedFeatures):  # a new order would need a new index
            observed: Strips = OrderedStrips(self.observation.strips(rows, cols, precision), order, precision)
        else:
            observed = self.observation.strips(rows, ordered, precision)
        marginals = Marginals(rows, ordered, self.label_matrix(), precision)
        factor, scale, limit = self.link(rows.n_labels) * marginals.factor, float(self.c) ** 2, np.finfo(dtype).max
        numbers = (precision(number) for number in (factor, scale, limit))
        return Work(rows, ordered, precision, recursion, observed, marginals, *numbers)

    def fill(self, work: Work, out: Tile) -> Iterator[tuple[int, int]]:
        """Write the tile strip by strip; yields strips (first, last) of row structures with values that do not fit."""
        starts, n_cols, marginals = work.rows.starts, work.cols.n_positions, work.marginals
        strips = list(row_strips(starts, n_cols))
        longest = max((int(starts[last] - starts[first]) for first, last in strips), default=0)
        kx = np.empty((longest, n_cols), work.precision)
        weights = kx if marginals.is_uniform else np.empty_like(kx)
        for first, last in strips:
            low, high = int(starts[first]), int(starts[last])
            work.observed.fill(low, high, kx[: high - low])
            marginals.weigh(low, high, kx, weights)
            arrays = kx[: high - low], weights[: high - low]
            if not work.recursion.run(Strip(first, last, *arrays, work.factor, work.scale, work.limit, out[low:high])):
                yield first, last

    def mend(self, rows: Packed, cols: Packed, strip: tuple[int, int], out: Tile) -> None:
        """Compute pairs of a strip again that are not finite in float32: what overflows on the way may fit at its end.

        Pair by pair, each alone first: beside one that overflows, its neighbours in the tile are not finite, either.
        """
        for row, col in product(range(*strip), range(len(cols))):
            block = out[rows.starts[row] : rows.starts[row + 1], cols.starts[col] : cols.starts[col + 1]]
            if np.isfinite(block).all():
                continue
            try:
                if len(rows) == len(cols) == 1:
                    exact = self.tile(rows, cols)
                    require_fit(np.abs(exact), out.dtype, type(self).__name__, "")
                    block[:] = exact
                else:
                    block[:] = self.tile(rows.structures(row, row + 1), cols.structures(col, col + 1), out.dtype)
            except KernelOverflowError:
                raise self.overflow(row, col, out.dtype) from None

    def diagonal(self, packed: Packed) -> Floats:
        result = np.empty(packed.n_positions)
        for number in range(len(packed)):
            one = packed.structures(number, number + 1)
            result[packed.starts[number] : packed.starts[number + 1]] = self.tile(one, one).diagonal()
        return result

    def full(self, corpus: Packable | Packed, other: Packable | Packed | None = None) -> Floats:
        """K(tau,t,a,b) between all positions and labels, shape (n, m, n_labels, n_labels): for looking, small data."""
        rows, cols = self.prepared_pair(corpus, other)
        cols = rows if cols is None else cols
        label_kernel = self.label_matrix()
        ky = np.eye(rows.n_labels) if label_kernel is None else label_kernel
        row_prior, col_prior = prior_table(rows), prior_table(cols)
        marginals = np.einsum("ra,cb,ab->rcab", row_prior, col_prior, ky)
        result: Floats = self.tile(rows, cols)[:, :, None, None] * marginals
        return result

    def growing(self) -> str:
        """The parameter that makes values grow with the length of a match, for messages."""
        return "c"

    def overflow_in(
        self, rows: Packed, cols: Packed, strip: tuple[int, int], dtype: np.dtype[Any]
    ) -> KernelOverflowError:
        """The error naming the first pair of row structures strip[0]..strip[1]-1 with a column that does not fit.

        Tries pair by pair: a strip does not say which of its pairs overflows.
        """
        pairs = list(product(range(*strip), range(len(cols))))
        overflowing = pairs[0]
        if len(pairs) > 1:
            overflowing = next((pair for pair in pairs if not self._fits(rows, cols, pair, dtype)), overflowing)
        return self.overflow(*overflowing, dtype)

    def overflow(self, row: int, column: int, dtype: np.dtype[Any]) -> KernelOverflowError:
        """The error naming a pair of structures."""
        advice = f"lower {self.growing()}, normalize the observation kernel or use shorter structures"
        if dtype == np.float32:
            advice += ", or store the tiles as float64"
        return KernelOverflowError(type(self).__name__, row, column, dtype.name, advice).at(owner=type(self))

    def _fits(self, rows: Packed, cols: Packed, pair: tuple[int, int], dtype: np.dtype[Any]) -> bool:
        row, col = pair
        try:
            self.tile(rows.structures(row, row + 1), cols.structures(col, col + 1), dtype)
        except KernelOverflowError:
            return False
        return True


class ReachingLabeling(PositionLabeling):
    """A labeling kernel whose features have several positions; a subclass has these fields too."""

    added: ClassVar[tuple[str, ...]] = ("reach",)

    reach: Reach

    def reaching(self, reach: float | None) -> Self:
        """The same kernel with another reach."""
        return type(self)(**self.get_params() | {"reach": reach})

    def link(self, n_labels: int) -> float:
        return super().link(n_labels) if self.reach is None else float(self.reach) * n_labels

    def growing(self) -> str:
        return "c" if self.reach is None else "reach"


@dataclass(frozen=True)
class LinkedLabeling(ReachingLabeling):
    """A labeling kernel between nodes that links connect."""

    c: Annotated[Weight, "weight of every node"] = 1.0
    observation: Observation = field(default_factory=Identity)
    prior: LabelPrior = field(default_factory=UniformPrior)
    label_kernel: LabelKernel = None
    reach: Reach = None


def in_order(packed: Packed, order: Offsets) -> Packed:
    """Some of its positions as one structure, for observation kernels and priors alone: links stay behind."""
    moved: dict[str, Any] = {
        name: None if (array := getattr(packed, name)) is None else array[order]
        for name in ("symbols", "labels", "codes", "prior")
    }
    features = packed.features
    if not isinstance(features, IndexedFeatures):
        features = features.take(order)
    return replace(packed, starts=np.array([0, len(order)]), features=features, table=None, **moved)
