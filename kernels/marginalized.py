"""What the position labeling kernels share: parameters, prior, marginal factor, and the walk over a tile in strips.

    K(tau,t,a,b) = G(tau,t) P'(a|tau) P(b|t) ky(a,b)          G = c^2 kx (1+U') (1+D')          kap = c^2 kx (P'^T ky P)

With `reach` kap = reach * labels * kx (P'^T ky P): reach * kx under a uniform prior, whatever the number of labels.

A family (sequences, trees, DAGs) adds only its `Recursion`: how U' and D' follow from kap.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels._jit import jit
from gramline.kernels.base import Kernel, Tile, is_same, mirror, row_strips, tile_memory
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.matrices import Matrix, SquareMatrix
from gramline.kernels.observations.base import Identity, ObservationKernel
from gramline.kernels.packing import Floats, Packable, Packed, frozen
from gramline.kernels.parameters import Positive, Weight
from gramline.kernels.priors import Prior, UniformPrior
from gramline.kernels.value_kinds import Refused

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
    """Row structures first..last-1 against all columns, as the compiled sweeps read them; kap = factor * weights."""

    first: int
    last: int
    kx: Floats  # shape (n_rows, n_cols)
    weights: Floats  # of the same shape; `kx` itself under a uniform prior
    factor: float
    scale: float  # c^2
    limit: float  # the largest number that `out` holds
    out: Tile  # at least as wide as `kx`


class Recursion(Protocol):
    """U' and D' of one tile, prepared once (masks, orders); run strip by strip."""

    def run(self, strip: Strip) -> bool:
        """Write G = c^2 kx (1+U') (1+D') of a strip into `strip.out`; True if every value is within its limit."""
        ...


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
    def recursion(self, rows: Packed, cols: Packed) -> Recursion:
        """The continuation sums between two prepared corpora."""

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
        observed = self.observation.strips(rows, cols)
        recursion = self.recursion(rows, cols)
        marginals = Marginals(rows, cols, self.label_matrix())
        factor = self.link(rows.n_labels) * marginals.factor
        scale, limit = float(self.c) ** 2, float(np.finfo(out.dtype).max)
        strips = list(row_strips(rows.starts, n_cols))
        longest = max((int(rows.starts[last] - rows.starts[first]) for first, last in strips), default=0)
        kx = np.empty((longest, n_cols))
        weights = kx if marginals.is_uniform else np.empty_like(kx)
        for first, last in strips:
            low, high = int(rows.starts[first]), int(rows.starts[last])
            observed.fill(low, high, kx[: high - low])
            marginals.weigh(low, high, kx, weights)
            arrays = kx[: high - low], weights[: high - low]
            if not recursion.run(Strip(first, last, *arrays, factor, scale, limit, out[low:high])):
                raise self.overflow_in(rows, cols, (first, last), out.dtype)
        if is_same(rows, cols):
            mirror(out)
        return out[:, :n_cols]

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
        advice = f"lower {self.growing()}, normalize the observation kernel or use shorter structures"
        if dtype == np.float32:
            advice += ", or store the tiles as float64"
        pairs = list(product(range(*strip), range(len(cols))))
        overflowing = pairs[0]
        if len(pairs) > 1:
            overflowing = next((pair for pair in pairs if not self._fits(rows, cols, pair, dtype)), overflowing)
        return KernelOverflowError(type(self).__name__, *overflowing, dtype.name, advice).at(owner=type(self))

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


class MarginalTables(NamedTuple):
    """P'^T ky P as factor * left . right, or as `factor` alone where the tables are empty: for compiled loops."""

    left: Floats  # shape (n_rows, n_labels), or (0, 0)
    right: Floats  # shape (n_cols, n_labels), or (0, 0)
    factor: float


class Marginals:
    """P'^T ky P between the positions of two corpora: one number when both priors are uniform, else left . right.

    Its arrays are read-only in every case, so the loops are compiled once.
    """

    def __init__(self, rows: Packed, cols: Packed, label_kernel: Floats | None) -> None:
        self.is_uniform = rows.prior is None and cols.prior is None
        self.factor = 1.0
        self.left = self.right = frozen(np.empty((0, 0)), np.float64)  # (n_rows, n_labels) and (n_cols, n_labels)
        if not self.is_uniform:
            left = prior_table(rows)
            self.left = frozen(left if label_kernel is None else left @ label_kernel, np.float64)
            self.right = frozen(prior_table(cols), np.float64)
        elif label_kernel is None:
            self.factor = 1.0 / rows.n_labels
        else:
            self.factor = float(label_kernel.sum()) / rows.n_labels**2

    @cached_property
    def by_label(self) -> Floats:
        """`right` with a line per label, shape (n_labels, n_cols)."""
        return frozen(self.right.T, np.float64)

    def weigh(self, low: int, high: int, kx: Floats, weights: Floats) -> None:
        """weights = kx * (P'^T ky P) for row positions low..high-1; nothing to do when uniform."""
        if not self.is_uniform:
            multiply_marginals(self.left[low:high], self.by_label, kx, weights)


@jit
def multiply_marginals(left: Floats, right: Floats, kx: Floats, weights: Floats) -> None:
    """weights[i, t] = kx[i, t] * sum_y left[i, y] right[y, t], float64; kx and weights may have more rows."""
    n_rows, n_labels = left.shape
    n_cols = right.shape[1]
    for i in range(n_rows):
        for t in range(n_cols):
            weights[i, t] = left[i, 0] * right[0, t]
        for y in range(1, n_labels):
            share = left[i, y]
            for t in range(n_cols):
                weights[i, t] += share * right[y, t]
        for t in range(n_cols):
            weights[i, t] *= kx[i, t]


def prior_table(packed: Packed) -> Floats:
    """P(y|x) of a prepared corpus, also when it is uniform; shape (n, n_labels)."""
    if packed.prior is not None:
        return packed.prior
    return np.full((packed.n_positions, packed.n_labels), 1.0 / packed.n_labels)
