"""Best label paths of chains: all structures of a corpus decoded in one call.

score(y) = sum_k S[k, y_k] + sum_{k > 0} T[y_{k-1}, y_k]. Ties go to the lowest predecessor and the lowest last label.
Scores that were summed in floating point tie when they differ by no more than what rounding can do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Mask, Offsets
from gramline.learners.chains.constraints import AllowedSteps

TIE = 1e-12  # scores that differ by less than this part of what was summed into them are equal


def magnitude_probe(sizes: Floats) -> Floats:
    """A column c, shape (n_rows,), for which |G^T c| has the order of the sums of |G| * sizes.

    `sizes` themselves would do for a Gram without negative entries. Where positive and negative entries cancel exactly,
    so would their sum; the same numbers, each times its own factor between 1/2 and 3/2, do not.
    """
    return np.asarray(sizes * _probe_factors(len(sizes)))


@lru_cache(maxsize=4)
def _probe_factors(n_rows: int) -> Floats:
    """Always the same; a model that labels one sentence after another draws them once."""
    return np.random.default_rng(0).uniform(0.5, 1.5, size=n_rows)


class Decoder(NamedTuple):
    """Arrays that decoding writes: the paths, and work space that all structures share."""

    path: Codes  # shape (n_positions,)
    best: Floats  # shape (2, n_labels)
    back: Codes  # shape (length of the longest structure, n_labels)

    @classmethod
    def of(cls, n_positions: int, longest: int, n_labels: int) -> Decoder:
        return cls(np.zeros(n_positions, np.int32), np.empty((2, n_labels)), np.empty((longest, n_labels), np.int32))


@jit
def decode_chain(scores: Floats, transition: Floats, tie: float, first: int, last: int, decoder: Decoder) -> float:
    """The best path of positions first..last-1, written to `decoder.path`; returns its score.

    A score is better than that of a lower label when it is larger by more than `tie`.
    """
    path, best, back = decoder
    n_labels = scores.shape[1]
    if last <= first:
        return 0.0
    now, after = best[0], best[1]
    for label in range(n_labels):
        now[label] = scores[first, label]
    for position in range(first + 1, last):
        pointers = back[position - first]
        for label in range(n_labels):
            after[label] = now[0] + transition[0, label]
            pointers[label] = 0
        for previous in range(1, n_labels):
            reached = now[previous]
            for label in range(n_labels):
                candidate = reached + transition[previous, label]
                if candidate > after[label] + tie:  # strictly: the lowest predecessor keeps a tie
                    after[label] = candidate
                    pointers[label] = previous
        for label in range(n_labels):
            after[label] += scores[position, label]
        now, after = after, now
    winner = 0
    for label in range(1, n_labels):
        if now[label] > now[winner] + tie:
            winner = label
    total: float = now[winner]
    for position in range(last - 1, first, -1):
        path[position] = winner
        winner = back[position - first, winner]
    path[first] = winner
    return total


@jit
def _decode_all(
    scores: Floats, transition: Floats, ties: Floats, starts: Offsets, decoder: Decoder, totals: Floats
) -> None:
    for structure in range(len(starts) - 1):
        first, last = starts[structure], starts[structure + 1]
        totals[structure] = decode_chain(scores, transition, ties[structure], first, last, decoder)


def viterbi(
    scores: Floats,
    transition: Floats,
    starts: Offsets,
    sizes: Floats | None = None,
    allowed: AllowedSteps | None = None,
) -> tuple[Codes, Floats]:
    """Best label codes of every position, shape (n,), and the score of every structure's path.

    `scores` has shape (n, n_labels), `transition` is indexed [previous][current], structure s owns the positions
    starts[s]:starts[s + 1]. `sizes`, shape (n,), tell how large the numbers were that were summed into the scores of
    each position; without them only equal scores tie. `allowed` leaves other paths out. Cost O(n n_labels^2).
    """
    ties = np.zeros(len(starts) - 1)
    if sizes is not None:
        steps = np.maximum(np.diff(starts) - 1, 0)
        ties = TIE * (structure_sums(sizes, starts) + steps * np.abs(transition).max(initial=0.0))
    decoder = Decoder.of(len(scores), int(np.diff(starts).max(initial=0)), scores.shape[1])
    totals = np.zeros(len(starts) - 1)
    scores, transition = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(transition, np.float64)
    if allowed is not None:
        firsts = starts[:-1][np.diff(starts) > 0]
        scores, transition = scores.copy(), transition + allowed.step
        scores[firsts] += allowed.first
    _decode_all(scores, transition, ties, starts, decoder, totals)
    return decoder.path, totals


@jit
def decode_others(
    scores: Floats, transition: Floats, tie: float, starts: Offsets, given: Codes, others: Codes, totals: Floats
) -> None:
    """Best of the paths that differ from `given` so far, per label; such a path leaves `given` at one position.

    A score is better than one that is looked at before it when it is larger by more than `tie`.
    """
    n_labels = scores.shape[1]
    longest = 1
    for structure in range(len(starts) - 1):
        longest = max(longest, starts[structure + 1] - starts[structure])
    now, after = np.empty(n_labels), np.empty(n_labels)
    back = np.empty((longest, n_labels), np.int32)  # n_labels: the path was `given` up to here
    for structure in range(len(starts) - 1):
        first, last = starts[structure], starts[structure + 1]
        if n_labels == 1 or last == first:
            continue
        kept = 0.0  # score of the given path
        now[:] = -np.inf
        for position in range(first, last):
            for label in range(n_labels):
                best, pointer = -np.inf, n_labels
                if label != given[position]:
                    best = kept + (transition[given[position - 1], label] if position > first else 0.0)
                if position > first:
                    for previous in range(n_labels):
                        candidate = now[previous] + transition[previous, label]
                        if candidate > best + tie:
                            best, pointer = candidate, previous
                after[label] = best + scores[position, label]
                back[position - first, label] = pointer
            kept += scores[position, given[position]]
            if position > first:
                kept += transition[given[position - 1], given[position]]
            now, after = after, now
        winner = 0
        for label in range(1, n_labels):
            if now[label] > now[winner] + tie:
                winner = label
        totals[structure] = now[winner]
        position = last - 1
        while winner != n_labels:
            others[position] = winner
            winner = back[position - first, winner]
            position -= 1


def best_others(scores: Floats, transition: Floats, starts: Offsets, given: Codes) -> tuple[Codes, Floats]:
    """The best path of every structure that is not the given one, and its score; -inf where there is no other.

    Shapes and cost as for `viterbi`. A structure without another path keeps the given one.
    """
    others = given.astype(np.int32)
    totals = np.full(len(starts) - 1, -np.inf)
    scores, transition = np.ascontiguousarray(scores, np.float64), np.ascontiguousarray(transition, np.float64)
    decode_others(scores, transition, 0.0, starts, others.copy(), others, totals)
    return others, totals


def path_scores(scores: Floats, transition: Floats, starts: Offsets, path: Codes) -> Floats:
    """Score of the given path of every structure, shape (n_structures,)."""
    gained = scores[np.arange(len(scores)), path].astype(np.float64)
    gained[1:] += np.where(follows(starts)[1:], transition[path[:-1], path[1:]], 0.0)
    return structure_sums(gained, starts)


def follows(starts: Offsets) -> Mask:
    """True where a position has a predecessor in its structure, shape (n,)."""
    inner = np.ones(int(starts[-1]), bool)
    inner[starts[:-1][np.diff(starts) > 0]] = False
    return inner


def structure_sums(values: Floats, starts: Offsets) -> Floats:
    """Sum of `values` (n, ...) over the positions of every structure, 0 for an empty one."""
    totals = np.zeros((len(starts) - 1, *values.shape[1:]))
    filled = np.flatnonzero(np.diff(starts))
    if len(filled):
        totals[filled] = np.add.reduceat(values, starts[:-1][filled], axis=0)
    return totals
