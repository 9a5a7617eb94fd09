"""The four CRF++ sets: tokens as sets of features, the published folds, and the numbers that are known of each set.

`<set>.tok.gz` holds one token per line, `label<TAB>indices`, a blank line between sentences; `<set>.labels.tsv` names
the label numbers; every line of a split file is a permutation of the sentence numbers from 1, training ones first.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from gramline.kernels.ranges import indices_of_ranges, offsets_from_lengths
from gramline.learners.arrays import Indices
from gramline.learners.operators.dense import DenseGram
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
    """Sentences as sets of active features with labels, and the folds of the experiment."""

    sentences: tuple[tuple[tuple[int, ...], ...], ...]
    labels: tuple[tuple[str, ...], ...]
    folds: tuple[Fold, ...]

    @cached_property
    def lengths(self) -> Indices:
        return np.array([len(sentence) for sentence in self.sentences], np.int64)

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Linear kernel: the number of features two tokens share, shape (n_tokens, n_tokens)."""
        tokens = [token for sentence in self.sentences for token in sentence]
        flat = np.array([feature for token in tokens for feature in token], np.int64)
        _, columns = np.unique(flat, return_inverse=True)  # most of the declared columns are never used
        starts = offsets_from_lengths([len(token) for token in tokens])
        matrix = csr_matrix((np.ones(len(flat)), columns, starts), shape=(len(tokens), int(columns.max(initial=0)) + 1))
        product: NDArray[np.float64] = (matrix @ matrix.T).toarray()
        return product

    def grams(self, fold: Fold) -> tuple[DenseGram, DenseGram]:
        """(training Gram, Gram between training and held-out tokens)."""
        train, test = self._tokens(fold.train), self._tokens(fold.test)
        lengths, other = self.lengths[fold.train], self.lengths[fold.test]
        return (
            DenseGram(self.gram[np.ix_(train, train)], lengths),
            DenseGram(
                self.gram[np.ix_(train, test)], lengths, other, col_diagonal=np.diagonal(self.gram)[test].astype(float)
            ),
        )

    def features_of(self, sentences: Indices) -> list[list[list[str]]]:
        """The active features of every token, as names."""
        return [[[str(feature) for feature in token] for token in self.sentences[k]] for k in sentences.tolist()]

    def labels_of(self, sentences: Indices) -> list[list[str]]:
        return [list(self.labels[k]) for k in sentences.tolist()]

    def gold(self, sentences: Indices) -> NDArray[np.str_]:
        """The labels of all their tokens, one after another."""
        return flat(self.labels_of(sentences))

    def n_wrong(self, predicted: Sequence[Sequence[str]], sentences: Indices) -> int:
        """How many of their tokens have a wrong predicted label."""
        return int((flat(predicted) != self.gold(sentences)).sum())

    def loss(self, predicted: Sequence[Sequence[str]], sentences: Indices) -> float:
        """The share of their tokens with a wrong predicted label."""
        return self.n_wrong(predicted, sentences) / int(self.lengths[sentences].sum())

    def _tokens(self, sentences: Indices) -> Indices:
        return indices_of_ranges(offsets_from_lengths(self.lengths)[sentences], self.lengths[sentences])


@dataclass(frozen=True)
class Source:
    """One set of the data folder."""

    name: str
    splits: str
    n_train: int

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
        sentences, labels = _sentences(tokens, _label_names(names), n_sentences)
        return TokenSet(sentences, labels, folds)


@dataclass(frozen=True)
class Paper:
    """A set, and what is known of it: Hamming losses in per cent, seconds of one training."""

    title: str
    source: Source
    losses: tuple[float, float, float]  # GPSL1, GPSL2, GPSL4
    seconds: float  # GPSL1
    crf: float  # not the paper's, as the next two: measured on the five published folds
    best: float  # the best of structural SVMs and a Gaussian process per token
    peer_seconds: float | None  # that Gaussian process, scikit-learn's, per fold


SETS = (
    Paper("Segmentation", Source("segmentation", "splits_36.txt", 20), (23.45, 23.51, 23.53), 17, 16.02, 14.96, 2.5),
    Paper("Chunking", Source("chunking", "splits_100.txt", 50), (13.02, 12.69, 12.70), 1090, 8.46, 7.91, 12),
    Paper("Japanese NE", Source("japanesene", "splits_100.txt", 50), (8.26, 7.86, 7.82), 1240, 5.60, 4.75, None),
    Paper("Base NP", Source("basenp", "splits_300.txt", 150), (5.73, 5.55, 5.54), 6010, 4.91, 4.86, 68),
)


def present_sets(run: Run) -> tuple[list[Paper], tuple[str, ...]]:
    """The sets that the data folder holds, of all or (quick) of the smallest one; a note for each that is missing."""
    wanted = [paper for paper in SETS if not run.quick or paper.title == "Segmentation"]
    present = [paper for paper in wanted if paper.source.is_there(run)]
    if not present:
        raise InputError(f"{run.data} holds none of {', '.join(wanted[0].source.files)}; --data must name their folder")
    absent = [paper.title for paper in wanted if paper not in present]
    return present, tuple(f"{title} is not in the data folder: left out" for title in absent)


def flat(labels: Sequence[Sequence[str]]) -> NDArray[np.str_]:
    """The labels of all tokens, one after another."""
    return np.array([label for sentence in labels for label in sentence])


def _splits(path: Path) -> list[Indices]:
    orders = [np.array(line.split(), np.int64) - 1 for line in path.read_text("utf-8").splitlines() if line.strip()]
    for number, order in enumerate(orders, 1):
        if not np.array_equal(np.sort(order), np.arange(len(orders[0]))):
            raise InputError(f"{path}, line {number} is not a permutation of 1 to {len(orders[0])}")
    return orders


def _label_names(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines()
    return {line.partition("\t")[0]: line.partition("\t")[2] for line in lines if line}


def _sentences(
    path: Path, names: dict[str, str], n_sentences: int
) -> tuple[tuple[tuple[tuple[int, ...], ...], ...], tuple[tuple[str, ...], ...]]:
    """The first sentences of the file: their features, and their labels."""
    sentences: list[list[tuple[int, ...]]] = [[]]
    labels: list[list[str]] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                if len(sentences) == n_sentences and sentences[-1]:
                    break
                if sentences[-1]:
                    sentences.append([])
                    labels.append([])
                continue
            label, _, features = line.rstrip("\n").partition("\t")
            if label not in names:
                raise InputError(f"{path}, line {number} has label number {label!r}, which has no name")
            sentences[-1].append(tuple(int(feature) for feature in features.split()))
            labels[-1].append(names[label])
    if not sentences[-1]:
        sentences.pop()
        labels.pop()
    if len(sentences) < n_sentences:
        raise InputError(f"{path} holds {len(sentences)} sentences, but its splits name {n_sentences}")
    return tuple(map(tuple, sentences)), tuple(map(tuple, labels))
