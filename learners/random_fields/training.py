"""Training of conditional random fields: all that share a Gram matrix in step, or one on explicit features."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.checkpoints import Checkpoint
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, solve_together
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.linear_algebra.surviving_solves import Ended, solve_surviving
from gramline.learners.operators.definiteness import not_semidefinite
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.operator import GramOperator
from gramline.learners.random_fields.lbfgs import Minimum, Problem, lbfgs_steps
from gramline.learners.random_fields.likelihood import ChainLikelihood

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROUNDING = 1e-6  # of all squares: a sum below minus this has another cause
ALONE = 1 << 26  # multiplications, some milliseconds: sharing fewer with other threads takes longer than they do
Steps = Generator[Floats, Floats, Minimum]  # yields a, is sent G a, returns the minimum


class Setting(NamedTuple):
    """What a learner was told to minimise, and how far."""

    C: float
    rho: float
    stopping: StoppingRule

    def steps(self, known: Codes, starts: Offsets, n_labels: int, memory: SolveMemory | None = None) -> Steps:
        """The iterations on chains with these labels, negative where there is none."""
        likelihood = ChainLikelihood.of(known, starts, n_labels)
        return lbfgs_steps(Problem(likelihood, self.C, self.rho), len(known), self.stopping, memory)


def train_on_gram(
    gram: GramOperator, every: Sequence[Steps], memories: Sequence[SolveMemory], checkpoint: Checkpoint
) -> list[Minimum]:
    """Iterations until every training has converged, with one product for all of them each.

    `memories` are those of the trainings, in order; none where no checkpoint needs them.
    """
    layout, diagonal = gram.layout.rows, gram.diagonal()
    if len(diagonal) and diagonal.min() < -ROUNDING * np.abs(diagonal).max():
        row = int(diagonal.argmin())
        raise not_semidefinite(f"k(x, x) is {diagonal[row]:g}", row, layout)

    def apply_all(blocks: dict[int, Floats]) -> dict[int, Floats]:
        together = np.hstack(list(blocks.values()))
        is_small = gram.shape[0] * together.size <= ALONE
        with one_blas_thread() if is_small else nullcontext():
            product = np.asarray(gram.matmul(together), np.float64)
        ends = np.cumsum([block.shape[1] for block in blocks.values()])[:-1]
        parts = map(np.ascontiguousarray, np.split(product, ends, axis=1))
        return dict(zip(blocks, parts, strict=True))

    minima = solve_surviving(apply_all, every, memories, checkpoint, Ended(Minimum.state, Minimum.of))
    for minimum in minima:
        _require_semidefinite(minimum.curvatures, layout)
    return minima


def train_on_features(features: csr_array, steps: Steps) -> tuple[Floats, Minimum]:
    """E, shape (n_labels, n_features), and the minimum that it belongs to.

    The iterations are those on the linear kernel G = F F^T, which is never made: every gradient is a sum of features
    of positions, so E = A^T F all the way, and a product with G takes two with F.
    """
    pulled = features.T.tocsr()
    (minimum,) = solve_together(lambda blocks: {0: np.asarray(features @ (pulled @ blocks[0]))}, [steps])
    return np.ascontiguousarray((pulled @ minimum.point.dual).T), minimum


def _require_semidefinite(curvatures: Floats, layout: BlockLayout) -> None:
    if curvatures.sum() < -ROUNDING * np.abs(curvatures).sum():
        raise not_semidefinite("the gradient has a negative squared length", int(curvatures.argmin()), layout)
