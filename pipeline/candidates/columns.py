"""What a corpus of candidates says of itself in its columns: which structures belong together and how good each is.

`group`        the sentence a candidate belongs to, a number or a name
`score`        between 0 and 1; the best candidate of a group counts as the correct one
`probability`  logarithm of its probability; only rankers in whose scores it has a weight need it
`weight`       how much a group counts in the total: constituents of the right parse; 1 when there is no such column
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.candidates.log_probability import below_first
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError


@dataclass(frozen=True)
class Groups:
    """Candidates of every group, by structure number, in the order of the corpus."""

    names: list[Any]
    members: list[list[int]]

    @classmethod
    def of(cls, corpus: Corpus) -> Groups:
        """The groups of a corpus in the order they appear."""
        members: dict[Any, list[int]] = {}
        for structure, name in enumerate(_column(corpus, "group")):
            if name is None:
                raise InputError("the candidate has no group", advice="give every candidate one", structure=structure)
            members.setdefault(name, []).append(structure)
        return cls(list(members), list(members.values()))

    def __len__(self) -> int:
        return len(self.names)

    def correct_first(self, corpus: Corpus) -> list[list[int]]:
        """Training groups: the first candidate of the best score, then all of lower scores."""
        scores = _numbers(corpus, "score")
        groups = []
        for members in self.members:
            best = max(members, key=lambda member: scores[member])
            groups.append([best, *(member for member in members if scores[member] < scores[best])])
        return groups


@dataclass(frozen=True)
class RankingScore:
    """Weighted mean scores over groups, each between 0 and 1."""

    n_groups: int
    n_candidates: int
    chosen: float
    first: float  # of the first candidate: the most probable one
    oracle: float  # of the best candidate
    best_chosen: float  # part of the groups in which no candidate is better than the chosen one

    @property
    def error_reduction(self) -> float:
        """Part of the error of the first candidates that is gone."""
        return (self.chosen - self.first) / (1 - self.first) if self.first < 1 else 0.0

    def notes(self, where: str) -> list[str]:
        """What to say where the first candidates are better than those chosen in `where`."""
        if self.chosen >= self.first:
            return []
        return [below_first(self.chosen, self.first, where, "give log probabilities a weight (log_probability=auto), ")]

    def to_dict(self) -> dict[str, Any]:
        return {**vars(self), "error_reduction": self.error_reduction}


def ranking_score(corpus: Corpus, chosen: Sequence[int], missing: Sequence[float] = ()) -> RankingScore:
    """How good the chosen candidates (counted from 0 within each group) are.

    `missing` are the weights of sentences without a candidate: they score 0 whatever is chosen.
    """
    groups, scores = Groups.of(corpus), np.array(_numbers(corpus, "score"))
    weights = group_weights(corpus)
    picked = np.array([members[k] for members, k in zip(groups.members, chosen, strict=True)], np.int64)
    first = np.array([members[0] for members in groups.members], np.int64)
    best = np.array([scores[members].max() for members in groups.members])
    share = weights[first]
    total = float(share.sum() + np.sum(missing)) or 1.0
    return RankingScore(
        n_groups=len(groups) + len(missing),
        n_candidates=len(corpus),
        chosen=float(share @ scores[picked]) / total,
        first=float(share @ scores[first]) / total,
        oracle=float(share @ best) / total,
        best_chosen=float((scores[picked] >= best).mean()),
    )


def log_probabilities(corpus: Corpus) -> NDArray[np.float64]:
    """Of every candidate, shape (n_candidates,)."""
    return np.array(_numbers(corpus, "probability"))


def candidate_worth(corpus: Corpus) -> NDArray[np.float64]:
    """Score times weight of every candidate, shape (n_candidates,)."""
    return np.array(_numbers(corpus, "score")) * group_weights(corpus)


def group_weights(corpus: Corpus) -> NDArray[np.float64]:
    """How much the group of every candidate counts, shape (n_candidates,)."""
    has_weights = "weight" in corpus.table.column_names
    return np.array(_numbers(corpus, "weight")) if has_weights else np.ones(len(corpus))


def _numbers(corpus: Corpus, name: str) -> list[float]:
    values = _column(corpus, name)
    for structure, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise InputError(f"the {name} must be a number, got {value!r}", structure=structure)
    return [float(value) for value in values]


def _column(corpus: Corpus, name: str) -> list[Any]:
    if name not in corpus.table.column_names:
        advice = "`gramline corpus candidates` writes corpora that have one"
        raise InputError(f"the corpus has no column {name!r}", advice=advice)
    return corpus.column(name)
