"""The conditional random field of python-crfsuite, a peer in comparisons; optional (`gramline[compare]`).

Where it is compared with ours it labels by the best path and by the best label of every position, each with the
constant that gets the fewest labels of hidden training sequences wrong. Its loss is C2 |w|^2 - sum of log likelihoods.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.token_features import feature_names
from gramline.pipeline.crossval.folds import k_fold

try:
    import pycrfsuite
except ImportError:  # optional
    pycrfsuite = None

NOT_INSTALLED = "python-crfsuite is not installed (pip install 'gramline[compare]')"
MISSING_NOTE = f"{NOT_INSTALLED}, so the CRF is left out"
DEFAULT_C2 = 1.0  # of python-crfsuite
CONSTANTS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)  # c2 to choose from; of equally good ones the first
CHOOSING_FOLDS = 3  # of the training sequences
FEW_CONSTANTS, FEW_FOLDS = (3.0, 1.0, 0.3, 0.1), 2  # where a comparison shall not take long
VITERBI, MARGINALS = DECODINGS = ("Viterbi", "marginals")
CHOSEN_NOTE = (
    "CRF: python-crfsuite, by the best path (Viterbi) and by the best label of every position (marginals); its c2 of "
    f"{', '.join(f'{c2:g}' for c2 in CONSTANTS)} chosen for each"
)
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


class CrfLabels(NamedTuple):
    """What a CRF says of the test sequences."""

    by_decoding: dict[str, list[list[str]]]
    seconds: float  # of the processor, for its training


class ChosenCrf(NamedTuple):
    """The labels of one decoding by the CRF with the constant that was chosen for it."""

    labels: list[list[str]]
    c2: float
    wrong: int  # labels of hidden training sequences
    seconds: float  # of the processor, for its training


def train_crf(
    features: Sequence[Sequence[Item]], labels: Sequence[Sequence[str]], path: Path, c2: float = DEFAULT_C2
) -> None:
    """Train with the defaults of python-crfsuite (L-BFGS) but for c2, and write the model to `path`."""
    _train(_loaded(features, labels), path, c2)


@contextmanager
def trained_tagger(
    features: Sequence[Sequence[Item]], labels: Sequence[Sequence[str]], c2: float = DEFAULT_C2
) -> Iterator[Any]:
    """A tagger trained on labeled sequences."""
    with _tagger(_loaded(features, labels), c2) as tagger:
        yield tagger


def crf_predictions(train: Packed, test: Packed) -> list[list[str]]:
    """Labels of the test sequences by a CRF trained on the training sequences, both at their defaults."""
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


def crfs(train: Packed, test: Packed, constants: Sequence[float]) -> list[CrfLabels]:
    """Labels of the test sequences by a CRF of every constant."""
    return _crfs(named_features(train), named_labels(train), named_features(test), constants)


def chosen_crfs(
    train: Packed, test: Packed, constants: Sequence[float] = CONSTANTS, n_folds: int = CHOOSING_FOLDS
) -> dict[str, ChosenCrf]:
    """By decoding the labels of a CRF whose constant gets the fewest labels wrong over folds of the training part."""
    features, labels, tested = named_features(train), named_labels(train), named_features(test)
    chosen = _constants(features, labels, constants, n_folds)
    every = {c2: _crfs(features, labels, tested, [c2])[0] for c2 in {c2 for _, c2 in chosen.values()}}
    return {
        decoding: ChosenCrf(every[c2].by_decoding[decoding], c2, wrong, every[c2].seconds)
        for decoding, (wrong, c2) in chosen.items()
    }


def chosen_constants(
    train: Packed, constants: Sequence[float] = CONSTANTS, n_folds: int = CHOOSING_FOLDS
) -> dict[str, float]:
    """c2 by decoding, chosen as `chosen_crfs` does."""
    return {
        decoding: c2
        for decoding, (_, c2) in _constants(named_features(train), named_labels(train), constants, n_folds).items()
    }


def best_crf_predictions(train: Packed, test: Packed) -> list[list[str]]:
    """Labels of the test sequences by the decoding and the constant with the fewest wrong labels in training folds."""
    return min(chosen_crfs(train, test, FEW_CONSTANTS, FEW_FOLDS).values(), key=lambda one: one.wrong).labels


def decoded(tagger: Any, sequence: Sequence[Item]) -> dict[str, list[str]]:
    """The labels of a sequence by decoding."""
    tagger.set(sequence)
    names = tagger.labels()
    likely = [max(names, key=lambda name: tagger.marginal(name, place)) for place in range(len(sequence))]
    return {VITERBI: tagger.tag(), MARGINALS: likely}


def _constants(
    features: list[list[Item]], labels: list[list[str]], constants: Sequence[float], n_folds: int
) -> dict[str, tuple[int, float]]:
    """By decoding the fewest wrong labels, and the first constant that has them."""
    if len(features) < 2:
        return dict.fromkeys(DECODINGS, (0, DEFAULT_C2))
    wrong: dict[str, dict[float, int]] = {decoding: dict.fromkeys(constants, 0) for decoding in DECODINGS}
    folds = k_fold(len(features), min(n_folds, len(features)))
    for fold in range(len(folds)):
        training, held = folds.training(fold).tolist(), folds.held_out[fold].tolist()
        known, answers = [features[k] for k in training], [labels[k] for k in training]
        found = _crfs(known, answers, [features[k] for k in held], constants)
        for c2, one in zip(constants, found, strict=True):
            for decoding, predicted in one.by_decoding.items():
                wrong[decoding][c2] += _n_wrong(predicted, [labels[k] for k in held])
    best = {decoding: min(counts, key=lambda c2: counts[c2]) for decoding, counts in wrong.items()}
    return {decoding: (wrong[decoding][c2], c2) for decoding, c2 in best.items()}


def _n_wrong(predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]]) -> int:
    return sum(
        guess != right
        for path, answer in zip(predicted, gold, strict=True)
        for guess, right in zip(path, answer, strict=True)
    )


def _crfs(
    features: Sequence[Sequence[Item]],
    labels: Sequence[Sequence[str]],
    tested: Sequence[Sequence[Item]],
    constants: Sequence[float],
) -> list[CrfLabels]:
    begin = process_time()
    trainer, found = _loaded(features, labels), []
    loading = process_time() - begin
    for c2 in constants:
        begin = process_time()
        with _tagger(trainer, c2) as tagger:
            seconds = process_time() - begin + loading
            paths = [decoded(tagger, sequence) for sequence in tested]
            by_decoding = {decoding: [path[decoding] for path in paths] for decoding in DECODINGS}
            found.append(CrfLabels(by_decoding, seconds))
    return found


def _loaded(features: Sequence[Sequence[Item]], labels: Sequence[Sequence[str]]) -> Any:
    """A trainer that has the sequences; it can train with one constant after another."""
    trainer = pycrfsuite.Trainer(verbose=False)
    for sequence, answer in zip(features, labels, strict=True):
        trainer.append(sequence, answer)
    return trainer


def _train(trainer: Any, path: Path, c2: float) -> None:
    trainer.set("c2", c2)
    trainer.train(str(path))


@contextmanager
def _tagger(trainer: Any, c2: float) -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crf.model"
        _train(trainer, path, c2)
        tagger = pycrfsuite.Tagger()
        with tagger.open(str(path)):
            yield tagger
