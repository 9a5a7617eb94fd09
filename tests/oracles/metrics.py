"""Labeled spans and scores by looking at every interval and every position on its own."""

from __future__ import annotations


def span_type(label: str | None, dummy: str | None) -> str | None:
    """The type at a position, None when it is outside every span."""
    if label is None or label == dummy:
        return None
    if label[:2] in ("B-", "I-"):
        return label[2:]
    return "" if label in ("B", "I") else label


def spans(labels: list[str | None], dummy: str | None = "O") -> set[tuple[int, int, str]]:
    """Every interval that is a span: one type throughout, nothing begins inside, and it cannot be made longer."""
    found = set()
    n = len(labels)
    kinds = [span_type(label, dummy) for label in labels]
    begins = [label is not None and (label == "B" or label.startswith("B-")) for label in labels]
    for first in range(n):
        for end in range(first + 1, n + 1):
            kind = kinds[first]
            is_whole = kind is not None and all(kinds[p] == kind for p in range(first, end))
            is_undivided = not any(begins[p] for p in range(first + 1, end))
            starts_here = begins[first] or first == 0 or kinds[first - 1] != kind
            ends_here = end == n or kinds[end] != kind or begins[end]
            if kind is not None and is_whole and is_undivided and starts_here and ends_here:
                found.add((first, end, kind))
    return found


def span_counts(gold: list[list[str | None]], predicted: list[list[str]]) -> tuple[int, int, int]:
    """(gold, predicted, correct) spans; a position without a gold label is outside in both."""
    totals = [0, 0, 0]
    for right, guess in zip(gold, predicted, strict=True):
        masked = [None if label is None else other for label, other in zip(right, guess, strict=True)]
        a, b = spans(right), spans(list(masked))
        totals = [totals[0] + len(a), totals[1] + len(b), totals[2] + len(a & b)]
    return totals[0], totals[1], totals[2]
