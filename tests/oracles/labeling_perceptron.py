"""The labeling perceptron as its definition reads: every score from scratch, in fractions, one position at a time."""

from __future__ import annotations

from fractions import Fraction

Table = list[list[Fraction]]


def identity(n_labels: int) -> Table:
    return [[Fraction(int(a == b)) for b in range(n_labels)] for a in range(n_labels)]


def scores(gram: Table, dual: Table, row_prior: Table, col_prior: Table, label_kernel: Table) -> Table:
    """S[t][b] = P(b|t) sum_s G(s, t) sum_a A[s][a] P(a|s) ky(a, b) for every column t."""
    n_labels = len(label_kernel)
    return [
        [
            col_prior[t][b]
            * sum(
                gram[s][t] * sum(dual[s][a] * row_prior[s][a] * label_kernel[a][b] for a in range(n_labels))
                for s in range(len(gram))
            )
            for b in range(n_labels)
        ]
        for t in range(len(col_prior))
    ]


def lowest_argmax(row: list[Fraction]) -> int:
    return row.index(max(row))


def train(
    gram: Table, gold: list[int | None], rounds: int, prior: Table, label_kernel: Table
) -> tuple[list[list[int]], Table, list[int]]:
    """(A, mean of A over all visits after each visit, mistakes of every round); no early stop."""
    n_labels = len(label_kernel)
    dual = [[0] * n_labels for _ in gold]
    total = [[0] * n_labels for _ in gold]
    mistakes = []
    n_visits = 0
    for _ in range(rounds):
        mistakes.append(0)
        for t, right in enumerate(gold):
            if right is None:
                continue
            column = [[row[t]] for row in gram]
            guess = lowest_argmax(scores(column, dual, prior, [prior[t]], label_kernel)[0])
            if guess != right:
                mistakes[-1] += 1
                dual[t][right] += 1
                dual[t][guess] -= 1
            n_visits += 1
            total = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(total, dual, strict=True)]
    return dual, [[Fraction(x, n_visits) for x in row] for row in total], mistakes
