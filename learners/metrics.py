"""How good predicted labels are: per position, per labeled span, per label.

Positions without a gold label are not counted; for spans they are outside in both. A gold label that the model does
not know is simply never predicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gramline.learners.arrays import Counts
from gramline.learners.errors import LabelError
from gramline.learners.estimator import is_listed
from gramline.learners.labels import Labels, label_lists

Span = tuple[int, int, str]  # first position, position after the last, type


@dataclass(frozen=True)
class Score:
    """Counts of one class, and precision, recall and F1 from them; a ratio over nothing is 0."""

    gold: int
    predicted: int
    correct: int

    @property
    def precision(self) -> float:
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """2 p r / (p + r) = 2 correct / (gold + predicted)."""
        return 2 * self.correct / (self.gold + self.predicted) if self.gold + self.predicted else 0.0

    def to_dict(self) -> dict[str, float]:
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1} | asdict(self)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that one comparison of gold and predicted labels says."""

    n_structures: int
    n_positions: int  # with a gold label
    n_wrong: int
    n_exact: int  # structures without a wrong position
    dummy: str | None
    tokens: Score  # micro over all labels but the dummy
    spans: Score  # micro over all types
    labels: tuple[str, ...]  # of the table and the confusion matrix
    by_label: Mapping[str, Score]
    by_span_type: Mapping[str, Score]
    confusion: Counts  # [gold][predicted], shape (len(labels), len(labels))

    @property
    def accuracy(self) -> float:
        """Part of the positions that are right."""
        return 1.0 - self.hamming_loss

    @property
    def hamming_loss(self) -> float:
        """Part of the positions that are wrong."""
        return self.n_wrong / self.n_positions

    @property
    def exact_match(self) -> float:
        """Part of the structures without a wrong position."""
        return self.n_exact / self.n_structures

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "structures": self.n_structures,
            "positions": self.n_positions,
            "wrong": self.n_wrong,
            "accuracy": self.accuracy,
            "hamming_loss": self.hamming_loss,
            "exact_match": self.exact_match,
            "dummy": self.dummy,
            "tokens": self.tokens.to_dict(),
            "spans": self.spans.to_dict(),
            "by_label": {label: score.to_dict() for label, score in self.by_label.items()},
            "by_span_type": {kind: score.to_dict() for kind, score in self.by_span_type.items()},
            "labels": list(self.labels),
            "confusion": self.confusion.tolist(),
        }


def evaluate(gold: Labels, predicted: Labels, *, dummy: str | None = "O") -> Evaluation:
    """Compare predicted with gold labels, one sequence per structure.

    Parameters
    ----------
    gold : the right labels; a position (or a whole structure) without one is None and is not counted
    predicted : one label for every position with a gold label
    dummy : the label of positions that carry nothing: it counts for accuracy, but not for precision, recall and F1;
        None when every label counts

    Examples
    --------
    >>> from gramline.learners import evaluate
    >>> result = evaluate([["B-PER", "I-PER", "O"]], [["B-PER", "O", "O"]])
    >>> result.n_wrong, result.tokens.precision, result.tokens.recall, result.spans.f1
    (1, 1.0, 0.5, 0.0)
    """
    if dummy is not None and not isinstance(dummy, str):
        raise LabelError(f"the dummy label is a string, or None where every label counts, got {dummy!r}")
    pairs = _paired(gold, predicted)
    flat = [(right, guess) for structure in pairs for right, guess in structure if right is not None]
    if not flat:
        raise LabelError("no position has a gold label; there is nothing to compare")
    counts = Counter(flat)
    labels = tuple(sorted({label for pair in counts for label in pair}))
    code_of = {label: code for code, label in enumerate(labels)}
    confusion = np.zeros((len(labels), len(labels)), np.int64)
    for (right, guess), count in counts.items():
        confusion[code_of[right], code_of[guess]] = count
    by_label = {
        label: Score(int(confusion[code].sum()), int(confusion[:, code].sum()), int(confusion[code, code]))
        for label, code in code_of.items()
    }
    by_span_type = _span_scores(pairs, dummy)
    return Evaluation(
        n_structures=len(pairs),
        n_positions=len(flat),
        n_wrong=sum(right != guess for right, guess in flat),
        n_exact=sum(all(right in (None, guess) for right, guess in structure) for structure in pairs),
        dummy=dummy,
        tokens=_total(score for label, score in by_label.items() if label != dummy),
        spans=_total(by_span_type.values()),
        labels=labels,
        by_label=by_label,
        by_span_type=by_span_type,
        confusion=confusion,
    )


def spans(labels: Sequence[str | None], *, dummy: str | None = "O") -> list[Span]:
    """Labeled spans in IOB2, read as conlleval does: an I- that continues nothing begins a span of its own.

    Labels without B- or I- are types themselves: a span is a longest run of one label.
    """
    complete: list[Span] = []
    begin, kind = 0, None
    for position, label in enumerate([*labels, None]):
        outside = label is None or label == dummy
        prefix, current = (None, None) if outside or label is None else _split(label)
        if kind is not None and (current != kind or prefix == "B"):
            complete.append((begin, position, kind))
            kind = None
        if current is not None and kind is None:
            begin, kind = position, current
    return complete


def _split(label: str) -> tuple[str | None, str]:
    """'B-PER' is ('B', 'PER'), 'B' is ('B', ''), 'noun' is (None, 'noun')."""
    if label in ("B", "I") or label.startswith(("B-", "I-")):
        return label[0], label[2:]
    return None, label


def _span_scores(pairs: list[list[tuple[str | None, str]]], dummy: str | None) -> dict[str, Score]:
    gold: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for structure in pairs:
        right = spans([label for label, _ in structure], dummy=dummy)
        guess = spans([None if label is None else other for label, other in structure], dummy=dummy)
        gold.update(kind for _, _, kind in right)
        predicted.update(kind for _, _, kind in guess)
        correct.update(kind for _, _, kind in set(right) & set(guess))
    return {kind: Score(gold[kind], predicted[kind], correct[kind]) for kind in sorted(gold | predicted)}


def _total(scores: Iterable[Score]) -> Score:
    counts = [(score.gold, score.predicted, score.correct) for score in scores]
    return Score(*map(sum, zip((0, 0, 0), *counts, strict=True)))


def _paired(gold: Labels, predicted: Labels) -> list[list[tuple[str | None, str]]]:
    right, guess = _checked(gold, "gold label"), _checked(predicted, "predicted label")
    if len(right) != len(guess):
        raise LabelError(f"there are gold labels for {len(right)} structures, but predictions for {len(guess)}")
    pairs: list[list[tuple[str | None, str]]] = []
    for structure, (known, guessed) in enumerate(zip(right, guess, strict=True)):
        if guessed is None:
            raise LabelError("there are no predictions", structure=structure)
        labels = [None] * len(guessed) if known is None else known
        if len(labels) != len(guessed):
            problem = f"there are {len(labels)} gold labels, but {len(guessed)} predictions"
            raise LabelError(problem, structure=structure)
        for position, (label, other) in enumerate(zip(labels, guessed, strict=True)):
            if other is None and label is not None:
                raise LabelError("there is a gold label, but no prediction", structure=structure, position=position)
        pairs.append([(label, other or "") for label, other in zip(labels, guessed, strict=True)])
    return pairs


def _checked(labels: Labels, what: str) -> list[list[str | None] | None]:
    """One list of labels per structure, of the length it has; None for a structure without any."""
    if not is_listed(labels):
        raise LabelError(f"{what}s must be one list of strings per structure, got {type(labels).__name__}")
    rows = list(labels)
    lengths = [len(row) if isinstance(row, Sequence | np.ndarray) and is_listed(row) else 0 for row in rows]
    lists = label_lists(rows, np.array(lengths, np.int64), what)
    return [None if row is None else checked for row, checked in zip(rows, lists, strict=True)]
