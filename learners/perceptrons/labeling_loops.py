"""The sequential part of the labeling perceptron: one pass over the positions of one diagonal tile."""

from __future__ import annotations

from typing import NamedTuple

from gramline.kernels._jit import jit
from gramline.learners.arrays import Counts, Floats, Indices, Tile
from gramline.learners.chains.positions import Given
from gramline.learners.chains.viterbi import TIE


class Weights(NamedTuple):
    """What a visit updates in place; positions whose rows of the Gram are equal may share a row."""

    sums: Floats  # (G W ky)^T without the uniform factor, shape (n_labels, n_rows)
    magnitudes: Floats  # shape (n_rows,)
    alpha: Counts  # what the visit adds to A, shape (n, n_labels)
    lag: Counts  # sum over its updates of (visit - 1) * update, shape (n, n_labels)


class Mistakes(NamedTuple):
    """What a visit to a block adds up, by row: delta(W ky), and how large it is."""

    change: Floats  # shape (n_rows, n_labels)
    sizes: Floats  # shape (n_rows,); 0 where no position was wrong


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
    tile: Tile, row_of: Indices, given: Given, weights: Weights, mistakes: Mistakes, visit: int
) -> tuple[int, int]:
    """Visit every labeled position of a block in order, updating at once; the visits so far, and the mistakes here.

    `tile` (n_rows, n_rows) is G between the rows of the block, C-contiguous, `row_of` (n,) the row of each position;
    `given`, `weights` and `mistakes` are those of the block.
    """
    gold, prior, label_kernel = given
    sums, magnitudes, alpha, lag = weights
    change, sizes = mistakes
    n_labels, n_rows = sums.shape
    is_uniform, is_identity = prior.shape[1] == 0, label_kernel.shape[0] == 0
    n_wrong = 0
    for position in range(len(gold)):
        right = gold[position]
        if right < 0:
            continue
        visit += 1
        own = row_of[position]
        guess = best_label(sums, own, prior[position], magnitudes[own])
        if guess == right:
            continue
        n_wrong += 1
        alpha[position, right] += 1
        alpha[position, guess] -= 1
        lag[position, right] += visit - 1
        lag[position, guess] -= visit - 1
        gain = 1.0 if is_uniform else prior[position, right]
        loss = 1.0 if is_uniform else prior[position, guess]
        largest = 0.0
        column = tile[own]
        for label in range(n_labels):
            if is_identity:
                step = gain if label == right else -loss if label == guess else 0.0
            else:
                step = gain * label_kernel[right, label] - loss * label_kernel[guess, label]
            if step != 0.0:
                largest = max(largest, abs(step))
                change[own, label] += step
                line = sums[label]
                for other in range(n_rows):
                    line[other] += column[other] * step
        sizes[own] += largest
        for other in range(n_rows):
            magnitudes[other] += abs(column[other]) * largest
    return visit, n_wrong
