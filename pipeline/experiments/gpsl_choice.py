"""Which of several Gaussian-process labelers a fold's own training sentences prefer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.pipeline.experiments.gpsl import flat
from gramline.pipeline.experiments.gpsl_data import FeatureSet, Fold

Make = Callable[[], GaussianProcessLabeler]


def fewest_wrong(candidates: Sequence[Make], data: FeatureSet, fold: Fold, n_folds: int) -> int:
    """The candidate with the fewest wrong tokens when folds of the training sentences are held out in turn.

    The first of equals; the test sentences take no part.
    """
    sentences = fold.train
    assigned = np.arange(len(sentences)) % n_folds
    inner = [Fold(sentences[assigned != k], sentences[assigned == k]) for k in range(n_folds)]
    return int(np.argmin([sum(n_wrong(make(), data, part) for part in inner) for make in candidates]))


def n_wrong(model: GaussianProcessLabeler, data: FeatureSet, fold: Fold) -> int:
    """Held-out tokens that the model gets wrong."""
    gram, cross = data.grams(fold)
    model.fit(gram, data.labels_of(fold.train))
    return int((flat(model.predict(cross)) != flat(data.labels_of(fold.test))).sum())


def loss(model: GaussianProcessLabeler, data: FeatureSet, fold: Fold) -> float:
    """The share of the held-out tokens that the model gets wrong."""
    return n_wrong(model, data, fold) / int(data.lengths[fold.test].sum())
