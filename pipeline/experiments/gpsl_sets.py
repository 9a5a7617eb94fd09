"""The four CRF++ sets: tokens as sets of features, the published folds, and the numbers that are known of each set.

`<set>.tok.gz` holds one token per line, `label<TAB>indices`, a blank line between sentences; `<set>.labels.tsv` names
the label numbers; every line of a split file is a permutation of the sentence numbers from 1, training ones first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.observations.base import inverse_norms
from gramline.kernels.packing import Packed
from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.arrays import Indices
from gramline.learners.operators.dense import DenseGram
from gramline.learners.token_features import feature_matrix
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.textfile import read_lines
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Run

FOLDER = "gpstruct"


@dataclass(frozen=True)
class Fold:
    """Numbers of the training and of the held-out sentences."""

    train: Indices
    test: Indices

    def inner(self, n_folds: int) -> list[Fold]:
        """Folds of the training sentences alone."""
        assigned = np.arange(len(self.train)) % n_folds
        return [Fold(self.train[assigned != k], self.train[assigned == k]) for k in range(n_folds)]


@dataclass(frozen=True)
class TokenSet:
    """Sentences whose tokens are sets of active features, with labels, and the folds of the experiment."""

    corpus: Corpus
    folds: tuple[Fold, ...]

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Linear kernel: the number of features two tokens share, shape (n_tokens, n_tokens)."""
        packed = self.corpus.packed()
        features = feature_matrix(packed, len(packed.vocabulary.features))
        product: NDArray[np.float64] = (features @ features.T).toarray()
        return product

    def grams(self, fold: Fold, *, is_cosine: bool = False) -> tuple[DenseGram, DenseGram]:
        """(training Gram, Gram between training and held-out tokens); `is_cosine`: with 1 on the diagonal."""
        lengths = self.corpus.lengths
        starts = offsets_from_lengths(lengths)
        train, test = (indices_of_ranges(starts[part], lengths[part]) for part in (fold.train, fold.test))
        square, across, diagonal = (
            self.gram[np.ix_(train, train)],
            self.gram[np.ix_(train, test)],
            np.diagonal(self.gram),
        )
        if is_cosine:
            inverse = inverse_norms(diagonal)  # 0 for a token without features
            square *= inverse[train, None] * inverse[train]
            across *= inverse[train, None] * inverse[test]
            diagonal = (diagonal > 0).astype(np.float64)
        own = lengths[fold.train]
        return DenseGram(square, own), DenseGram(across, own, lengths[fold.test], col_diagonal=diagonal[test])

    def packed(self, fold: Fold) -> tuple[Packed, Packed]:
        """Training and held-out sentences with their features."""
        train = self.corpus.select(fold.train).packed()
        return train, self.corpus.select(fold.test).packed(like=train)

    def labels_of(self, sentences: Indices) -> list[list[str | None]]:
        return [self.corpus.labels[k] for k in sentences.tolist()]

    def is_right(self, predicted: Sequence[Sequence[str]], sentences: Indices) -> NDArray[np.bool_]:
        """Of all tokens of these sentences, one after another: whether the predicted label is the right one."""
        guess, gold = (np.array(list(chain.from_iterable(rows))) for rows in (predicted, self.labels_of(sentences)))
        return np.asarray(guess == gold)

    def loss(self, predicted: Sequence[Sequence[str]], sentences: Indices) -> float:
        """The share of their tokens with a wrong predicted label."""
        return float((~self.is_right(predicted, sentences)).mean())


@dataclass(frozen=True)
class Paper:
    """One set of the data folder, and what is known of it: Hamming losses in per cent, seconds of one training."""

    title: str
    name: str  # of its files
    splits: str
    n_train: int
    losses: tuple[float, float, float]  # GPSL1, GPSL2, GPSL4
    seconds: float  # GPSL1
    crf: float  # not the paper's, as the next two: measured on the five published folds
    best: float  # the best of structural SVMs and a Gaussian process per token
    peer_seconds: float | None  # that Gaussian process, scikit-learn's, per fold
    printed_peers: tuple[float, float, float]  # CRF, structural SVM and GPstruct, the paper's own

    @property
    def printed(self) -> dict[str, float]:
        """The peers whose losses the paper printed."""
        return dict(zip(("CRF", "SSVM", "GPstruct"), self.printed_peers, strict=True))

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(f"{FOLDER}/{name}" for name in (f"{self.name}.tok.gz", f"{self.name}.labels.tsv", self.splits))

    def is_there(self, run: Run) -> bool:
        return all((run.data / name).is_file() for name in self.files)

    def read(self, run: Run, n_published: int, n_drawn: int) -> TokenSet:
        """The sentences that the splits use, with the first `n_published` folds and `n_drawn` random ones."""
        tokens, names, splits = (run.file(name) for name in self.files)
        published = _splits(splits)[:n_published]
        if not published:
            raise InputError(f"{splits} holds no split; every line must be a permutation of the sentence numbers")
        n_sentences = len(published[0])
        drawn = [np.random.default_rng([run.seed, k]).permutation(n_sentences) for k in range(n_drawn)]
        folds = tuple(Fold(order[: self.n_train], order[self.n_train :]) for order in [*published, *drawn])
        return TokenSet(_corpus(tokens, _label_names(names), n_sentences), folds)


SETS = (
    Paper(
        "Segmentation",
        "segmentation",
        "splits_36.txt",
        20,
        (23.45, 23.51, 23.53),
        17,
        16.02,
        14.96,
        2.5,
        (24.10, 23.46, 23.55),
    ),
    Paper(
        "Chunking",
        "chunking",
        "splits_100.txt",
        50,
        (13.02, 12.69, 12.70),
        1090,
        8.46,
        7.91,
        12,
        (11.76, 10.71, 12.56),
    ),
    Paper(
        "Japanese NE",
        "japanesene",
        "splits_100.txt",
        50,
        (8.26, 7.86, 7.82),
        1240,
        5.60,
        4.75,
        None,
        (7.76, 6.17, 7.79),
    ),
    Paper(
        "Base NP",
        "basenp",
        "splits_300.txt",
        150,
        (5.73, 5.55, 5.54),
        6010,
        4.91,
        4.86,
        68,
        (5.21, 5.19, 5.66),
    ),
)


def present_sets(run: Run) -> tuple[list[Paper], tuple[str, ...]]:
    """The sets that the data folder holds, of all or (quick) of the smallest one; a note for each that is missing."""
    wanted = [paper for paper in SETS if not run.quick or paper.title == "Segmentation"]
    present = [paper for paper in wanted if paper.is_there(run)]
    if not present:
        raise InputError(f"{run.data} holds none of {', '.join(wanted[0].files)}; --data must name their folder")
    absent = [paper.title for paper in wanted if paper not in present]
    return present, tuple(f"{title} is not in the data folder: left out" for title in absent)


def _splits(path: Path) -> list[Indices]:
    orders = [np.array(line.split(), np.int64) - 1 for line in path.read_text("utf-8").splitlines() if line.strip()]
    for number, order in enumerate(orders, 1):
        if not np.array_equal(np.sort(order), np.arange(len(orders[0]))):
            raise InputError(f"{path}, line {number} is not a permutation of 1 to {len(orders[0])}")
    return orders


def _label_names(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines()
    return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines if line}


def _corpus(path: Path, names: dict[str, str], n_sentences: int) -> Corpus:
    """The first sentences of the file."""
    X: list[list[list[str]]] = []
    y: list[list[str]] = []
    groups = groupby(enumerate(read_lines(path), 1), key=lambda numbered: bool(numbered[1].strip()))
    for sentence in islice((list(lines) for has_tokens, lines in groups if has_tokens), n_sentences):
        tokens = [(number, *line.partition("\t")) for number, line in sentence]
        for number, label, *_ in tokens:
            if label not in names:
                raise InputError(f"{path}, line {number} has label number {label!r}, which has no name")
        X.append([features.split() for *_, features in tokens])
        y.append([names[label] for _, label, *_ in tokens])
    if len(X) < n_sentences:
        raise InputError(f"{path} holds {len(X)} sentences, but its splits name {n_sentences}")
    return Corpus.from_sequences(X, y)
