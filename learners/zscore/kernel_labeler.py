"""The Z-score labeler on any position kernel: the reduced exact solution with G in place of F F^T.

(G / n + ridge I) [A_0 | a_in | a_out] = [Yc | s_in | s_out] by conjugate gradients over a Gram operator: n + 2
right-hand sides at once, every stored tile read once per iteration; a 2 x 2 system does the rest. The ridges are chosen
on hidden structures in the same stream of tiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.parameters import Positive, Whole
from gramline.kernels.ranges import offsets_from_lengths
from gramline.kernels.value_kinds import NumberOrName, Refused
from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.chains.constraints import Constraints, allowed_steps
from gramline.learners.chains.labeler import ChainLabeler, ChainScores, cross_scores
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.errors import LearnerParameterError
from gramline.learners.estimator import Loss, Unlabeled
from gramline.learners.kinds import RoundProgress, SharedPassLearner
from gramline.learners.labels import Labels, decode_labels
from gramline.learners.linear_algebra.conjugate_gradient import (
    Solve,
    Status,
    StoppingRule,
    block_cg_steps,
    require_converged,
)
from gramline.learners.linear_algebra.preconditioner import nystrom_cg_steps
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.operators.operator import GramOperator, check_square
from gramline.learners.zscore.kernel_problem import KernelProblem, ReducedSolution
from gramline.learners.zscore.kernel_solves import Settings, SharedProblem, SolvedProblem, solve_all
from gramline.learners.zscore.ridge_choice import N_FOLDS, RIDGES, Auto, RidgeSetting, TransitionRidge


class Ridges(NumberOrName):
    """A number above 0, without which the system is singular, or a list of at least one of them; or "auto"."""

    def __init__(self) -> None:
        super().__init__(above=0, names=("auto",))

    @property
    def words(self) -> str:  # type: ignore[override]
        return "a number above 0, a list of them, or auto"

    def plain(self, value: Any) -> Any:
        ridges = value if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes) else [value]
        if not len(ridges):
            raise Refused
        for ridge in ridges:
            super().plain(ridge)
        if len(ridges) > 1 and "auto" in ridges:
            raise Refused("cannot be chosen and listed at once", "give numbers, or auto alone")
        return value

    def works(self, value: Any) -> bool:
        return all(map(super().works, value)) if isinstance(value, Sequence) else super().works(value)

    @property
    def schema(self) -> dict[str, Any]:
        number, named = super().schema["anyOf"]
        return {"anyOf": [number, {"type": "array", "items": number, "minItems": 1}, named]}


class KernelZScoreLabeler(ChainLabeler, SharedPassLearner):
    """A = (G / n + ridge)^-1 (Yc - (s_in u^T + s_out v^T) / n^2), emission scores G(new, train) A.

    The Z-score reads the plain kernel G between positions: priors and label kernel of the Gram play no part.
    All ridges of a list are solved together from one Krylov space, and this labeler is the first. A solve that does not
    converge leaves its `status_`; predicting from it raises ConvergenceError.

    "auto" ridges are those with the fewest wrong labels on hidden structures: every fifth is hidden, fold after fold,
    until 10,000 positions were; the larger ridges win a tie. Tried are 0.03, 0.1, 0.3, 1 and 3 times the mean of
    diag(G) / n, and 1 to 10,000 times M1 / n^2 for the M1 transitions of the training set. Fewer than five structures
    get 0.1 and 100 times those.

    Attributes
    ----------
    dual_, transition_
        A, shape (n_rows, n_labels), 0 at rows left out of the training, and T, shape (n_labels, n_labels).
    ridge_, transition_ridge_
        The ridges that were used, numbers.
    z_
        Z of the model on its training set; 0 where nothing but rounding tells the labels from any others.
    loss_multiplier_
        alpha of the Hamming version, None without a loss.
    status_, iterations_, residual_
        How the solve ended, and the relative residuals of its n + 2 columns.
    path_
        A fitted labeler for every ridge of a list.

    Examples
    --------
    >>> from gramline.learners import DenseGram
    >>> model = KernelZScoreLabeler(ridge=0.1).fit(DenseGram(np.eye(3), [2, 1]), [["D", "N"], ["D"]])
    >>> model.dual_.shape, model.status_
    ((3, 2), 'converged')
    >>> model.predict(DenseGram(np.eye(3)[:, [2, 1]], [2, 1], [2]))
    [['D', 'N']]
    """

    name: ClassVar[str] = "kernel-zscore"
    summary: ClassVar[str] = "the same from any Gram matrix between positions"
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)
    paper: ClassVar[Mapping[str, Any]] = {"ridge": 1e-3, "transition_ridge": None}  # 0 would be singular

    dual_: Floats
    ridge_: float
    transition_ridge_: float
    z_: float
    loss_multiplier_: float | None
    status_: str
    iterations_: int
    residual_: Floats
    _path: Sequence[Self] = ()

    def __init__(
        self,
        ridge: Annotated[
            float | Sequence[float] | Auto,
            Ridges(),
            'one number above 0, or a list that is solved for the price of one; `"auto"` chooses by the labels of '
            "hidden structures",
        ] = "auto",
        transition_ridge: TransitionRidge = "auto",
        loss: Loss = "none",
        tolerance: Annotated[Positive, "relative residual of the worst column"] = 1e-8,
        max_iterations: Annotated[Whole, "one pass over the tiles each"] = 500,
        preconditioner: Annotated[
            Literal["wide", "nystrom", "none"],
            '`"wide"` adds random columns: fewer passes over the tiles; `"nystrom"` spends one pass on an '
            'approximation of low rank, for a single ridge; `"none"` solves for the n + 2 columns alone',
        ] = "wide",
        width: Annotated[Whole, "columns of a wide block, or rank of the Nystrom approximation"] = 24,
        precision: Annotated[
            Literal["double", "single"],
            '`"single"` streams float32 tiles about twice as fast; residuals stop near 1e-6',
        ] = "double",
        unlabeled: Unlabeled = "error",
        constraints: Constraints = "none",
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
        self.constraints = constraints

    def fit(self, gram: GramOperator, labels: Labels, *, checkpoint: Checkpoint = NOWHERE) -> Self:
        """Train on a square Gram and the labels of its rows, one list per structure."""
        self._train_all([self], gram, [labels], None, checkpoint)
        return self

    @classmethod
    def _predict_all(cls, learners: Sequence[Self], gram: GramOperator) -> list[list[list[str]]]:
        for learner in learners:
            learner._require_converged()
        scores = gram.matmul(np.hstack([learner.dual_ for learner in learners]), transpose=True)
        lengths, starts = gram.layout.cols.lengths, gram.layout.cols.structure_starts
        ends = offsets_from_lengths([learner.dual_.shape[1] for learner in learners])
        return [
            decode_labels(learner._decoded(scores[:, first:last], starts), learner.label_names_, lengths)
            for learner, first, last in zip(learners, ends[:-1], ends[1:], strict=True)
        ]

    def _decoded(self, scores: Floats, starts: Offsets) -> Codes:
        allowed = allowed_steps(self.constraints, self.label_names_)
        return viterbi(scores, self.transition_, starts, allowed=allowed)[0]

    def pass_columns(self, n_labels: int) -> int:
        columns = max(n_labels + 1, self.width)
        if not any(setting.is_open for setting in self._settings()):
            return columns
        # A plan counts six blocks for a problem; here every ridge of every fold has two.
        n_ridges = len(RIDGES) if self.ridge == "auto" else len(self._settings())
        return columns * max(1, 2 * n_ridges * (1 + N_FOLDS) // 6)

    @property
    def resumes(self) -> bool:
        return True

    @property
    def round_limit(self) -> int:
        return self.max_iterations

    @property
    def path_(self) -> list[Self]:
        """A fitted labeler for every ridge of the list, in its order; not kept by saved models."""
        self.require_fitted()
        return list(self._path)

    def support(self) -> NDArray[np.bool_]:
        """Rows that prediction needs; nothing may be predicted from a solve that did not converge."""
        self.require_fitted()
        self._require_converged()
        return super().support()

    def _scores(self, evidence: GramOperator) -> ChainScores:
        self.require_fitted()
        self._require_converged()
        return cross_scores(evidence, self.dual_, self.label_names_)

    def _require_converged(self) -> None:
        worst = float(np.max(self.residual_, initial=0.0))
        ridge = self.fitted().get("ridge_", self.ridge)  # models of earlier versions have none
        require_converged(Status(self.status_), self.iterations_, worst, f"the kernel Z-score with ridge {ridge:g}")

    def _ridges(self) -> list[float | Auto]:
        given: Any = self.ridge
        return ["auto"] if isinstance(given, str) else [float(ridge) for ridge in np.atleast_1d(given)]

    def _settings(self, names: Sequence[str] = ()) -> Settings:
        """One for every ridge of the list."""
        allowed = allowed_steps(self.constraints, names)
        return tuple(RidgeSetting(ridge, self.transition_ridge, self.loss, allowed) for ridge in self._ridges())

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.preconditioner == "nystrom" and (len(self._ridges()) > 1 or self.ridge == "auto"):
            raise LearnerParameterError(
                "the Nystrom preconditioner belongs to one ridge",
                advice="give a number, or set preconditioner to wide for several",
                key="preconditioner",
            )

    @classmethod
    def _train_all(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        progress: RoundProgress | None,  # noqa: ARG003 - a solve has no rounds and no mistakes
        checkpoint: Checkpoint,
    ) -> None:
        """Learners with the same labels share one Krylov space."""
        shared: dict[tuple[object, ...], tuple[SharedProblem, list[KernelZScoreLabeler]]] = {}
        for learner, labels in zip(learners, label_sets, strict=True):
            learner.check_parameters()
            check_square(gram)
            problem = KernelProblem.of(gram, labels, learner.unlabeled)
            codes, rows = problem.statistics.codes.tobytes(), problem.rows.tobytes()
            key = (problem.names, codes, rows, *learner._solver())
            same, group = shared.setdefault(key, (SharedProblem(gram, problem, learner._cg_steps, []), []))
            same.settings.append(learner._settings(problem.names))
            group.append(learner)
        problems = [problem for problem, _ in shared.values()]
        is_double = any(learner.precision == "double" for learner in learners)
        solved_all = solve_all(gram, problems, is_double=is_double, checkpoint=checkpoint)
        for (_, group), solved in zip(shared.values(), solved_all, strict=True):
            _take_all(group, gram, solved)

    def _solver(self) -> tuple[object, ...]:
        """What learners must have in common to share a Krylov space; a preconditioned one belongs to one ridge."""
        own = tuple(self._ridges()) if self.preconditioner == "nystrom" else ()
        return self.tolerance, self.max_iterations, self.preconditioner, self.width, own

    def _cg_steps(self, problem: KernelProblem, ridges: Sequence[float], memory: SolveMemory | None) -> Solve:
        """The solve of (G + n ridge) X = n [Yc | s_in | s_out] for all ridges; without a copy of the sides."""
        n, sides = problem.statistics.n_labels, problem.sides
        shifts = [n * ridge for ridge in ridges]
        stopping = StoppingRule(self.tolerance, self.max_iterations)
        if self.preconditioner == "nystrom":
            solved = yield from nystrom_cg_steps(sides, shifts[0], int(self.width), stopping, memory=memory)
        else:
            n_extra = min(int(self.width), len(sides)) - sides.shape[1] if self.preconditioner == "wide" else 0
            extra = np.random.default_rng(0).normal(size=(len(sides), n_extra)) if n_extra > 0 else None
            solved = yield from block_cg_steps(sides, shifts, stopping, extra_columns=extra, memory=memory)
        return [replace(solution, value=n * solution.value) for solution in solved]

    def _take(self, problem: KernelProblem, solved: ReducedSolution, ridges: tuple[float, float]) -> None:
        """Become the labeler that was solved for."""
        statistics, chain = problem.statistics, solved.chain
        gain = chain.gain(statistics)
        gain = gain if gain > solved.rounding else 0.0
        if self.loss == "hamming":
            chain = chain.with_hamming_loss(statistics, gain, solved.interaction)
        self.ridge_, self.transition_ridge_ = ridges
        self.loss_multiplier_ = chain.multiplier
        self.dual_ = np.zeros((problem.n_rows, statistics.n_labels))
        self.dual_[problem.rows] = chain.weights
        self.transition_ = chain.transition
        self.z_ = chain.z(statistics) if gain else 0.0
        self.label_names_ = problem.names
        self.status_ = solved.solution.status.value
        self.iterations_ = solved.solution.iterations
        self.residual_ = solved.solution.residual


def _take_all(learners: Sequence[KernelZScoreLabeler], gram: GramOperator, solved: SolvedProblem) -> None:
    """Give every learner, and the labelers of its path, the solution of its ridges."""
    problem = solved.shared.problem
    found: list[tuple[KernelZScoreLabeler, ReducedSolution, tuple[float, float]]] = []
    for learner, settings in zip(learners, solved.shared.settings, strict=True):
        path = [learner.fresh().set_params(ridge=setting.ridge) for setting in settings] if len(settings) > 1 else []
        learner._path = path
        pairs = solved.chosen(settings)
        for single, pair in [(learner, pairs[0]), *zip(path, pairs, strict=False)]:
            found.append((single, problem.reduced(*pair, solved.by_ridge[pair[0]]), pair))
    problem.rescore(gram, [solution for _, solution, _ in found if solution.is_vague])
    for single, solution, pair in found:
        single._take(problem, solution, pair)
