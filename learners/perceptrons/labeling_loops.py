"""The sequential part of the labeling perceptron: one pass over the positions of one diagonal tile."""

from __future__ import annotations

from typing import NamedTuple

from gramline.kernels._jit import jit
from gramline.learners.arrays import Counts, Floats, Indices, Mask, Tile, WideCodes
from gramline.learners.chains.viterbi import TIE


class Given(NamedTuple):
    """What the rows of a problem know beforehand."""

    gold: WideCodes  # negative where missing, shape (n,)
    prior: Floats  # shape (n, n_labels); (n, 0) when uniform
    label_kernel: Floats  # shape (n_labels, n_labels); (0, 0) for the identity


class Weights(NamedTuple):
    """What a visit updates in place."""

    sums: Floats  # (G W ky)^T without the uniform factor, shape (n_labels, n)
    magnitudes: Floats  # shape (n,)
    alpha: Counts  # A, shape (n, n_labels)
    lag: Counts  # sum over updates of (visit - 1) * update, shape (n, n_labels)


class Mistakes(NamedTuple):
    """What a visit to a block fills: which positions were wrong, and the rows of delta(W ky) of those."""

    change: Floats  # shape (n, n_labels)
    is_wrong: Mask  # shape (n,)


@jit
def best_label(sums: Floats, position: int, prior: Floats, magnitude: float) -> int:
    """Lowest label among those tied with the largest score P[label] * sums[label, position].

    `prior` has shape (n_labels,), or (0,) when it is uniform (a common factor decides nothing).
    """
    n_labels = sums.shape[0]
    is_uniform = prior.shape[0] == 0
    best = 0
    largest = sums[0, position] * (1.0 if is_uniform else prior[0])
    for label in range(1, n_labels):
        score = sums[label, position] * (1.0 if is_uniform else prior[label])
        if score > largest:
            best = label
            largest = score
    for label in range(best):
        weight = 1.0 if is_uniform else prior[label]
        factor = 1.0 if is_uniform else max(weight, prior[best])
        if largest - sums[label, position] * weight <= TIE * magnitude * factor:
            return label
    return best


@jit
def visit_block(tile: Tile, given: Given, weights: Weights, mistakes: Mistakes, visit: int) -> int:
    """Visit every labeled position of a block in order, updating at once; returns the number of visits so far.

    `tile` (n, n) is G of the block, C-contiguous; `given`, `weights` and `mistakes` are those of its rows.
    """
    gold, prior, label_kernel = given
    sums, magnitudes, alpha, lag = weights
    change, is_wrong = mistakes
    n, n_labels = len(gold), sums.shape[0]
    is_uniform, is_identity = prior.shape[1] == 0, label_kernel.shape[0] == 0
    for position in range(n):
        right = gold[position]
        if right < 0:
            continue
        visit += 1
        guess = best_label(sums, position, prior[position], magnitudes[position])
        if guess == right:
            continue
        is_wrong[position] = True
        alpha[position, right] += 1
        alpha[position, guess] -= 1
        lag[position, right] += visit - 1
        lag[position, guess] -= visit - 1
        gain = 1.0 if is_uniform else prior[position, right]
        loss = 1.0 if is_uniform else prior[position, guess]
        if is_identity:
            change[position, right] = gain
            change[position, guess] = -loss
        else:
            for label in range(n_labels):
                change[position, label] = gain * label_kernel[right, label] - loss * label_kernel[guess, label]
        largest = 0.0
        column = tile[position]
        for label in range(n_labels):
            step = change[position, label]
            if step != 0.0:
                largest = max(largest, abs(step))
                row = sums[label]
                for other in range(n):
                    row[other] += column[other] * step
        for other in range(n):
            magnitudes[other] += abs(column[other]) * largest
    return visit


@jit
def gather_columns(tile: Tile, columns: Indices, out: Floats) -> None:
    """out = tile[:, columns] as float64, row by row: NumPy gathers down the columns, several times slower."""
    for row in range(tile.shape[0]):
        source, target = tile[row], out[row]
        for k in range(len(columns)):
            target[k] = source[columns[k]]
