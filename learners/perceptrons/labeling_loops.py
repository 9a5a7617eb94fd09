"""The sequential part of the labeling perceptron: one pass over the positions of one diagonal tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels._jit import jit
from gramline.learners.arrays import Counts, Floats
from gramline.learners.chains.ties import TIE


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
def visit_block(
    tile: NDArray[Any],
    gold: Counts,
    prior: Floats,
    label_kernel: Floats,
    sums: Floats,
    magnitudes: Floats,
    alpha: Counts,
    lag: Counts,
    change: Floats,
    is_wrong: NDArray[np.bool_],
    visit: int,
) -> int:
    """Visit every labeled position of the block in order, updating at once; returns the number of visits so far.

    tile (n, n) is G of the block, C-contiguous, any float dtype; gold (n,) are label codes, negative where missing;
    prior (n, n_labels), or (n, 0) when uniform; label_kernel (n_labels, n_labels), or (0, 0) for the identity.
    Updated in place: sums (n_labels, n) = (G W ky)^T, magnitudes (n,), alpha and lag (n, n_labels).
    Filled: change (n, n_labels), the rows of delta(W ky); is_wrong (n,), the positions that have one.
    """
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
def gather_columns(tile: NDArray[Any], columns: Counts, out: Floats) -> None:
    """out = tile[:, columns] as float64, row by row: NumPy gathers down the columns, several times slower."""
    for row in range(tile.shape[0]):
        source, target = tile[row], out[row]
        for k in range(len(columns)):
            target[k] = source[columns[k]]
