"""How a ranker is trained on the Gram matrix of its candidates, what to say of it, and what its forest is worth."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.operators.counts import counted
from gramline.pipeline.candidates.columns import (
    Groups,
    candidate_worth,
    group_weights,
    log_probabilities,
    ranking_score,
)
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import Spent
from gramline.pipeline.errors import InputError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, identity_of
from gramline.pipeline.models.ranker import Ranker

TIMED = 100  # candidates that a forest and its trees are timed on
LOOKED_AT = 100  # groups of each corpus whose choices are looked at after the training


def fit_ranker(
    learner: CandidateRanker,
    gram: Any,
    candidates: Sequence[Corpus],
    *,
    development: int | None = None,
    checkpoint: TrainingCheckpoint | None = None,
    progress: Listener = silent,
) -> Ranker:
    """Train on a stored Gram matrix over the candidates of one corpus, or of those appended after it as well.

    A corpus says in its columns `group` and `score` which candidates belong together, and how good each is; its column
    `probability` is read where log probabilities have a weight. An "auto" weight is the one whose choices score best
    in the groups of corpus number `development`, or in every fifth group, fold after fold. With a `checkpoint` it goes
    on where it was interrupted, which `progress` hears of.

    >>> from tempfile import TemporaryDirectory
    >>> from gramline.kernels import SubsetTree
    >>> from gramline.learners import RankingPerceptron
    >>> from gramline.pipeline import Corpus, build_gram, fit_ranker
    >>> parses = Corpus.from_parses([["S", ["A", "x"]], ["S", ["B", "y"]]])
    >>> parses = parses.with_column("group", [0, 0]).with_column("score", [1.0, 0.0])
    >>> with TemporaryDirectory() as folder:
    ...     gram = build_gram(SubsetTree(), parses, f"{folder}/parses.gram.zarr")
    ...     ranker = fit_ranker(RankingPerceptron(passes=3), gram, [parses])
    >>> ranker.choose(parses, [[0, 1]])
    [0]
    """
    if not isinstance(gram, StoredGram):
        raise InputError(
            f"a ranker is trained on a stored Gram matrix, got {gram!r}", advice="build it with build_gram"
        )
    spent = Spent()
    rows: Packed = gram.row_corpus
    known = TrainingCandidates.of(candidates, rows)
    more = known.evidence(learner, development)
    if checkpoint is not None:
        checkpoint.begin(identity_of(learner, gram, [known.groups, more] if more else known.groups), progress)
        more["checkpoint"] = checkpoint
    learner.fit(gram, known.groups, **more)
    return replace(Ranker.of(learner, rows, gram.kernel), cost=spent.cost)


def training_notes(ranker: Ranker, candidates: Sequence[Corpus]) -> list[str]:
    """The learner's own, and whether the ranker does worse than the first candidates where it was trained.

    That is looked at in a few groups only; where held-out groups chose the weight of log probabilities, these say it.
    """
    notes = ranker.learner.notes()
    if ranker.learner.log_probability == "auto":
        return notes
    for corpus in candidates:
        some = corpus.select(row for members in Groups.of(corpus).members[:LOOKED_AT] for row in members)
        notes += ranking_score(some, ranker.choose(some)).notes("training groups")
    return notes


@dataclass(frozen=True, eq=False)
class TrainingCandidates:
    """The candidates of all corpora of a Gram matrix, by row."""

    corpora: Sequence[Corpus]
    groups: list[list[int]]  # the correct one first
    firsts: list[int]  # first group of each corpus, and the end

    @classmethod
    def of(cls, corpora: Sequence[Corpus], rows: Packed) -> TrainingCandidates:
        """Those of the corpora that the rows were packed from, in order; any other corpus is refused."""
        begin, groups, firsts = 0, list[list[int]](), [0]
        for number, corpus in enumerate(corpora):
            if corpus.kind != rows.kind or not _are_rows(corpus, rows, begin):
                raise InputError(
                    f"candidate corpus {number} is not the one that the Gram matrix was built from; give that one, "
                    "and after it those that were appended, in order"
                )
            groups.extend([begin + row for row in group] for group in Groups.of(corpus).correct_first(corpus))
            firsts.append(len(groups))
            begin += len(corpus)
        if begin != len(rows):
            raise InputError(
                f"the Gram matrix has {len(rows)} candidates, but the corpora given have {begin}; give all"
            )
        return cls(corpora, groups, firsts)

    @classmethod
    def without(cls, corpus: Corpus, hidden: Collection[int]) -> TrainingCandidates:
        """Those of the groups of one corpus that are not hidden."""
        groups = [group for group in Groups.of(corpus).correct_first(corpus) if group[0] not in hidden]
        return cls([corpus], groups, [0, len(groups)])

    def evidence(self, learner: CandidateRanker, development: int | None) -> dict[str, Any]:
        """What `fit` is told of the candidates besides their groups."""
        is_open = learner.log_probability == "auto"
        if development is not None and not is_open:
            raise InputError('development candidates choose the weight of log probabilities, which is not "auto"')
        if learner.log_probability == 0:
            return {}
        found: dict[str, Any] = {"log_probabilities": self._gathered(log_probabilities)}
        if not is_open:
            return found
        held = range(len(self.groups))
        if development is not None:
            if not 0 <= development < len(self.corpora):
                raise InputError(f"there is no candidate corpus {development}; there are {len(self.corpora)}, from 0")
            held = range(self.firsts[development], self.firsts[development + 1])
            found["development"] = [*held]
        mean = self._gathered(group_weights)[[self.groups[number][0] for number in held]].mean()
        return found | {"worth": self._gathered(candidate_worth) / (mean or 1.0)}

    def _gathered(self, read: Callable[[Corpus], NDArray[np.float64]]) -> NDArray[np.float64]:
        return np.concatenate([read(corpus) for corpus in self.corpora])


@dataclass(frozen=True)
class ForestSpeed:
    """A forest beside the sum over the trees it stands for, measured."""

    forest_seconds: float  # per candidate
    sum_seconds: float

    @property
    def ratio(self) -> float:
        return self.sum_seconds / self.forest_seconds


def forest_speed(ranker: Ranker, learner: CandidateRanker, candidates: Packed) -> ForestSpeed | None:
    """How long both take for some of the training candidates; None for a ranker without a forest."""
    forest, needed = ranker.forest, learner.support()
    if forest is None or not needed.any():
        return None
    some = candidates.structures(0, min(len(candidates), TIMED))
    support = candidates.take(np.flatnonzero(needed))
    by_forest = _seconds(lambda: forest.changes(some))
    by_sum = _seconds(lambda: counted(ranker.kernel.tile(support, some)))
    return ForestSpeed(by_forest / len(some), by_sum / len(some))


def _seconds(once: Callable[[], object]) -> float:
    """The shorter of two runs after one to warm up."""
    once()
    taken = []
    for _ in range(2):
        begin = perf_counter()
        once()
        taken.append(perf_counter() - begin)
    return min(taken)


def _are_rows(corpus: Corpus, rows: Packed, begin: int) -> bool:
    """Whether these are the structures of a packed corpus from `begin` on."""
    if begin + len(corpus) > len(rows):
        return False
    there, here = rows.structures(begin, begin + len(corpus)).arrays(), corpus.packed(like=rows).arrays()
    names = ("starts", "symbols", "link_indptr", "link_targets", "tags")
    return all(np.array_equal(there[name], here[name]) for name in names if name in there)
