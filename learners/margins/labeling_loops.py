"""Compiled steps of the pointwise support vector machine: the exact dual step of one position after another.

argmin a^T M a / 2 + c^T a,  a <= C [b = right],  sum a = 0, where M = G(t, t) P_t P_t^T o ky (math 10).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Floats, Indices, Tile
from gramline.learners.chains.positions import Given

FLAT = 1e-12  # part of the largest curvature below which a label has none
SAME = 1e-12  # part of C below which a weight has not changed
INSIDE = 1e-9  # hinges below this are rounding
MOST_PAIRS = 1000  # steps of a position whose label kernel is full; a handful is usual


class Weights(NamedTuple):
    """What a visit updates in place; positions whose rows of the Gram are equal may share a row."""

    sums: Floats  # (G W ky)^T, shape (n_labels, n_rows)
    magnitudes: Floats  # shape (n_rows,)
    alpha: Floats  # A, shape (n, n_labels)


class Steps(NamedTuple):
    """What a visit to a block adds up, by row: delta(W ky), and how large it is."""

    change: Floats  # shape (n_rows, n_labels)
    sizes: Floats  # shape (n_rows,); 0 where nothing changed


@jit
def separable_step(curvature: Floats, linear: Floats, right: int, C: float, best: Floats) -> None:
    """The step of a diagonal M: best[b] = min(C_b, (tau - c_b) / kap_b), tau such that they sum to 0.

    A label without curvature (prior 0) takes what the others leave once tau has come down to its c.
    """
    n_labels = len(linear)
    flat = 0.0
    for label in range(n_labels):
        flat = max(flat, FLAT * curvature[label])
    breakpoints = np.empty(n_labels)
    floor, taker = -np.inf, -1
    for label in range(n_labels):
        if curvature[label] <= flat:
            breakpoints[label] = -np.inf
            if linear[label] > floor:
                floor, taker = linear[label], label
        else:
            breakpoints[label] = linear[label] + (curvature[label] * C if label == right else 0.0)
    order = np.empty(n_labels, np.int64)  # breakpoints downwards
    for label in range(n_labels):
        place = label
        while place > 0 and breakpoints[order[place - 1]] < breakpoints[label]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = label
    tau, inverse, weighted, capped = floor, 0.0, 0.0, C
    for place in range(n_labels):
        label = order[place]
        if breakpoints[label] == -np.inf:
            break
        inverse += 1.0 / curvature[label]
        weighted += linear[label] / curvature[label]
        if label == right:
            capped -= C
        tau = (weighted - capped) / inverse
        if place + 1 == n_labels or tau >= breakpoints[order[place + 1]]:
            break
    if tau > floor:
        taker = -1
    tau = max(tau, floor)
    total = 0.0
    free = taker
    for label in range(n_labels):
        cap = C if label == right else 0.0
        best[label] = cap
        if curvature[label] > flat and tau < breakpoints[label]:
            best[label] = (tau - linear[label]) / curvature[label]
            if taker < 0 and (free < 0 or curvature[label] < curvature[free]):
                free = label
        total += best[label]
    # What is left is a flat label's share, or rounding, which costs the flattest of the free labels least.
    if free >= 0:
        best[free] = min(best[free] - total, C if free == right else 0.0)


@jit
def pairwise_step(M: Floats, gradient: Floats, right: int, C: float, best: Floats) -> None:
    """The step of a full M by maximal violating pairs, from `best`, where the gradient is `gradient`."""
    n_labels = len(best)
    for _ in range(MOST_PAIRS):
        low, high = -1, 0
        for label in range(n_labels):
            if best[label] < (C if label == right else 0.0) and (low < 0 or gradient[label] < gradient[low]):
                low = label
            if gradient[label] > gradient[high]:
                high = label
        if low < 0:
            return
        violation = gradient[high] - gradient[low]
        if violation <= FLAT * (1.0 + abs(gradient[high]) + abs(gradient[low])):
            return
        bound = C if low == right else 0.0
        step = bound - best[low]
        bend = M[low, low] + M[high, high] - 2.0 * M[low, high]
        if bend > 0.0 and violation / bend < step:
            step = violation / bend
            best[low] += step
        else:
            best[low] = bound
        best[high] -= step
        for label in range(n_labels):
            gradient[label] += step * (M[label, low] - M[label, high])


@jit
def visit_block(tile: Tile, row_of: Indices, given: Given, weights: Weights, steps: Steps, C: float) -> None:
    """The exact step of every labeled position of a block, in order; the next position sees it.

    `tile` (n_rows, n_rows) is G between the rows of the block, `row_of` (n,) the row of each position; the other
    arrays are those of the block.
    """
    gold, prior, label_kernel = given
    sums, magnitudes, alpha = weights
    change, sizes = steps
    n_labels, n_rows = sums.shape
    is_uniform = prior.shape[1] == 0
    ky = np.eye(n_labels) if label_kernel.shape[0] == 0 else label_kernel
    is_diagonal = True
    for a in range(n_labels):
        for b in range(n_labels):
            is_diagonal = is_diagonal and (a == b or ky[a, b] == 0.0)
    chance, curvature, linear = np.ones(n_labels), np.empty(n_labels), np.empty(n_labels)
    best, moved = np.empty(n_labels), np.empty(n_labels)
    M = np.empty((n_labels, n_labels))
    for position in range(len(gold)):
        right = gold[position]
        if right < 0:
            continue
        own = row_of[position]
        size = max(np.float64(tile[own, own]), 0.0)  # below 0 by rounding only
        before = alpha[position]
        for b in range(n_labels):
            if not is_uniform:
                chance[b] = prior[position, b]
            linear[b] = chance[b] * sums[b, own] + (0.0 if b == right else 1.0)
            best[b] = before[b]
        if is_diagonal:
            for b in range(n_labels):
                curvature[b] = size * chance[b] * chance[b] * ky[b, b]
                linear[b] -= curvature[b] * before[b]
            separable_step(curvature, linear, right, C, best)
        else:
            for a in range(n_labels):
                for b in range(n_labels):
                    M[a, b] = size * chance[a] * chance[b] * ky[a, b]
            pairwise_step(M, linear, right, C, best)
        furthest = 0.0
        for b in range(n_labels):
            moved[b] = (best[b] - before[b]) * chance[b]
            furthest = max(furthest, abs(best[b] - before[b]))
        if furthest <= SAME * C:
            continue
        for b in range(n_labels):
            before[b] = best[b]
        largest = 0.0
        column = tile[own]
        for b in range(n_labels):
            step = 0.0
            for a in range(n_labels):
                step += moved[a] * ky[a, b]
            if step != 0.0:
                largest = max(largest, abs(step))
                change[own, b] += step
                line = sums[b]
                for other in range(n_rows):
                    line[other] += column[other] * step
        sizes[own] += largest
        for other in range(n_rows):
            magnitudes[other] += abs(column[other]) * largest


@jit
def margin_terms(
    row_of: Indices, given: Given, sums: Floats, alpha: Floats, starts: Indices, norms: Floats
) -> tuple[float, int]:
    """The sum of the hinges max_b ([b != right] + S_b) - S_right of a block, and how many are above 0.

    `norms` (n_structures,) takes <A, S> of every structure; `starts` (n_structures + 1,) counts in the block.
    """
    gold, prior, _ = given
    n_labels = len(sums)
    is_uniform = prior.shape[1] == 0
    total, n_inside = 0.0, 0
    for structure in range(len(norms)):
        norms[structure] = 0.0
        for position in range(starts[structure], starts[structure + 1]):
            right = gold[position]
            if right < 0:
                continue
            largest = correct = sums[right, row_of[position]] * (1.0 if is_uniform else prior[position, right])
            for b in range(n_labels):
                score = sums[b, row_of[position]] * (1.0 if is_uniform else prior[position, b])
                norms[structure] += alpha[position, b] * score
                if b != right:
                    largest = max(largest, 1.0 + score)
            total += largest - correct
            n_inside += largest - correct > INSIDE
    return total, n_inside
