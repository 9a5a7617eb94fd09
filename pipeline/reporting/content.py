"""What a report shows, as plain data; a run of a job or the demo fills it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.learners.metrics import Score
from gramline.pipeline.events import TileReport
from gramline.pipeline.reporting.heatmap import Thumbnail

BINS = 10  # of equal width, for confidences


@dataclass(frozen=True)
class SettingRow:
    """One setting: its parameters in words and its scores per fold, by metric."""

    name: str
    kernel: str
    scores: Mapping[str, Sequence[float]]
    p: float | None = None  # paired test against the best setting
    chosen: str = ""  # constants that it left open, by fold


@dataclass(frozen=True)
class FailedSetting:
    """A setting that came to no end, and why."""

    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class Sentence:
    """One structure with gold and predicted labels."""

    name: str
    tokens: Sequence[str | None]
    gold: Sequence[str | None]
    predicted: Sequence[str]
    links: Sequence[Sequence[int]] | None = None  # children of every position, of trees and graphs

    def positions(self) -> Iterator[tuple[str | None, str | None, str, bool]]:
        """(word, gold, predicted, is it wrong) of every position; a position without a gold label is never wrong."""
        for word, right, guess in zip(self.tokens, self.gold, self.predicted, strict=True):
            yield word, right, guess, right is not None and right != guess

    @property
    def n_wrong(self) -> int:
        return sum(is_wrong for *_, is_wrong in self.positions())

    @property
    def n_gold(self) -> int:
        """Positions with a gold label."""
        return sum(label is not None for label in self.gold)

    @property
    def share_wrong(self) -> float:
        """Of the positions with a gold label; 0 where there is none."""
        return self.n_wrong / self.n_gold if self.n_gold else 0.0


@dataclass(frozen=True)
class Advice:
    """What the numbers say to do next: what stands out, and what to try."""

    title: str
    text: str


@dataclass(frozen=True)
class Curve:
    """How training went, one line per setting; `level` is the same measure on structures that were held out."""

    step: str  # what is counted across: round, sweep
    measure: str
    described: str  # which set it is of, in a sentence
    lines: Mapping[str, Sequence[float]]
    level: float | None = None


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities of one setting's predictions, and whether these were right."""

    setting: str
    confidence: NDArray[np.float64]  # probability of the predicted label, of every labeled position
    right: NDArray[np.bool_]  # whether that label is right

    def bins(self) -> list[tuple[float, float, int]]:
        """(mean confidence, share that was right, positions) of every bin that is not empty."""
        places = _bins(self.confidence)
        return [
            (float(self.confidence[places == k].mean()), float(self.right[places == k].mean()), int(count))
            for k, count in enumerate(np.bincount(places))
            if count
        ]


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """sum over bins of (share of the positions in it) |mean confidence - share that was right|."""
    gaps = np.bincount(_bins(confidence), weights=confidence - right)
    return float(np.abs(gaps).sum() / len(right))


def _bins(confidence: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page; sections whose content is empty or None are left out."""

    title: str
    subtitle: str
    metric: str
    settings: Sequence[SettingRow]
    best: int
    fold_word: str = "fold"
    baselines: Sequence[SettingRow] = ()  # what a setting must beat to be worth its time
    baseline_notes: Sequence[str] = ()  # how they were trained, and which are not there and why
    advice: Sequence[Advice] = ()
    commands: Mapping[str, str] = field(default_factory=dict)  # what to type next, by what it does
    cards: Mapping[str, str] = field(default_factory=dict)  # further numbers, by name
    curves: Sequence[Curve] = ()
    labels: Sequence[str] = ()
    by_label: Mapping[str, Score] = field(default_factory=dict)
    confusion: NDArray[np.int64] | None = None  # [gold][predicted]
    sentences: Sequence[Sentence] = ()
    calibration: Calibration | None = None
    gram: Thumbnail | None = None
    tiles: Sequence[TileReport] = ()  # those that were computed
    itemsize: int = 8  # bytes of a kernel value in them
    passes: Sequence[Mapping[str, Any]] = ()  # per unit: learner, problems, tile_reads, stored_tiles, seconds
    nested: Mapping[str, Any] | None = None
    failed: Sequence[FailedSetting] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    job_file: str | None = None
