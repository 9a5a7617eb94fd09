"""Whether a fitted model has learned more than the most frequent label, from a sample of its training structures."""

from __future__ import annotations

from collections import Counter

import numpy as np

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.models.model import Model

SAMPLE = 200  # training structures that are predicted again


def no_better_than_majority(model: Model, corpus: Corpus) -> str | None:
    """One sentence on a model that labels its own training structures no better than their most frequent label does.

    None for a better one, and where there is only one label. At most 200 structures, spread over the corpus, are
    predicted; positions without a label do not count.
    """
    if sum(map(bool, corpus.label_counts().values())) < 2:
        return None
    chosen = np.unique(np.linspace(0, len(corpus) - 1, min(SAMPLE, len(corpus))).astype(np.int64))
    sample = corpus.select(chosen.tolist())
    pairs = [
        (label, guess)
        for labels, guesses in zip(sample.labels, model.predict(sample.without_labels()), strict=True)
        for label, guess in zip(labels, guesses, strict=True)
        if label is not None
    ]
    model.notes.clear()
    counts = Counter(label for label, _ in pairs)
    if len(counts) < 2:
        return None
    label, most = counts.most_common(1)[0]
    n_right = sum(label == guess for label, guess in pairs)
    if n_right > most:
        return None
    return (
        f"{n_right / len(pairs):.1%} of the labels of its own training structures are right, and {label!r} everywhere "
        f"would be right at {most / len(pairs):.1%}: try more features (words described by spelling, with their "
        "neighbours), a kernel that compares features (position, with a polynomial observation kernel), "
        "or no kernel and no learner, which takes the recommended ones"
    )
