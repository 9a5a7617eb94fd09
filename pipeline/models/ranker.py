"""A trained ranker that needs nothing else (learner, kernel, and the sums it decides by), and how it is trained.

Sums over parses are kept as one forest of distinct subtrees, also when hypotheses vote; sums over other structures keep
the structures.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packable, Packed, PackedParses
from gramline.kernels.structures.forest import WeightedForest
from gramline.kernels.structures.forest_sequence import ForestSequence
from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.learners.errors import LearnerError
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.counts import counted
from gramline.learners.operators.operator import GramOperator
from gramline.learners.perceptrons.candidate_groups import Ballot, batches_within_size, candidate_groups
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.candidates.columns import Groups
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import Cost, Spent
from gramline.pipeline.errors import InputError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, identity_of
from gramline.pipeline.models.new_structures import pack_like
from gramline.pipeline.models.saved import (
    SavedLearner,
    check_forest_arrays,
    check_hypotheses,
    check_rows,
    describe_learner,
    load_learner,
    save_learner,
)
from gramline.pipeline.storage.places import RANKER

CHANGES = 1 << 23  # changes of scores held at once while hypotheses vote: 64 MB, and as much for their sizes
TIMED = 100  # candidates that a forest and its trees are timed on

Forest = WeightedForest | ForestSequence


@dataclass(frozen=True, eq=False)
class Ranker:
    """A fitted ranking perceptron with what its choices need.

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

    learner: RankingPerceptron
    kernel: Kernel
    support: Packed
    forest: Forest | None
    cost: Cost | None = None  # of its training, where that is known

    @classmethod
    def of(cls, learner: RankingPerceptron, corpus: Packable | Packed, kernel: Kernel) -> Ranker:
        """The ranker of a learner that was fitted on the Gram matrix of this kernel over this corpus."""
        learner.require_fitted()
        packed = kernel.prepare(corpus if isinstance(corpus, Packed) else corpus.packed())
        if len(learner.weights_) != len(packed):
            raise LearnerError(
                f"the learner was trained on {len(learner.weights_)} candidates, but the corpus has {len(packed)}; "
                "give the corpus that its Gram matrix was built from"
            )
        needed = learner.support()
        support, reduced = packed.take(np.flatnonzero(needed)), learner.restricted(np.flatnonzero(needed))
        forest = _forest(reduced, support, kernel)
        return cls(reduced, kernel, support, None) if forest is None else cls._with(reduced, kernel, support, forest)

    @classmethod
    def _with(cls, learner: RankingPerceptron, kernel: Kernel, support: Packed, forest: Forest) -> Ranker:
        return cls(learner.without_rows(), kernel, support.structures(0, 0), forest)

    # ---- choices

    def choose(self, corpus: Packable | Packed, groups: Sequence[Sequence[int]] | None = None) -> list[int]:
        """The chosen candidate of each group, counted from 0 within it; groups are those of the corpus by default."""
        return [int(votes.argmax()) for votes in self.votes(corpus, groups)]

    def votes(
        self, corpus: Packable | Packed, groups: Sequence[Sequence[int]] | None = None
    ) -> list[NDArray[np.int64]]:
        """Votes of the hypotheses for the candidates of each group; of the one that decides when they do not vote."""
        if groups is None:
            if not isinstance(corpus, Corpus):
                raise InputError("packed candidates have no groups; give the structure numbers of each group")
            groups = Groups.of(corpus).members
        new = self.kernel.prepare(pack_like(corpus, self.support, "ranker"))
        candidates = candidate_groups(groups, len(new))
        if self.forest is None:
            return self._votes_from_support(new, candidates)
        counts = self.learner.counts_ if self.learner.is_voting else np.ones(1, np.int64)
        votes: list[NDArray[np.int64]] = []
        for batch in batches_within_size(candidates, max(1, CHANGES // max(1, len(counts)))):
            ballot = Ballot([len(candidates[group]) for group in batch])
            columns = np.concatenate([candidates[group] for group in batch])
            wanted, places = np.unique(columns, return_inverse=True)
            is_wanted = np.zeros(len(new), np.bool_)
            is_wanted[wanted] = True
            changes, magnitudes = self.forest.changes(new.take(np.flatnonzero(is_wanted)))
            ballot.add(changes[:, places], magnitudes[:, places], counts)
            votes.extend(ballot.votes)
        return votes

    def _votes_from_support(self, new: Packed, candidates: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        cross: GramOperator = ComputedGram(self.kernel, self.support, new)
        if self.learner.is_voting:
            return self.learner.votes(cross, candidates)
        chosen = self.learner.predict(cross, [columns.tolist() for columns in candidates])
        return [np.bincount([k], minlength=len(columns)) for k, columns in zip(chosen, candidates, strict=True)]

    # ---- what it is

    def describe(self) -> dict[str, Any]:
        """What it is, as a small JSON-able dictionary; with the size of the forest beside that of its trees."""
        description = describe_learner(self.learner, self.kernel, self.support) | {
            "labels": [],
            "hypotheses": len(self.learner.counts_) if self.learner.is_voting else 1,
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
        if not isinstance(learner, RankingPerceptron):
            raise LearnerError(f"{learner.name} ranks nothing")
        if kernel is None:
            raise LearnerError("a ranker needs the kernel of its Gram matrix")
        check_hypotheses(learner)
        forest = _forest_from(learner, kernel, saved.more.get("forest", {}), len(support.vocabulary.symbols))
        if forest is None:
            check_rows(learner, len(support))
        return cls(learner, kernel, support, forest, saved.cost)


def _forest(learner: RankingPerceptron, support: Packed, kernel: Kernel) -> Forest | None:
    if not isinstance(kernel, SubsetTree) or not isinstance(support, PackedParses):
        return None
    if learner.is_voting:
        return ForestSequence.of(kernel, support, learner.updates_[:, 0], learner.updates_[:, 1])
    return WeightedForest.of(kernel, support, learner.deciding_weights)


def _forest_from(
    learner: RankingPerceptron, kernel: Kernel, arrays: dict[str, NDArray[Any]], n_productions: int
) -> Forest | None:
    if not arrays:
        return None
    if not isinstance(kernel, SubsetTree):
        raise LearnerError(f"a forest belongs to the subset-tree kernel, not to {kernel.name}")
    check_forest_arrays(arrays, n_productions)
    kept: type[Forest] = ForestSequence if learner.is_voting else WeightedForest
    return kept.from_arrays(kernel, arrays)


def fit_ranker(
    learner: RankingPerceptron,
    gram: Any,
    candidates: Sequence[Corpus],
    *,
    checkpoint: TrainingCheckpoint | None = None,
    progress: Listener = silent,
) -> Ranker:
    """Train on a stored Gram matrix over the candidates of one corpus, or of those appended after it as well.

    A corpus says in its columns `group` and `score` which candidates belong together, and how good each is. With a
    `checkpoint` it goes on where it was interrupted, which `progress` hears of.

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
    if checkpoint is None:
        learner.fit(gram, groups)
    else:
        checkpoint.begin(identity_of(learner, gram, groups), progress)
        learner.fit(gram, groups, checkpoint=checkpoint)
    return replace(Ranker.of(learner, rows, gram.kernel), cost=spent.cost)


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
