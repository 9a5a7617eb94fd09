"""Compiled steps of the support vector machine over groups of candidates: weight moves between two of a group.

v_j = 1 - s(x_i0) + s(x_ij) of a wrong candidate and 0 of the correct one; the weights of a group sum to C. A step moves
weight from the lowest v that has some to the highest, as far as D rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Floats, Indices

TIE = 1e-10  # a full step makes two values equal, so ties are the rule: rounding must not choose among them
MOST_PAIRS = 50  # steps of a group in one visit


class Candidates(NamedTuple):
    """Those of some groups, one group after another, the correct one first."""

    rows: Indices  # of a visit, shape (n_candidates,)
    starts: Indices  # shape (n_groups + 1,)
    margins: Floats  # 1 - (o_i0 - o_ij); 0 of the correct ones, shape (n_candidates,)
    alpha: Floats  # shape (n_candidates,)


class Known(NamedTuple):
    """What a visit knows of its rows, shape (n_rows,) each."""

    sums: Floats  # F
    magnitudes: Floats


class Steps(NamedTuple):
    """What it changes of their weights, shape (n_rows,) each."""

    change: Floats
    sizes: Floats


@jit
def visit_groups(tile: Floats, candidates: Candidates, known: Known, steps: Steps) -> None:
    """Steps of one group after another; the next one sees them. `tile` (n_rows, n_rows) is G between the rows."""
    sums, magnitudes = known
    change, sizes = steps
    longest = 0
    for number in range(len(candidates.starts) - 1):
        longest = max(longest, candidates.starts[number + 1] - candidates.starts[number])
    values, moved = np.empty(longest), np.empty(longest)
    for number in range(len(candidates.starts) - 1):
        first, last = candidates.starts[number], candidates.starts[number + 1]
        rows, alpha = candidates.rows[first:last], candidates.alpha[first:last]
        n = last - first
        for k in range(n):
            values[k] = candidates.margins[first + k] - (sums[rows[0]] - sums[rows[k]])
            moved[k] = 0.0
        for _ in range(MOST_PAIRS):
            top, bottom = -np.inf, np.inf
            for k in range(n):
                top = max(top, values[k])
                if alpha[k] > 0.0:
                    bottom = min(bottom, values[k])
            tie = TIE * (1.0 + abs(top))
            if top - bottom <= tie:
                break
            high, low = 0, 0
            while values[high] < top - tie:
                high += 1
            while alpha[low] <= 0.0 or values[low] > bottom + tie:
                low += 1
            if high == low:
                break
            source, target = rows[low], rows[high]
            bend = tile[source, source] + tile[target, target] - 2.0 * tile[source, target]
            step, rise = alpha[low], values[high] - values[low]
            if bend * step > rise:
                step = rise / bend
                alpha[low] -= step
            else:
                alpha[low] = 0.0
            alpha[high] += step
            moved[low] += step
            moved[high] -= step
            correct = step * (tile[source, rows[0]] - tile[target, rows[0]])
            for k in range(n):
                values[k] += step * (tile[source, rows[k]] - tile[target, rows[k]]) - correct
        for k in range(n):
            if moved[k] != 0.0:
                row, step, size = rows[k], moved[k], abs(moved[k])
                change[row] += step
                sizes[row] += size
                for other in range(len(tile)):
                    sums[other] += tile[row, other] * step
                    magnitudes[other] += abs(tile[row, other]) * size


@jit
def group_terms(candidates: Candidates, sums: Floats) -> tuple[float, float, float, float]:
    """Over the groups that train: sum of hinges, sum_j a_j m_j, <w, w> = sum_j a_j (F_0 - F_j), and of |a_j F|."""
    hinges = gained = norm = size = 0.0
    for number in range(len(candidates.starts) - 1):
        first, last = candidates.starts[number], candidates.starts[number + 1]
        correct = sums[candidates.rows[first]]
        hinge, total = 0.0, candidates.alpha[first]
        for k in range(first + 1, last):
            margin, weight = candidates.margins[k], candidates.alpha[k]
            lead = correct - sums[candidates.rows[k]]
            hinge = max(hinge, margin - lead)
            total += weight
            gained += weight * margin
            norm += weight * lead
            size += weight * (abs(correct) + abs(sums[candidates.rows[k]]))
        if total > 0.0:
            hinges += hinge
    return hinges, gained, norm, size
