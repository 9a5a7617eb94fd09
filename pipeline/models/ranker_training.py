"""Rankers trained from a stored Gram matrix over candidates, and what their forests are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from gramline.kernels.packing import Packed
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.candidates.columns import Groups
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.model import chosen_structures
from gramline.pipeline.models.ranker import Ranker

TIMED = 100  # candidates that a forest and its trees are timed on


def fit_ranker(learner: RankingPerceptron, gram: Any, candidates: Sequence[Corpus]) -> Ranker:
    """Train on a stored Gram matrix over the candidates of one corpus, or of those appended after it as well."""
    rows: Packed = gram.row_corpus
    begin = 0
    groups: list[list[int]] = []
    for number, corpus in enumerate(candidates):
        if corpus.kind != rows.kind or not _are_rows(corpus, rows, begin):
            raise InputError(
                f"candidate corpus {number} is not the one that the Gram matrix was built from; give that one, and "
                "after it those that were appended, in order"
            )
        groups.extend([begin + row for row in group] for group in Groups.of(corpus).correct_first(corpus))
        begin += len(corpus)
    if begin != len(rows):
        raise InputError(f"the Gram matrix has {len(rows)} candidates, but the corpora given have {begin}; give all")
    return Ranker.of(learner.fit(gram, groups), rows, gram.kernel)


@dataclass(frozen=True)
class ForestSpeed:
    """A forest beside the sum over the trees it stands for, measured."""

    forest_seconds: float  # per candidate
    sum_seconds: float

    @property
    def ratio(self) -> float:
        return self.sum_seconds / self.forest_seconds


def forest_speed(ranker: Ranker, learner: RankingPerceptron, candidates: Packed) -> ForestSpeed | None:
    """How long both take for some of the training candidates; None for a ranker without a forest."""
    forest, needed = ranker.forest, learner.support()
    if forest is None or not needed.any():
        return None
    some = candidates.structures(0, min(len(candidates), TIMED))
    support = chosen_structures(candidates, needed)
    by_forest = _seconds(lambda: forest.changes(some))
    by_sum = _seconds(lambda: ranker.kernel.tile(support, some))
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
