"""The ranking perceptron over candidates, in dual form from any Gram operator: plain, averaged and voted.

Training handles groups of at most two blocks of rows at once: their own scores change with every mistake, all other
rows get the sum of the changes in one product per tile, when they are looked at.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from gramline.kernels.parameters import Boolean, Whole
from gramline.learners.arrays import Counts, Indices, Mask, Matrix
from gramline.learners.candidates.groups import HYPOTHESES, Ballot, batches_within_size, candidate_groups
from gramline.learners.candidates.log_probability import LogProbability
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.chains.viterbi import magnitude_probe
from gramline.learners.checkpoints import Checkpoint
from gramline.learners.errors import LearnerError
from gramline.learners.kinds import Groups
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.ranking_training import RankingTraining

SLAB_BYTES = 1 << 28  # cross Gram between the updates and new candidates in memory at once while voting


class RankingPerceptron(CandidateRanker):
    """F(x) = sum_ij a_ij (K(x_i0, x) - K(x_ij, x)); a group's candidate of the highest F is chosen.

    Training: for every group i and candidate j >= 1 in order, unless F(x_i0) > F(x_ij) strictly, a_ij += 1. Every
    comparison is one example: a hypothesis counts the comparisons it survived, 1 when created; the zero hypothesis is
    dropped. The lowest candidate wins ties. Where log probabilities have a weight, F + weight * log P takes the place
    of F everywhere.

    Attributes
    ----------
    weights_ : whole numbers of shape (n_rows,); F(x) = sum_s weights_[s] K(s, x)
    average_weights_ : their mean, shape (n_rows,)
    updates_ : rows of x_i0 and x_ij of every mistake, in order, shape (n_mistakes, 2)
    counts_ : comparisons survived by the hypothesis after each mistake, shape (n_mistakes,)
    mistakes_ : mistakes of every pass that was run
    log_probability_ : the weight of log P
    weight_choice_ : of an "auto" weight: the weights that were tried, and what they came to

    Examples
    --------
    >>> from gramline.kernels import SubsetTree
    >>> from gramline.learners import DenseGram, RankingPerceptron
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_parses(["(S (A a) (B b))", "(S (B a) (A b))"])
    >>> new = Corpus.from_parses(["(S (B a) (B b))", "(S (A a) (A b))", "(S (A a) (B b))"])
    >>> learner = RankingPerceptron().fit(DenseGram.of(SubsetTree(), train), [[0, 1]])
    >>> learner.predict(DenseGram.of(SubsetTree(), train, new), [[0, 1, 2]])
    [2]
    """

    name: ClassVar[str] = "ranking-perceptron"
    summary: ClassVar[str] = "chooses among candidates, from a Gram matrix of a structure kernel"
    is_lazy: ClassVar[bool] = True
    row_arrays: ClassVar[tuple[str, ...]] = ("weights_", "average_weights_")

    weights_: Counts
    average_weights_: Matrix
    updates_: Indices
    counts_: Counts
    mistakes_: list[int]

    def __init__(
        self,
        passes: Annotated[Whole, "over all comparisons"] = 1,
        vote: Annotated[
            Boolean, "every hypothesis votes with the comparisons it survived; otherwise the last one decides"
        ] = True,
        average: Annotated[Boolean, "their mean, weighted by those comparisons, decides instead"] = False,
        log_probability: LogProbability = 0.0,
    ) -> None:
        self.passes = passes
        self.vote = vote
        self.average = average
        self.log_probability = log_probability

    def _train(self, gram: GramOperator, candidates: list[Indices], offsets: Matrix, checkpoint: Checkpoint) -> None:
        training = RankingTraining(gram, candidates, offsets)
        training.run(int(self.passes), checkpoint)
        if training.counts:
            # A pass without a mistake repeats for ever: the last hypothesis survives all that is left.
            n_left = int(self.passes) - len(training.mistakes)
            training.counts[-1] += n_left * sum(len(rows) - 1 for rows in candidates)
        self.mistakes_ = training.mistakes
        self.updates_ = np.array(training.updates, np.int64).reshape(-1, 2)
        self.counts_ = np.array(training.counts, np.int64)
        ones = np.ones(len(self.counts_))
        self.weights_ = np.rint(self._summed(ones, ones, gram.shape[0])).astype(np.int64)
        shares = self._average_shares()
        self.average_weights_ = self._summed(shares, shares, gram.shape[0])

    def choices(
        self, cross: GramOperator, candidates: list[Indices], offsets: Matrix, sums: Matrix | None = None
    ) -> list[int]:
        if self.is_voting:
            return [int(votes.argmax()) for votes in self.votes(cross, candidates, offsets)]
        return super().choices(cross, candidates, offsets, sums)

    def decision_scores(
        self, cross: GramOperator, groups: Groups | None = None, log_probabilities: ArrayLike | None = None
    ) -> Matrix:
        """The score of every new candidate, shape (n_columns,); of the mean hypothesis unless the learner is plain.

        With `groups`, a voting learner gives the share of votes of each candidate within its group.
        """
        if groups is None or not self.is_voting:
            return super().decision_scores(cross, groups, log_probabilities)
        self._check(cross)
        candidates = candidate_groups(groups, cross.shape[1])
        offsets = self.offsets(log_probabilities, cross.shape[1])
        shares = np.zeros(cross.shape[1])
        for columns, votes in zip(candidates, self.votes(cross, candidates, offsets), strict=True):
            shares[columns] = votes / max(1, int(self.counts_.sum()))
        return shares

    def support(self) -> Mask:
        """Training rows that prediction needs: all that were ever in an update when hypotheses vote."""
        self.require_fitted()
        used = np.zeros(len(self.weights_), np.bool_)
        used[self.updates_.ravel()] = True
        return used

    def restricted(self, rows: Indices) -> Self:
        reduced = super().restricted(rows)
        places = np.full(len(self.weights_), -1, np.int64)
        places[rows] = np.arange(len(self.weights_))[: len(reduced.weights_)]
        reduced.updates_ = places[self.updates_]
        if (reduced.updates_ < 0).any():
            raise LearnerError(f"row {self.updates_[reduced.updates_ < 0][0]} is needed to predict, but was left out")
        return reduced

    @property
    def resumes(self) -> bool:
        return True

    @property
    def is_voting(self) -> bool:
        """Whether every hypothesis has a vote; otherwise one weighted sum decides."""
        return self.vote and not self.average

    @property
    def hypothesis_counts(self) -> Counts:
        return self.counts_ if self.is_voting else super().hypothesis_counts

    @property
    def deciding_weights(self) -> Matrix:
        """Those of the mean, or of the last hypothesis."""
        self.require_fitted()
        return self.average_weights_ if self.average else self.weights_.astype(float)

    def without_rows(self) -> Self:
        self.require_fitted()
        reduced = self.fresh()
        for name in self.fitted():
            setattr(reduced, name, getattr(self, name))
        reduced.updates_ = np.empty((0, 2), np.int64)
        reduced.weights_, reduced.average_weights_ = np.empty(0, np.int64), np.empty(0)
        return reduced

    def _average_shares(self) -> Matrix:
        """Part of all counts that the hypotheses from each mistake on have, shape (n_mistakes,)."""
        later: Matrix = np.cumsum(self.counts_[::-1].astype(float))[::-1]
        return later / max(1, int(self.counts_.sum()))

    def _summed(self, to_winners: Matrix, to_losers: Matrix, n_rows: int) -> Matrix:
        """Row weights of a weighted sum of updates, shape (n_rows,)."""
        summed = np.zeros(n_rows)
        np.add.at(summed, self.updates_[:, 0], to_winners)
        np.subtract.at(summed, self.updates_[:, 1], to_losers)
        return summed

    def _columns(self) -> Matrix:
        is_plain = not self.vote and not self.average
        shares = np.ones(len(self.counts_)) if is_plain else self._average_shares()
        weights = self.weights_ if is_plain else self.average_weights_
        sizes = magnitude_probe(self._summed(shares, -shares, len(weights)))
        return np.column_stack([weights, sizes]).astype(float)

    def votes(self, cross: GramOperator, candidates: list[Indices], offsets: Matrix) -> list[Counts]:
        """Summed counts of the hypotheses that choose each candidate, one array per group."""
        votes: list[Counts] = []
        rows, places = np.unique(self.updates_, return_inverse=True)
        places = places.reshape(-1, 2)
        limit = max(1, SLAB_BYTES // (8 * max(1, len(rows))))
        for batch in batches_within_size(candidates, limit):
            columns = np.concatenate([candidates[group] for group in batch])
            ballot = Ballot([len(candidates[group]) for group in batch], offsets[columns])
            slab = cross.select(rows, columns).astype(float, copy=False)
            for first in range(0, len(self.counts_), HYPOTHESES):
                part = slice(first, first + HYPOTHESES)
                won, lost = (slab[places[part, side]] for side in (0, 1))
                ballot.add(won - lost, np.abs(won) + np.abs(lost), self.counts_[part])
            votes.extend(ballot.votes())
        return votes
