"""A trained ranker that needs nothing else: learner, kernel, and the sums it decides by.

Sums over parses are kept as one forest of distinct subtrees, also when hypotheses vote; sums over other structures keep
the structures.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packable, Packed, PackedParses
from gramline.kernels.structures.forest import WeightedForest
from gramline.kernels.structures.forest_sequence import ForestSequence
from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.learners.candidates.groups import Ballot, batches_within_size, candidate_groups
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.errors import LearnerError
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.candidates.columns import Groups
from gramline.pipeline.candidates.columns import log_probabilities as read_log_probabilities
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import Cost
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.new_structures import pack_like
from gramline.pipeline.models.saved import (
    SavedLearner,
    check_forest_arrays,
    check_hypotheses,
    check_log_probability,
    check_rows,
    describe_learner,
    load_learner,
    save_learner,
)
from gramline.pipeline.storage.places import RANKER

CHANGES = 1 << 23  # changes of scores held at once while hypotheses vote: 64 MB, and as much for their sizes

Forest = WeightedForest | ForestSequence


@dataclass(frozen=True, eq=False)
class Ranker:
    """A fitted ranker with what its choices need.

    With a forest, `support` holds no structure but the vocabulary; otherwise it holds the training structures that the
    learner's sums name.

    >>> from gramline.kernels import SubsetTree
    >>> from gramline.learners import DenseGram, RankingPerceptron
    >>> from gramline.pipeline import Corpus, Ranker
    >>> parses = Corpus.from_parses([["S", ["A", "x"]], ["S", ["B", "y"]]])
    >>> learner = RankingPerceptron(passes=3).fit(DenseGram.of(SubsetTree(), parses), [[0, 1]])  # the right one first
    >>> ranker = Ranker.of(learner, parses, SubsetTree())
    >>> ranker.choose(Corpus.from_parses([["S", ["B", "y"]], ["S", ["A", "x"]]]), [[0, 1]])
    [1]
    """

    learner: CandidateRanker
    kernel: Kernel
    support: Packed
    forest: Forest | None
    cost: Cost | None = None  # of its training, where that is known

    @classmethod
    def of(cls, learner: CandidateRanker, corpus: Packable | Packed, kernel: Kernel) -> Ranker:
        """The ranker of a learner that was fitted on the Gram matrix of this kernel over this corpus."""
        learner.require_fitted()
        packed = kernel.prepare(corpus if isinstance(corpus, Packed) else corpus.packed())
        if learner.n_rows != len(packed):
            raise LearnerError(
                f"the learner was trained on {learner.n_rows} candidates, but the corpus has {len(packed)}; "
                "give the corpus that its Gram matrix was built from"
            )
        needed = learner.support()
        support, reduced = packed.take(np.flatnonzero(needed)), learner.restricted(np.flatnonzero(needed))
        forest = _forest(reduced, support, kernel)
        return cls(reduced, kernel, support, None) if forest is None else cls._with(reduced, kernel, support, forest)

    @classmethod
    def _with(cls, learner: CandidateRanker, kernel: Kernel, support: Packed, forest: Forest) -> Ranker:
        return cls(learner.without_rows(), kernel, support.structures(0, 0), forest)

    # ---- choices

    def choose(
        self,
        corpus: Packable | Packed,
        groups: Sequence[Sequence[int]] | None = None,
        log_probabilities: ArrayLike | None = None,
    ) -> list[int]:
        """The chosen candidate of each group, counted from 0 within it; groups are those of the corpus by default.

        So are the log probabilities of the candidates, where they have a weight in the scores.
        """
        return [int(votes.argmax()) for votes in self.votes(corpus, groups, log_probabilities)]

    def votes(
        self,
        corpus: Packable | Packed,
        groups: Sequence[Sequence[int]] | None = None,
        log_probabilities: ArrayLike | None = None,
    ) -> list[NDArray[np.int64]]:
        """Votes of the hypotheses for the candidates of each group; of the one that decides when they do not vote."""
        if groups is None:
            if not isinstance(corpus, Corpus):
                raise InputError("packed candidates have no groups; give the structure numbers of each group")
            groups = Groups.of(corpus).members
        new = self.kernel.prepare(pack_like(corpus, self.support, "ranker"))
        if log_probabilities is None and self.learner.log_probability_ != 0 and isinstance(corpus, Corpus):
            log_probabilities = read_log_probabilities(corpus)
        offsets = self.learner.offsets(log_probabilities, len(new))
        candidates = candidate_groups(groups, len(new))
        if self.forest is None:
            return self._votes_from_support(new, candidates, offsets)
        counts = self.learner.hypothesis_counts
        votes: list[NDArray[np.int64]] = []
        for batch in batches_within_size(candidates, max(1, CHANGES // max(1, len(counts)))):
            columns = np.concatenate([candidates[group] for group in batch])
            ballot = Ballot([len(candidates[group]) for group in batch], offsets[columns])
            wanted, places = np.unique(columns, return_inverse=True)
            is_wanted = np.zeros(len(new), np.bool_)
            is_wanted[wanted] = True
            changes, magnitudes = self.forest.changes(new.take(np.flatnonzero(is_wanted)))
            ballot.add(changes[:, places], magnitudes[:, places], counts)
            votes.extend(ballot.votes())
        return votes

    def _votes_from_support(
        self, new: Packed, candidates: list[NDArray[np.int64]], offsets: NDArray[np.float64]
    ) -> list[NDArray[np.int64]]:
        cross: GramOperator = ComputedGram(self.kernel, self.support, new)
        if isinstance(self.learner, RankingPerceptron) and self.learner.is_voting:
            return self.learner.votes(cross, candidates, offsets)
        chosen = self.learner.choices(cross, candidates, offsets)
        return [np.bincount([k], minlength=len(columns)) for k, columns in zip(chosen, candidates, strict=True)]

    # ---- what it is

    def describe(self) -> dict[str, Any]:
        """What it is, as a small JSON-able dictionary; with the size of the forest beside that of its trees."""
        description = describe_learner(self.learner, self.kernel, self.support) | {
            "labels": [],
            "hypotheses": len(self.learner.hypothesis_counts),
            "log_probability": self.learner.log_probability_,
        }
        if self.forest is None:
            return description | {
                "support_structures": len(self.support),
                "support_positions": self.support.n_positions,
                "forest": None,
            }
        size = self.forest.size
        return description | {
            "support_structures": size.n_trees,
            "support_positions": size.n_nodes,
            "forest": {"trees": size.n_trees, "nodes": size.n_nodes, "subtrees": size.n_subtrees, "ratio": size.ratio},
        }

    # ---- disk

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the ranker, whole or not at all; `overwrite` replaces a model or a ranker, and nothing else."""
        more = {} if self.forest is None else {"forest": self.forest.to_arrays()}
        saved = SavedLearner(self.learner, self.kernel, self.support, more, cost=self.cost)
        save_learner(path, RANKER, saved, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Ranker:
        """Read a ranker that `save` wrote."""
        return load_learner(path, {RANKER: cls.from_saved})

    @classmethod
    def from_saved(cls, saved: SavedLearner) -> Ranker:
        """The ranker that was saved; its parts are checked against each other."""
        learner, kernel, support = saved.learner, saved.kernel, saved.support
        if not isinstance(learner, CandidateRanker):
            raise LearnerError(f"{learner.name} ranks nothing")
        if kernel is None:
            raise LearnerError("a ranker needs the kernel of its Gram matrix")
        if isinstance(learner, RankingPerceptron):
            check_hypotheses(learner)
        check_log_probability(learner)
        forest = _forest_from(learner, kernel, saved.more.get("forest", {}), len(support.vocabulary.symbols))
        if forest is None:
            check_rows(learner, len(support))
        return cls(learner, kernel, support, forest, saved.cost)


def _forest(learner: CandidateRanker, support: Packed, kernel: Kernel) -> Forest | None:
    if not isinstance(kernel, SubsetTree) or not isinstance(support, PackedParses):
        return None
    if isinstance(learner, RankingPerceptron) and learner.is_voting:
        return ForestSequence.of(kernel, support, learner.updates_[:, 0], learner.updates_[:, 1])
    return WeightedForest.of(kernel, support, learner.deciding_weights)


def _forest_from(
    learner: CandidateRanker, kernel: Kernel, arrays: dict[str, NDArray[Any]], n_productions: int
) -> Forest | None:
    if not arrays:
        return None
    if not isinstance(kernel, SubsetTree):
        raise LearnerError(f"a forest belongs to the subset-tree kernel, not to {kernel.name}")
    check_forest_arrays(arrays, n_productions)
    kept: type[Forest] = ForestSequence if learner.is_voting else WeightedForest
    return kept.from_arrays(kernel, arrays)
