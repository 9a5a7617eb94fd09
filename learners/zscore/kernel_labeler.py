"""The Z-score labeler on any position kernel: the reduced exact solution with G in place of F F^T.

(G / n + ridge I) [A_0 | a_in | a_out] = [Yc | s_in | s_out] by conjugate gradients over a Gram operator: n + 2
right-hand sides at once, every stored tile read once per iteration; a 2 x 2 system does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.parameters import NonNegative, Positive, Whole
from gramline.kernels.ranges import offsets_from_lengths
from gramline.kernels.value_kinds import Number, Refused
from gramline.learners.arrays import Floats, Offsets
from gramline.learners.chains.labeler import ChainLabeler, cross_scores
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.errors import LearnerParameterError
from gramline.learners.kinds import Progress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels, encode_labels
from gramline.learners.linear_algebra.conjugate_gradient import (
    Solution,
    Solve,
    Status,
    StoppingRule,
    block_cg_steps,
    require_converged,
    solve_together,
)
from gramline.learners.linear_algebra.preconditioner import nystrom_cg_steps
from gramline.learners.operators.checks import check_square
from gramline.learners.operators.operator import GramOperator
from gramline.learners.parameters import Loss, Unlabeled
from gramline.learners.token_features import labeled_structures
from gramline.learners.zscore.transitions import Reduced, hamming_scale, reduce_transitions, training_gain, training_z

CANCELLED = 1e-3  # scores this small beside what they are a difference of are computed by a product instead
ROUNDING = 1e-12  # of sums, relative to the sum of absolute values


class Ridges(Number):
    """A number above 0, without which the system is singular, or a list of at least one of them."""

    def __init__(self) -> None:
        super().__init__(above=0)

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"{super().words}, or a list of them"

    def plain(self, value: Any) -> Any:
        ridges = value if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes) else [value]
        if not len(ridges):
            raise Refused
        for ridge in ridges:
            super().plain(ridge)
        return value

    def works(self, value: Any) -> bool:
        return all(map(super().works, value)) if isinstance(value, Sequence) else super().works(value)

    @property
    def schema(self) -> dict[str, Any]:
        return {"anyOf": [super().schema, {"type": "array", "items": super().schema, "minItems": 1}]}


class KernelZScoreLabeler(ChainLabeler, SharedPassLearner):
    """A = (G / n + ridge)^-1 (Yc - (s_in u^T + s_out v^T) / n^2), emission scores G(new, train) A.

    The Z-score reads the plain kernel G between positions: priors and label kernel of the Gram play no part.
    `ridge` may be a list: all are solved together from one Krylov space, `path_` has a fitted labeler for each, and
    this one is the first of them. `transition_ridge` None: the same as the ridge.

    preconditioner="wide" fills the block of right-hand sides with random columns up to `width`: fewer passes over the
    tiles, for any list of ridges; "nystrom" spends one pass on a rank-`width` picture of G, for a
    single ridge only; "none" leaves the n + 2 columns alone.
    precision="single" multiplies in float32 where the operator can: tiles stored in float32 stream about twice as
    fast, and residuals stop falling near 1e-6.
    A solve that did not converge leaves its `status_`; predicting from it is an error.
    unlabeled="drop" leaves structures out of the training that have an unlabeled position.
    """

    name: ClassVar[str] = "kernel-zscore"
    summary: ClassVar[str] = "the same from any Gram matrix between positions"
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    dual_: Floats  # A, shape (n_rows, n_labels); 0 at rows left out of the training
    z_: float  # Z of the model on its training set; 0 where nothing but rounding tells the labels from any others
    loss_multiplier_: float | None  # alpha of the Hamming version
    status_: str
    iterations_: int
    residual_: Floats  # relative residual of the n + 2 columns
    _path: list[Self]

    def __init__(
        self,
        ridge: Annotated[
            float | Sequence[float], Ridges(), "one number above 0, or a list that is solved for the price of one"
        ] = 1e-2,
        transition_ridge: Annotated[NonNegative | None, "none is the same as the ridge"] = None,
        loss: Loss = "none",
        tolerance: Annotated[Positive, "relative residual of the worst column"] = 1e-8,
        max_iterations: Annotated[Whole, "one pass over the tiles each"] = 500,
        preconditioner: Annotated[
            Literal["wide", "nystrom", "none"], '`"nystrom"` for a single ridge, or `"none"`'
        ] = "wide",
        width: Annotated[Whole, "columns of a wide block, or rank of the Nystrom picture"] = 24,
        precision: Annotated[
            Literal["double", "single"], '`"single"` streams float32 tiles about twice as fast'
        ] = "double",
        unlabeled: Unlabeled = "error",
    ) -> None:
        self.ridge = ridge
        self.transition_ridge = transition_ridge
        self.loss = loss
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.preconditioner = preconditioner
        self.width = width
        self.precision = precision
        self.unlabeled = unlabeled

    def fit(self, gram: GramOperator, labels: Labels) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure."""
        self._fit_all([self], gram, [labels])
        return self

    @classmethod
    def fit_many(
        cls,
        learners: Sequence[KernelZScoreLabeler],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        *,
        progress: Progress | None = None,  # noqa: ARG003 - a solve has no rounds and no mistakes
    ) -> list[list[list[str]]]:
        """Fit every learner on its own labels and predict all rows with it, reading each tile once for all of them.

        Equal to separate fits. Learners with the same labels share one Krylov space.
        """
        cls._fit_all(learners, gram, label_sets)
        for learner in learners:
            learner._require_converged()
        scores = gram.matmul(np.hstack([learner.dual_ for learner in learners]), transpose=True)
        lengths, starts = gram.layout.cols.lengths, gram.layout.cols.structure_starts
        ends = offsets_from_lengths([learner.dual_.shape[1] for learner in learners])
        return [
            decode_labels(viterbi(scores[:, first:last], learner.transition_, starts)[0], learner.label_names_, lengths)
            for learner, first, last in zip(learners, ends[:-1], ends[1:], strict=True)
        ]

    def pass_columns(self, n_labels: int) -> int:
        return max(n_labels + 1, self.width)

    @property
    def round_limit(self) -> int:
        return self.max_iterations

    @property
    def path_(self) -> list[Self]:
        """A fitted labeler for every ridge of the list, in its order; not kept by saved models."""
        self.require_fitted()
        return getattr(self, "_path", [])

    def support(self) -> NDArray[np.bool_]:
        """Rows that prediction needs; nothing may be predicted from a solve that did not converge."""
        self.require_fitted()
        self._require_converged()
        return super().support()

    def _emissions(self, evidence: GramOperator) -> tuple[Floats, Offsets]:
        self.require_fitted()
        self._require_converged()
        return cross_scores(evidence, self.dual_, self.label_names_)

    def _require_converged(self) -> None:
        worst = float(np.max(self.residual_, initial=0.0))
        require_converged(Status(self.status_), self.iterations_, worst, f"the kernel Z-score with ridge {self.ridge}")

    def _ridges(self) -> list[float]:
        return [
            float(ridge) for ridge in (self.ridge if isinstance(self.ridge, Sequence | np.ndarray) else [self.ridge])
        ]

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.preconditioner == "nystrom" and len(self._ridges()) > 1:
            raise LearnerParameterError(
                "the Nystrom preconditioner belongs to one ridge",
                advice="use preconditioner='wide' for a list of them",
                key="preconditioner",
            )

    @staticmethod
    def _fit_all(learners: Sequence[KernelZScoreLabeler], gram: GramOperator, label_sets: Sequence[Labels]) -> None:
        problems: dict[tuple[object, ...], _Problem] = {}
        for learner, labels in zip(learners, label_sets, strict=True):
            learner.check_parameters()
            check_square(gram)
            problem = _Problem.of(gram, labels, learner.unlabeled)
            codes, rows = problem.statistics.codes.tobytes(), problem.rows.tobytes()
            key = (problem.names, codes, rows, *learner._solver())
            problems.setdefault(key, problem).learners.append(learner)
        running = list(problems.values())
        is_double = any(learner.precision == "double" for learner in learners)

        def apply_all(blocks: dict[int, Floats]) -> dict[int, Floats]:
            wide = np.hstack([running[number].spread(block) for number, block in blocks.items()])
            product = np.asarray(gram.matmul(wide if is_double else wide.astype(np.float32)), np.float64)
            parts = np.split(product, np.cumsum([block.shape[1] for block in blocks.values()])[:-1], axis=1)
            return {number: part[running[number].rows] for number, part in zip(blocks, parts, strict=True)}

        for problem, solutions in zip(running, solve_together(apply_all, [p.cg_steps() for p in running]), strict=True):
            problem.finish(gram, solutions)

    def _solver(self) -> tuple[object, ...]:
        """What learners must have in common to share a Krylov space; a preconditioned one belongs to one ridge."""
        own = tuple(self._ridges()) if self.preconditioner == "nystrom" else ()
        return self.tolerance, self.max_iterations, self.preconditioner, self.width, own

    def _cg_steps(self, sides: Floats, shifts: Sequence[float]) -> Solve:
        stopping = StoppingRule(self.tolerance, self.max_iterations)
        if self.preconditioner == "nystrom":
            return nystrom_cg_steps(sides, shifts[0], int(self.width), stopping)
        n_extra = min(int(self.width), len(sides)) - sides.shape[1] if self.preconditioner == "wide" else 0
        extra = np.random.default_rng(0).normal(size=(len(sides), n_extra)) if n_extra > 0 else None
        return block_cg_steps(sides, shifts, stopping, extra_columns=extra)

    def _solved(self, problem: _Problem, ridge: float, solution: Solution) -> _Solved:
        """The reduced solution for one ridge. G X = n (sides - ridge X) needs no further product."""
        statistics, sides = problem.statistics, problem.sides
        n = statistics.n_labels
        scored = n * (sides - ridge * solution.value)
        transition_ridge = ridge if self.transition_ridge is None else self.transition_ridge
        reduced = reduce_transitions(statistics, transition_ridge, sides[:, n:].T @ scored)
        dual, scores = reduced.combined(solution.value), reduced.combined(scored)
        is_vague = np.abs(scores).max(initial=0.0) < CANCELLED * n * ridge * np.abs(dual).max(initial=0.0)
        return _Solved(self, solution, reduced, dual, scores, bool(is_vague))

    def _take(self, problem: _Problem, solved: _Solved) -> None:
        """Become the labeler that was solved for."""
        statistics, reduced = problem.statistics, solved.reduced
        dual, scores, transition = solved.dual, solved.scores, reduced.transition
        gain = training_gain(scores, transition, statistics)
        gain = gain if gain > solved.rounding else 0.0
        self.loss_multiplier_ = None
        if self.loss == "hamming":
            hamming = hamming_scale(statistics, gain, reduced.interaction)
            dual, scores = hamming.scale * dual, hamming.scale * scores
            transition = hamming.scale * transition - reduced.interaction / statistics.n_labels
            self.loss_multiplier_ = hamming.multiplier
        self.dual_ = np.zeros((problem.n_rows, statistics.n_labels))
        self.dual_[problem.rows] = dual
        self.transition_ = transition
        self.z_ = training_z(scores, transition, statistics) if gain else 0.0
        self.label_names_ = problem.names
        self.status_ = solved.solution.status.value
        self.iterations_ = solved.solution.iterations
        self.residual_ = solved.solution.residual


@dataclass(eq=False)
class _Solved:
    """The reduced solution of one labeler."""

    learner: KernelZScoreLabeler
    solution: Solution
    reduced: Reduced
    dual: Floats  # A, shape (N, n_labels)
    scores: Floats  # G A, shape (N, n_labels)
    is_vague: bool  # the scores are a difference of much larger numbers
    rounding: float = 0.0  # of the gain theta . b*


@dataclass(eq=False)
class _Problem:
    """One training set and the learners that share it."""

    statistics: ChainStatistics
    rows: NDArray[np.int64]  # rows of the Gram that take part
    n_rows: int
    names: tuple[str, ...]
    sides: Floats  # [Yc | s_in | s_out]
    learners: list[KernelZScoreLabeler]

    @classmethod
    def of(cls, gram: GramOperator, labels: Labels, unlabeled: Unlabeled) -> _Problem:
        codes, names = encode_labels(gram, labels)
        layout = gram.layout.rows
        complete = labeled_structures(codes.astype(np.int32), layout.structure_starts, unlabeled)
        rows = np.flatnonzero(np.repeat(complete, layout.lengths))
        starts = offsets_from_lengths(layout.lengths[complete])
        statistics = ChainStatistics(codes[rows].astype(np.int32), starts, len(names))
        return cls(statistics, rows, len(codes), names, statistics.right_hand_sides(), [])

    def spread(self, block: Floats) -> Floats:
        """`block` with zero rows where the Gram has rows that take no part."""
        if len(self.rows) == self.n_rows:
            return block
        full = np.zeros((self.n_rows, block.shape[1]))
        full[self.rows] = block
        return full

    @property
    def ridges(self) -> list[float]:
        return sorted({ridge for learner in self.learners for ridge in learner._ridges()})

    def cg_steps(self) -> Solve:
        """The solve of all ridges of all learners."""
        n = self.statistics.n_labels
        return self.learners[0]._cg_steps(n * self.sides, [n * ridge for ridge in self.ridges])

    def finish(self, gram: GramOperator, solutions: list[Solution]) -> None:
        by_ridge = dict(zip(self.ridges, solutions, strict=True))
        found: list[_Solved] = []
        for learner in self.learners:
            ridges = learner._ridges()
            learner._path = [learner.fresh().set_params(ridge=ridge) for ridge in ridges] if len(ridges) > 1 else []
            for single in (learner, *learner._path):
                ridge = single._ridges()[0]
                found.append(single._solved(self, ridge, by_ridge[ridge]))
        vague = [solved for solved in found if solved.is_vague]
        if vague:
            self._score(gram, vague)
        for solved in found:
            solved.learner._take(self, solved)

    def _score(self, gram: GramOperator, vague: list[_Solved]) -> None:
        """Where a ridge is so far above the kernel that it leaves nothing of G A, one product gives it for all."""
        product = gram.matmul(np.hstack([self.spread(solved.dual) for solved in vague]))[self.rows]
        roots = np.sqrt(np.maximum(gram.diagonal()[self.rows], 0.0))
        n = self.statistics.n_labels
        for solved, scores in zip(vague, np.split(product, len(vague), axis=1), strict=True):
            solved.scores = scores
            # |G_st| <= root_s root_t bounds what was summed up
            solved.rounding = ROUNDING * float((roots @ np.abs(self.sides[:, :n])) @ (roots @ np.abs(solved.dual)))
