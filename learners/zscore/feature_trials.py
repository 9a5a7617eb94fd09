"""Which ridges label hidden structures best, with explicit sparse features: G = F F^T, used in products alone."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from gramline.learners.arrays import Floats
from gramline.learners.chains.moments import ChainStatistics
from gramline.learners.linear_algebra.conjugate_gradient import solve_together
from gramline.learners.zscore.ridge_choice import HiddenFold, RidgeSetting, Trial, hidden_folds

SMALLEST = 1e-6  # of the mean diagonal: stands in for a ridge of 0, at which the transition ridge can be chosen as well


class FeatureTrials:
    """One training set, and its trials so far: settings with the same ridges share them."""

    def __init__(self, features: csr_array, statistics: ChainStatistics) -> None:
        self.features = features
        self.statistics = statistics
        self._trials: dict[tuple[float, ...], list[Trial]] = {}

    def chosen(self, setting: RidgeSetting) -> tuple[float, float]:
        """(ridge, transition ridge) that the setting says or that its trials choose."""
        folds = hidden_folds(self.statistics) if setting.is_open else []
        ridges = setting.ridges(self.statistics.n_labels, self._typical(), is_fixed=not folds)
        if ridges not in self._trials and folds:
            self._trials[ridges] = [self._trial(fold, ridges) for fold in folds]
        return setting.best(self._trials[ridges] if folds else [], ridges, self.statistics)

    def _typical(self) -> float:
        """The mean diagonal of F F^T."""
        return float((self.features.data**2).sum() / max(self.features.shape[0], 1))

    def _trial(self, fold: HiddenFold, ridges: tuple[float, ...]) -> Trial:
        rows = self.features[fold.visible]
        columns = rows.T.tocsr()

        def apply(blocks: dict[int, Floats]) -> dict[int, Floats]:
            return {0: np.asarray(rows @ (columns @ blocks[0]))}

        steps = fold.steps(ridges, SMALLEST * self._typical() / self.statistics.n_labels)
        (solutions,) = solve_together(apply, [steps])
        weights = np.asarray(columns @ np.hstack([solution.value for solution in solutions]))
        scores = np.split(np.asarray(self.features @ weights), len(ridges), axis=1)
        return Trial(fold, dict(zip(ridges, scores, strict=True)))
