"""The Z-score labeler on explicit features: weights that set the right labeling apart from all label paths.

Z(theta) = theta . b* / sqrt(theta^T C* theta), with b* the summed distance of the right labelings from the mean over
all paths and C* the summed covariance; theta = (C* + ridge)^-1 b* maximises it as ridge -> 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np

from gramline.kernels.packing import Packable, Packed
from gramline.kernels.parameters import Positive, Share, Whole, WholeOrZero
from gramline.kernels.value_kinds import Number, NumberOrName
from gramline.learners.arrays import Floats
from gramline.learners.chains.constraints import allowed_steps
from gramline.learners.chains.labeler import ChainLabeler, ChainScores
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.errors import LearnerParameterError
from gramline.learners.estimator import Loss, Unlabeled
from gramline.learners.kinds import CorpusLearner
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.token_features import (
    emission_scores,
    feature_matrix,
    feature_names,
    known_features,
    label_names,
    packed_sequences,
    training_sequences,
)
from gramline.learners.zscore.constraints import Separation, separate
from gramline.learners.zscore.dynamic import PathMoments, training_moments
from gramline.learners.zscore.emissions import EmissionSystem, Solver, solve_symmetric
from gramline.learners.zscore.feature_trials import FeatureTrials
from gramline.learners.zscore.ridge_choice import Auto, RidgeSetting, TransitionRidge
from gramline.learners.zscore.sampled import SampledMoments
from gramline.learners.zscore.transitions import ChainSolution, reduce_transitions

DENSE_UNKNOWNS = 4000  # D n + n^2 above which the covariance is not formed


class ZScoreLabeler(ChainLabeler, CorpusLearner):
    """theta = (C* + ridge)^-1 b*: the closed form of the largest Z, for chains of labels with explicit features.

    Where one label is nearly everywhere (text without entities), its transition to itself weighs about n^2 P(a, a) and
    outweighs all features, unless `transition_ridge` is large. loss="hamming" minimises var(theta . phi + l) / 2
    subject to theta . b* - mean loss >= 1.

    "auto" ridges are those with the fewest wrong labels on hidden structures: every fifth is hidden, fold after fold,
    until 10,000 positions were; the larger ridges win a tie. Tried are 0.03, 0.1, 0.3, 1 and 3 times the mean of
    |f|^2 / n over positions, and 1 to 10,000 times M1 / n^2 for the M1 transitions of the training set, by the closed
    form. Fewer than five structures get 0.1 and 100 times those.

    constraints="iterative" minimises theta^T (C* + ridge) theta subject to theta . b* >= 1 and a distance of 1 between
    the right path of every training sequence and any other: for separable training sets of some thousand positions.
    Wrong paths join the program round by round until all are at least `margin` away. Where no weights do that, or
    `max_rounds` are too few, `fit` raises ConvergenceError.

    Attributes
    ----------
    emission_, transition_
        Weights, shapes (n_labels, n_features) and (n_labels, n_labels) as [previous][current].
    ridge_, transition_ridge_
        The ridges that were used, numbers.
    z_
        Z of the model on its training set, with exact moments.
    loss_multiplier_
        alpha of the Hamming version, None without a loss.
    mistakes_, n_constraints_
        Training sequences not labelled right in each round of constraints, the last of them 0, and the wrong paths in
        the last program; None without constraints.

    Examples
    --------
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "cat", "sat"], ["the", "dog"]], [["D", "N", "V"], ["D", "N"]])
    >>> model = ZScoreLabeler(ridge=0.1).fit(corpus)
    >>> model.emission_.shape, model.transition_.shape
    ((3, 5), (3, 3))
    >>> model.predict(Corpus.from_sequences([["the", "cat", "sat"]]))
    [['D', 'N', 'V']]
    """

    name: ClassVar[str] = "zscore"
    summary: ClassVar[str] = "closed form, label chains, from features"
    paper: ClassVar[Mapping[str, Any]] = {"ridge": 0.0, "transition_ridge": None}

    emission_: Floats
    ridge_: float
    transition_ridge_: float
    z_: float
    loss_multiplier_: float | None
    mistakes_: list[int] | None
    n_constraints_: int | None
    feature_names_: list[str]

    def __init__(
        self,
        ridge: Annotated[
            float | Auto,
            NumberOrName(least=0, names=("auto",)),
            'penalty on emission weights; 0 gives the least norm, `"auto"` chooses by the labels of hidden structures',
        ] = "auto",
        transition_ridge: TransitionRidge = "auto",
        loss: Loss = "none",
        moments: Annotated[
            Literal["closed", "dynamic", "sampled"],
            '`"closed"` is exact and never forms `C*`; `"dynamic"`: `C*` by dynamic programming, small problems; '
            '`"sampled"`: from random paths',
        ] = "closed",
        n_paths: Annotated[int, Number(whole=True, least=2), "random paths per sequence"] = 100,
        seed: Annotated[WholeOrZero, "of those paths"] = 0,
        solver: Solver = "auto",
        tolerance: Annotated[Positive, "of conjugate gradients"] = 1e-6,
        max_iterations: Annotated[Whole, "of conjugate gradients"] = 5000,
        unlabeled: Unlabeled = "error",
        constraints: Annotated[
            Literal["none", "iterative", "iob2"],
            '`"iterative"`: the whole training set labelled right, an error where no weights do; up to 5000 distinct '
            'positions, ridge above 0. `"iob2"` predicts only paths in which `I-x` follows `B-x` or `I-x`',
        ] = "none",
        margin: Annotated[
            Share,
            "between 0 and 1: how far the right labels must be from any others for the rounds to end; 1 is the exact "
            "optimum, less ends sooner",
        ] = 0.1,
        max_rounds: Annotated[Whole, "of such constraints"] = 100,
    ) -> None:
        self.ridge = ridge
        self.transition_ridge = transition_ridge
        self.loss = loss
        self.moments = moments
        self.n_paths = n_paths
        self.seed = seed
        self.solver = solver
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.unlabeled = unlabeled
        self.constraints = constraints
        self.margin = margin
        self.max_rounds = max_rounds

    def fit(self, corpus: Packable | Packed) -> Self:
        """Train on labeled sequences with features."""
        self.fit_many([self], corpus)
        return self

    @staticmethod
    def fit_many(learners: Sequence[ZScoreLabeler], corpus: Packable | Packed) -> None:
        """Fit every learner on the same corpus; those with the same ridge, or that choose one, share their solves.

        `transition_ridge` and `loss` cost next to nothing more.
        """
        training: dict[Unlabeled, _Training] = {}
        for learner in learners:
            learner.check_parameters()
            if learner.unlabeled not in training:
                training[learner.unlabeled] = _Training(training_sequences(corpus, learner.unlabeled))
            learner._learn(training[learner.unlabeled])

    @property
    def round_limit(self) -> int:
        return self.max_iterations

    def traces(self) -> dict[str, list[float]]:
        return {"mistakes": [float(count) for count in self.mistakes_]} if self.mistakes_ else {}

    def _learn(self, training: _Training) -> None:
        statistics = training.statistics
        allowed = allowed_steps(self.constraints, training.label_names)
        ridges = training.trials.chosen(RidgeSetting(self.ridge, self.transition_ridge, self.loss, allowed))
        separation = None
        if self.constraints == "iterative":
            separation = separate(training.features, statistics, *ridges, self.margin, self.max_rounds)
            separation.require()
        if self.moments == "closed":
            solution = self._closed(training, ridges, separation)
        else:
            solution = self._from_paths(training, ridges)
        self.ridge_, self.transition_ridge_ = ridges
        self.emission_ = np.ascontiguousarray(solution.weights.T)
        self.transition_ = solution.transition
        self.z_ = solution.z(statistics)
        self.loss_multiplier_ = solution.multiplier
        self.mistakes_ = None if separation is None else separation.mistakes
        self.n_constraints_ = None if separation is None else separation.n_constraints
        self.feature_names_ = training.feature_names
        self.label_names_ = training.label_names

    def _scores(self, evidence: Packable | Packed) -> ChainScores:
        self.require_fitted()
        packed = packed_sequences(evidence)
        scores, _ = emission_scores(known_features(packed, self.feature_names_), self.emission_)
        return ChainScores(scores, packed.starts)

    def check_parameters(self) -> None:
        super().check_parameters()
        if self.moments == "dynamic" and self.solver == "cg":
            raise LearnerParameterError(
                "dynamic moments form the covariance", advice="set solver to direct or auto", key="solver"
            )
        if self.constraints == "iterative" and self.ridge == 0:
            raise LearnerParameterError("iterative constraints need a ridge above 0", advice="try 1e-6", key="ridge")
        if self.constraints == "iterative" and (self.loss != "none" or self.moments != "closed"):
            raise LearnerParameterError(
                "iterative constraints go with the loss none and closed moments, got the loss "
                f"{self.loss} and {self.moments} moments",
                key="constraints",
            )

    def _closed(self, training: _Training, ridges: tuple[float, float], separation: Separation | None) -> ChainSolution:
        """The reduced exact solution."""
        statistics, n = training.statistics, training.statistics.n_labels
        ridge, transition_ridge = ridges
        targets, excess = (None, None) if separation is None else (separation.targets, separation.excess)
        stopping = StoppingRule(self.tolerance, self.max_iterations)
        solved, scored = training.solved(ridge, self.solver, stopping, targets)
        responses = training.system.sides[:, n:].T @ scored
        products = solved[:, n:].T @ solved if ridge == transition_ridge == 0 else None
        reduced = reduce_transitions(statistics, transition_ridge, responses, products, excess)
        solution = reduced.solution(solved, scored)
        if self.loss == "none":
            return solution
        return solution.with_hamming_loss(statistics, solution.gain(statistics), reduced.interaction)

    def _from_paths(self, training: _Training, chosen: tuple[float, float]) -> ChainSolution:
        """The solution from moments by dynamic programming or of sampled paths.

        theta = alpha x_b - x_c for x = (C* + ridge)^-1 [b*, c_l]; alpha = max(0, (1 + mu_l + b* . x_c) / J).
        """
        features, statistics, n = training.features, training.statistics, training.statistics.n_labels
        n_emissions, (ridge, transition_ridge) = features.shape[1] * n, chosen
        ridges = np.concatenate([np.full(n_emissions, ridge), np.full(n * n, transition_ridge)])
        is_dynamic = self.moments == "dynamic"
        is_direct = is_dynamic or self.solver == "direct" or (self.solver == "auto" and ridges.min() == 0)
        if is_direct and len(ridges) > DENSE_UNKNOWNS:
            route = "dynamic moments" if is_dynamic else "a direct solve"
            raise LearnerParameterError(
                f"{route} would form a covariance of {len(ridges)} x {len(ridges)}",
                advice="set moments to closed, exact too" if is_dynamic else "set a ridge above 0 and solver to cg",
                key="moments" if is_dynamic else "solver",
            )
        moments: PathMoments | SampledMoments
        if is_dynamic:
            moments = training_moments(features, statistics.codes, statistics.starts, n)
        else:
            moments = SampledMoments(features, statistics, self.n_paths, self.seed)
        sides = np.column_stack([moments.excess, moments.loss_covariance][: 2 if self.loss == "hamming" else 1])
        if is_direct or isinstance(moments, PathMoments):
            solved = solve_symmetric(moments.covariance, sides, ridges)
        else:
            solved = moments.solve(sides, ridges, StoppingRule(self.tolerance, self.max_iterations))
        theta, multiplier = solved[:, 0], None
        if self.loss == "hamming":
            gain, loss_gain = (float(moments.excess @ column) for column in solved.T)
            multiplier = max(0.0, (1.0 + moments.loss_mean + loss_gain) / gain) if gain > 0 else 0.0
            theta = multiplier * solved[:, 0] - solved[:, 1]
        emission, transition = theta[:n_emissions].reshape(-1, n), theta[n_emissions:].reshape(n, n)
        return ChainSolution(emission, np.asarray(features @ emission), transition, multiplier)


class _Training:
    """One training set and its emission solutions so far."""

    def __init__(self, packed: Packed) -> None:
        self.feature_names = feature_names(packed)
        self.label_names = label_names(packed)
        self.features = feature_matrix(packed, len(self.feature_names))
        self.statistics = ChainStatistics(packed.labels, packed.starts, len(self.label_names))
        self.system = EmissionSystem(self.features, self.statistics.right_hand_sides(), len(self.label_names))
        self.trials = FeatureTrials(self.features, self.statistics)
        self._solutions: dict[tuple[float, Solver, StoppingRule], tuple[Floats, Floats]] = {}

    def solved(
        self, ridge: float, solver: Solver, stopping: StoppingRule, targets: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """X for [Yc | s_in | s_out] and F X, shapes (D, n + 2) and (N, n + 2); `targets` in place of Yc."""
        if targets is not None:
            sides = np.hstack([targets, self.system.sides[:, targets.shape[1] :]])
            weights = EmissionSystem(self.features, sides, targets.shape[1]).solve(ridge, solver, stopping)
            return weights, np.asarray(self.features @ weights)
        key = (ridge, solver, stopping)
        if key not in self._solutions:
            weights = self.system.solve(ridge, solver, stopping)
            self._solutions[key] = weights, np.asarray(self.features @ weights)
        return self._solutions[key]
