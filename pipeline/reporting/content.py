"""What a report shows, as plain data: filled from a run, or by whoever trained and tested something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.reporting.heatmap import Thumbnail


@dataclass(frozen=True)
class SettingRow:
    """One setting: its parameters in words and its scores per fold, by metric."""

    name: str
    kernel: str
    scores: Mapping[str, Sequence[float]]
    p: float | None = None  # paired test against the best setting


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


@dataclass(frozen=True)
class TileTimes:
    """Seconds of the tiles that were computed, and what was written."""

    read: Sequence[float]
    compute: Sequence[float]
    write: Sequence[float]
    written_bytes: int
    cells: int
    n_workers: int


@dataclass(frozen=True, eq=False)
class Report:
    """Everything on the page; what is empty or None is left out, with a word why."""

    title: str
    subtitle: str
    cards: Mapping[str, str]  # what stands first, by name
    metric: str
    settings: Sequence[SettingRow]
    best: int
    fold_word: str = "fold"
    curves: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)  # trace -> setting -> values
    labels: Sequence[str] = ()
    confusion: NDArray[np.int64] | None = None  # [gold][predicted]
    sentences: Sequence[Sentence] = ()
    confidences: Sequence[tuple[float, bool]] = ()  # of every position: probability of the prediction, was it right
    confident: str = ""  # the setting that was so sure
    gram: Thumbnail | None = None
    gram_caption: str = ""
    tiles: TileTimes | None = None
    passes: Sequence[Mapping[str, Any]] = ()  # per unit: learner, problems, tile_reads, stored_tiles, seconds
    nested: Mapping[str, Any] | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    job_file: str | None = None
