"""Training of the structured support vector machine on explicit features: E = F^T A is kept instead of A."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels.packing import Packed
from gramline.learners.arrays import Floats
from gramline.learners.kinds import RoundProgress
from gramline.learners.margins.atom_loops import Margin
from gramline.learners.margins.chain_problem import MOST_INNER, ChainProblem
from gramline.learners.margins.feature_loops import Emissions, visit_features
from gramline.learners.margins.passes import Bounds, Stopping, is_converged
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.packets import Scores
from gramline.learners.token_features import SparseRows, feature_matrix, feature_names, label_names, require_labels


class FeatureWeights(NamedTuple):
    """What was learned."""

    emission: Floats  # E, shape (n_labels, n_features)
    transition: Floats  # T, shape (n_labels, n_labels)
    trace: list[Bounds]


def train_on_features(
    packed: Packed, margin: Margin, stopping: Stopping, *, average: bool, progress: RoundProgress | None
) -> FeatureWeights:
    """Passes over all chains until the duality gap is small; the same steps as on the linear kernel of the features."""
    require_labels(packed)
    n_labels, n_features = len(label_names(packed)), len(feature_names(packed))
    matrix = feature_matrix(packed, n_features)
    layout = BlockLayout.of(packed.lengths, packed.n_positions)  # one block
    problem = ChainProblem.start(layout, packed.labels.astype(np.int32), n_labels, margin, stopping)
    emissions = Emissions(*np.zeros((2, n_features, n_labels)))
    features, every = SparseRows.of(matrix), np.arange(packed.n_positions)
    problem.most_inner = MOST_INNER
    while not problem.trace or not (is_converged(problem.trace[-1], stopping) or len(problem.trace) >= stopping.passes):
        problem.gained = visit_features(
            features,
            problem.chains,
            problem.atoms,
            emissions,
            problem.transitions,
            margin,
            problem.decoder,
            problem.n_visits,
            problem.is_inner,
        )
        problem.n_visits += len(problem.chains.firsts)
        problem.end_pass()
        if problem.is_inner:
            continue
        sums = np.ascontiguousarray(np.asarray(matrix @ emissions.weights).T)
        terms = problem.measure(0, every, Scores(sums, np.zeros(0)))
        problem.trace.append(problem.bounds(terms.hinge, float((emissions.weights**2).sum())))
        if progress is not None:
            progress(len(problem.trace), terms.n_inside)
    weights, transition = emissions.weights, problem.transitions.weights
    if average:
        total = float(problem.n_visits) * (problem.n_visits + 1)
        weights, (_, transition) = weights - emissions.lag / total, problem.average()
    return FeatureWeights(np.ascontiguousarray(weights.T), transition, problem.trace)
