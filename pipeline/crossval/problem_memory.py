"""What one problem holds in memory, by the method that its learner was told to use. Plain arithmetic.

Tested in tests/pipeline/crossval/test_problem_memory.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from gramline.learners.estimator import Learner
from gramline.pipeline.errors import PlanError
from gramline.pipeline.gram.cholesky import plan_factor
from gramline.pipeline.gram.plan import ThreadLimit, megabytes
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.models.training import chosen_rank, low_rank_bytes, vector_bytes

DENSE_COPIES = 4  # n x n matrices in float64 that a learner without `fit_many` holds at its worst
STREAMED_TILES = 3  # in memory while columns of the low rank are read


@dataclass(frozen=True)
class ProblemSize:
    """A setting on a fold: all rows of its store, the labels, and the positions that are held out."""

    store: TileStore
    n_rows: int
    n_labels: int
    n_held: int

    @property
    def held_bytes(self) -> int:
        """Of the columns of held-out positions, and of a copy while they are used."""
        return 8 * self.n_rows * 2 * self.n_held


def factor_limit(learner: Learner, size: ProblemSize, limit: ThreadLimit) -> int:
    """Bytes that a factorisation may take in memory, 0 where all go by tiles; PlanError where no way fits."""
    need = problem_bytes(learner, size)
    if need <= limit.n_bytes:
        return limit.n_bytes // 2
    advice = "use fewer structures or a learner that streams"
    rank = chosen_rank(learner)
    if rank is not None:
        advice = f"use a rank below {rank:,} or fewer structures"
    elif learner.factors_by_tiles:
        need = tiled_problem_bytes(size)
        advice = "use fewer structures, a Nystrom approximation or a learner that streams"
    if need > limit.n_bytes:
        raise PlanError(
            f"a fold over {size.n_rows:,} rows needs about {megabytes(need)}, more than the {megabytes(limit.n_bytes)} "
            f"{limit.whose} may use",
            advice=advice,
        )
    return 0


def problem_bytes(learner: Learner, size: ProblemSize) -> int:
    """Memory of one problem without tiles of factors: of a low rank, or of a learner that holds its Gram matrix."""
    rank = chosen_rank(learner)
    if rank is None:
        return DENSE_COPIES * 8 * size.n_rows**2
    # Factors of the training are gone before the held-out columns are read.
    training = low_rank_bytes(size.n_rows, rank, size.n_labels)
    streamed = STREAMED_TILES * size.store.tiles.tile_bytes
    return max(training, size.held_bytes) + streamed + vector_bytes(size.n_rows, size.n_labels)


def tiled_problem_bytes(size: ProblemSize) -> int:
    """Memory of a problem whose factorisations go by tiles: a block column, the held-out columns, and vectors."""
    peak = plan_factor(size.store, size.n_rows, 0).peak_bytes
    return peak + size.held_bytes + vector_bytes(size.n_rows, size.n_labels)
