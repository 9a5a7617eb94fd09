"""The conditional random field of python-crfsuite, a peer in comparisons; optional (`gramline[compare]`)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.token_features import feature_names

try:
    import pycrfsuite
except ImportError:  # optional
    pycrfsuite = None

NOT_INSTALLED = "python-crfsuite is not installed (pip install 'gramline[compare]')"
MISSING_NOTE = f"{NOT_INSTALLED}, so the CRF is left out"
Item = list[str] | dict[str, float]  # the features of one position: names, or names with values


def has_crf() -> bool:
    return pycrfsuite is not None


def missing_crf() -> tuple[str, ...]:
    """A note for the tables of experiments, when the CRF is left out."""
    return () if has_crf() else (MISSING_NOTE,)


def named_features(packed: Packed) -> list[list[Item]]:
    """Feature names of every position of every sequence, with their values where these are not all 1."""
    names = feature_names(packed)
    bounds = packed.features.indptr.tolist()
    flat = [names[column] for column in packed.features.indices.tolist()]
    positions: list[Item] = [flat[first:last] for first, last in pairwise(bounds)]
    if packed.features.values is not None:
        values = packed.features.values.tolist()
        positions = [dict(zip(flat[first:last], values[first:last], strict=True)) for first, last in pairwise(bounds)]
    return [positions[first:last] for first, last in pairwise(packed.starts.tolist())]


def named_labels(packed: Packed) -> list[list[str]]:
    """Label names of every sequence of a fully labeled corpus."""
    names = [packed.vocabulary.labels[code] for code in packed.labels.tolist()]
    return [names[first:last] for first, last in pairwise(packed.starts.tolist())]


def train_crf(features: Sequence[Sequence[Item]], labels: Sequence[Sequence[str]], path: Path) -> None:
    """Train with the defaults of python-crfsuite (L-BFGS) and write the model to `path`."""
    trainer = pycrfsuite.Trainer(verbose=False)
    for sequence, answer in zip(features, labels, strict=True):
        trainer.append(sequence, answer)
    trainer.train(str(path))


@contextmanager
def trained_tagger(features: Sequence[Sequence[Item]], labels: Sequence[Sequence[str]]) -> Iterator[Any]:
    """A tagger trained on labeled sequences."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crf.model"
        train_crf(features, labels, path)
        tagger = pycrfsuite.Tagger()
        with tagger.open(str(path)):
            yield tagger


def crf_predictions(train: Packed, test: Packed) -> list[list[str]]:
    """Labels of the test sequences by a CRF trained on the training sequences."""
    with trained_tagger(named_features(train), named_labels(train)) as tagger:
        return [tagger.tag(sequence) for sequence in named_features(test)]


def crf_marginals(train: Packed, test: Packed, labels: Sequence[str]) -> NDArray[np.float64]:
    """P(y_t | x) of every test position by a CRF trained on the training sequences, shape (n, n_labels)."""
    with trained_tagger(named_features(train), named_labels(train)) as tagger:
        known = set(tagger.labels())
        rows = []
        for sequence in named_features(test):
            tagger.set(sequence)
            rows += [
                [tagger.marginal(label, position) if label in known else 0.0 for label in labels]
                for position in range(len(sequence))
            ]
    table = np.array(rows).reshape(-1, len(labels))
    return np.asarray(table / table.sum(axis=1, keepdims=True))
