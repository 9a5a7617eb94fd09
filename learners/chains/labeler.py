"""What all chain labelers share once they can score positions: decoding, path scores, and how unusual a labeling is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from math import erfc, sqrt
from typing import Any, NamedTuple

import numpy as np

from gramline.kernels.packing import MISSING, Packable, Packed
from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.chains.constraints import allowed_steps
from gramline.learners.chains.dual_sums import dual_sums, sized
from gramline.learners.chains.moments import path_moments
from gramline.learners.chains.viterbi import path_scores, viterbi
from gramline.learners.errors import LabelError
from gramline.learners.estimator import Learner, Unlabeled
from gramline.learners.labels import Labels, decode_labels, label_lists
from gramline.learners.operators.operator import GramOperator, check_cross, is_operator
from gramline.learners.token_features import emission_scores, known_features, label_names, packed_sequences

Evidence = Any  # Packable | Packed | GramOperator: what a fitted labeler reads


class ChainScores(NamedTuple):
    """What positions add to the score of a path."""

    emission: Floats  # S, shape (n_positions, n_labels)
    starts: Offsets  # of the structures
    sizes: Floats | None = None  # of the numbers summed into each row of S; None: only equal scores tie


class ChainLabeler(Learner):
    """score(x, y) = sum_k S[k, y_k] + sum_{k > 0} T[y_{k-1}, y_k]; predicts the best path."""

    unlabeled: Unlabeled  # what `fit` does with structures that lack a label, unless `partial_labels` says otherwise
    constraints: str  # which paths may be predicted

    transition_: Floats  # T, [previous][current]
    label_names_: tuple[str, ...]

    @abstractmethod
    def _scores(self, evidence: Evidence) -> ChainScores:
        """The scores of all positions."""

    def decision_scores(self, evidence: Evidence) -> Floats:
        """Emission scores S of every position, shape (n_positions, n_labels)."""
        return self._scores(evidence).emission

    def predict(self, evidence: Evidence) -> list[list[str]]:
        """The best label path of every structure; the lowest label wins a tie."""
        return self.decoded(self._scores(evidence))

    def decoded(self, scores: ChainScores) -> list[list[str]]:
        """The best label path of every structure from the scores of its positions."""
        emission, starts, sizes = scores
        allowed = allowed_steps(self.constraints, self.label_names_)
        path, _ = viterbi(emission, self.transition_, starts, sizes, allowed)
        return decode_labels(path, self.label_names_, np.diff(starts))

    def score_paths(self, evidence: Evidence, labels: Labels | None = None) -> Floats:
        """Scores of the given label paths (those the corpus carries when none are given), shape (n_structures,)."""
        scores, starts, _ = self._scores(evidence)
        return path_scores(scores, self.transition_, starts, self._codes(evidence, labels, starts))

    def z_scores(self, evidence: Evidence, labels: Labels | None = None) -> Floats:
        """(score - mean) / standard deviation over all label paths of each structure, shape (n_structures,).

        0 where all paths score the same.
        """
        scores, starts, _ = self._scores(evidence)
        reached = path_scores(scores, self.transition_, starts, self._codes(evidence, labels, starts))
        mean, variance = path_moments(scores, self.transition_, starts)
        # a variance of rounding size is a constant score
        size = np.abs(scores).max(initial=0.0) + np.abs(self.transition_).max(initial=0.0)
        varies = variance > (1e-12 * size) ** 2
        return np.where(varies, (reached - mean) / np.sqrt(np.where(varies, variance, 1.0)), 0.0)

    def p_values(self, evidence: Evidence, labels: Labels | None = None) -> Floats:
        """Part of all label paths that score at least as high, by the normal approximation, shape (n_structures,)."""
        return np.array([erfc(z / sqrt(2.0)) / 2.0 for z in self.z_scores(evidence, labels).tolist()], np.float64)

    def _codes(self, evidence: Evidence, labels: Labels | None, starts: Offsets) -> Codes:
        """One known label code per position."""
        if labels is None and is_operator(evidence):
            raise LabelError("a Gram matrix carries no labels", advice="give the label paths to score")
        own = _own_labels(packed_sequences(evidence)) if labels is None else labels
        code_of: dict[str | None, int] = {name: code for code, name in enumerate(self.label_names_)}
        codes: list[int] = []
        for structure, path in enumerate(label_lists(own, np.diff(starts))):
            for position, label in enumerate(path):
                if label not in code_of:
                    raise LabelError(
                        "there is no label to score" if label is None else f"the model does not know {label!r}",
                        advice=f"it knows {', '.join(self.label_names_)}",
                        structure=structure,
                        position=position,
                    )
                codes.append(code_of[label])
        return np.array(codes, np.int32)


def _own_labels(packed: Packed) -> list[list[str | None]]:
    assert MISSING == -1  # which picks the last name
    names: list[str | None] = [*label_names(packed), None]
    return decode_labels(packed.labels, names, packed.lengths)


def cross_scores(cross: GramOperator, weights: Floats, names: tuple[str, ...]) -> ChainScores:
    """G(train, new)^T @ weights, for as many columns as weights has."""
    check_cross(cross, len(weights), names)
    return ChainScores(cross.matmul(weights, transpose=True), cross.layout.cols.structure_starts)


def dual_scores(cross: GramOperator, weights: Floats, names: tuple[str, ...]) -> ChainScores:
    """S = G(train, new)^T A of dual weights A, and the size of the numbers that were summed."""
    check_cross(cross, len(weights), names)
    (own,) = dual_sums(cross, [sized(weights)])
    return ChainScores(own.sums, cross.layout.cols.structure_starts, own.sizes)


def predict_rows(
    learners: Sequence[ChainLabeler], weights: Sequence[Floats], gram: GramOperator
) -> list[list[list[str]]]:
    """What every fitted learner predicts for all rows of a square Gram from its dual weights, by one product."""
    starts = gram.layout.cols.structure_starts
    return [
        learner.decoded(ChainScores(own.sums, starts, own.sizes))
        for learner, own in zip(learners, dual_sums(gram, list(map(sized, weights))), strict=True)
    ]


def feature_scores(corpus: Packable | Packed, emission: Floats, names: Sequence[str]) -> ChainScores:
    """S = F E^T of weights per feature, E of shape (n_labels, n_features) with columns of these names."""
    packed = packed_sequences(corpus)
    scores, sizes = emission_scores(known_features(packed, names), emission)
    return ChainScores(scores, packed.starts, sizes)
