"""What a report shows, as plain data; a run of a job or the demo fills it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    def positions(self) -> Iterator[tuple[str | None, str | None, str, bool]]:
        """(word, gold, predicted, is it wrong) of every position; a position without a gold label is never wrong."""
        for word, right, guess in zip(self.tokens, self.gold, self.predicted, strict=True):
            yield word, right, guess, right is not None and right != guess

    @property
    def n_wrong(self) -> int:
        return sum(is_wrong for *_, is_wrong in self.positions())


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
    cards: Mapping[str, str]  # the numbers at the top, by name
    metric: str
    settings: Sequence[SettingRow]
    best: int
    fold_word: str = "fold"
    curves: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)  # trace -> setting -> values
    labels: Sequence[str] = ()
    confusion: NDArray[np.int64] | None = None  # [gold][predicted]
    sentences: Sequence[Sentence] = ()
    calibration: Calibration | None = None
    gram: Thumbnail | None = None
    tiles: Sequence[TileReport] = ()  # those that were computed
    itemsize: int = 8  # bytes of a kernel value in them
    passes: Sequence[Mapping[str, Any]] = ()  # per unit: learner, problems, tile_reads, stored_tiles, seconds
    nested: Mapping[str, Any] | None = None
    majority: SettingRow | None = None  # what the most frequent training label would score
    failed: Sequence[FailedSetting] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    job_file: str | None = None
