"""The support vector machine over groups of candidates, trained group by group from any Gram operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Self

import numpy as np

from gramline.kernels.parameters import Positive, Whole
from gramline.learners.arrays import Indices, Matrix
from gramline.learners.candidates.log_probability import LogProbability, Trial
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.chains.viterbi import magnitude_probe
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.margins.dual_ascent import DualAscent
from gramline.learners.margins.ranking_training import GroupProblem, RankingTraining
from gramline.learners.operators.operator import GramOperator


class RankingSVM(DualAscent, CandidateRanker):
    """min |w|^2 / 2 + C sum_i max(0, max_j (1 - s(x_i0) + s(x_ij))),  s(x) = F(x) + log_probability_ * log P(x).

    F(x) = <w, phi(x)> with w = sum_ij a_ij (phi(x_i0) - phi(x_ij)), a_ij >= 0 and sum_j a_ij <= C: the machine of
    Crammer and Singer with the candidates of a group for labels, one slack per group. Its dual, max sum_ij a_ij
    (1 - log_probability_ (log P(x_i0) - log P(x_ij))) - |w|^2 / 2, is solved by steps that move weight between two
    candidates of a group, one group after another, the same for every block size. C suits kernels with k(x, x) = 1,
    such as SubsetTree(normalized=True).

    Attributes
    ----------
    weights_ : F(x) = sum_s weights_[s] K(s, x), shape (n_rows,)
    objective_ : what is minimised, at the end
    gap_ : how far above its minimum that is at most
    gap_trace_ : the same after every pass
    log_probability_ : the weight of log P
    weight_choice_ : of an "auto" weight: the weights that were tried, and what they came to

    Examples
    --------
    >>> from gramline.kernels import SubsetTree
    >>> from gramline.learners import DenseGram, RankingSVM
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_parses(["(S (A a) (B b))", "(S (B a) (A b))"])
    >>> new = Corpus.from_parses(["(S (B a) (B b))", "(S (A a) (A b))", "(S (A a) (B b))"])
    >>> learner = RankingSVM().fit(DenseGram.of(SubsetTree(), train), [[0, 1]])
    >>> learner.predict(DenseGram.of(SubsetTree(), train, new), [[0, 1, 2]])
    [2]
    >>> learner.gap_ <= 0.01 * learner.objective_
    True
    """

    name: ClassVar[str] = "ranking-svm"
    summary: ClassVar[str] = (
        "support vector machine over groups of candidates, from a Gram matrix of a structure kernel"
    )
    row_arrays: ClassVar[tuple[str, ...]] = ("weights_",)

    weights_: Matrix

    def __init__(
        self,
        C: Annotated[Positive, "weight of a group inside the margin"] = 1.0,
        passes: Annotated[Whole, "over the groups, at most"] = 200,
        tolerance: Annotated[Positive, "part of the objective that the duality gap has come down to at the end"] = 0.01,
        log_probability: LogProbability = 0.0,
    ) -> None:
        self.C = C
        self.passes = passes
        self.tolerance = tolerance
        self.log_probability = log_probability

    @property
    def resumes(self) -> bool:
        return True

    @property
    def deciding_weights(self) -> Matrix:
        self.require_fitted()
        return self.weights_

    def notes(self) -> list[str]:
        return [*self._convergence_notes(), *self.choice_notes()]

    def without_rows(self) -> Self:
        return self.restricted(np.zeros(0, np.int64))

    def _columns(self) -> Matrix:
        return np.column_stack([self.weights_, magnitude_probe(np.abs(self.weights_))])

    def _train(self, gram: GramOperator, candidates: list[Indices], offsets: Matrix, checkpoint: Checkpoint) -> None:
        every = np.arange(len(candidates))
        training = RankingTraining(gram, candidates, [self._problem(candidates, every, offsets)])
        training.run(checkpoint)
        self._take(training.problems[0], len(offsets))

    def _fit_trials(
        self, gram: GramOperator, candidates: list[Indices], known: Matrix, trials: Sequence[Trial]
    ) -> list[Self]:
        problems = [self._problem(candidates, trial.groups, trial.weight * known) for trial in trials]
        RankingTraining(gram, candidates, problems).run(NOWHERE)
        rankers = []
        for trial, problem in zip(trials, problems, strict=True):
            ranker = self.fresh().set_params(log_probability=trial.weight)
            ranker._take(problem, len(known))
            ranker.log_probability_ = trial.weight
            rankers.append(ranker)
        return rankers

    def _problem(self, candidates: list[Indices], groups: Indices, offsets: Matrix) -> GroupProblem:
        return GroupProblem.start(candidates, groups, offsets, float(self.C), self._stopping())

    def _take(self, problem: GroupProblem, n_rows: int) -> None:
        """Become the learner that was trained."""
        self.weights_ = problem.row_weights(n_rows)
        self._keep(problem.trace)
