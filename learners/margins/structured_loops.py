"""Compiled visits of the structured support vector machine: decode with the loss and move weight, chain by chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices, Tile
from gramline.learners.chains.viterbi import Decoder, decode_chain, decode_others
from gramline.learners.margins.atom_loops import (
    TIE,
    Atoms,
    Chain,
    Margin,
    Moved,
    add_path,
    add_scaled,
    atom_values,
    inner,
    mean_value,
    move_weight,
    moved_since,
    multiply,
    path_loss,
    path_score,
)

INSIDE = 1e-9  # hinges below this are rounding
NOTHING = 1e-15  # part of C: weight that came and went
DECODINGS = 5  # of a chain in one visit: its own scores are at hand, and what it gains costs no tile


class Chains(NamedTuple):
    """Runs of labeled positions, all counted in their block."""

    gold: Codes  # label of each position, shape (n_positions,)
    firsts: Indices  # shape (n_chains,)
    lasts: Indices  # shape (n_chains,)


class Dual(NamedTuple):
    """What a visit updates in place; positions whose rows of the Gram are equal may share a row."""

    sums: Floats  # S^T, shape (n_labels, n_rows)
    magnitudes: Floats  # shape (n_rows,)
    alpha: Floats  # shape (n_positions, n_labels)
    lag: Floats  # sum of k (k - 1) times the change of visit k, shape (n_positions, n_labels)
    change: Floats  # of this visit, shape (n_rows, n_labels)
    sizes: Floats  # how large these are, shape (n_rows,)


class Transitions(NamedTuple):
    """T and its lag, shape (n_labels, n_labels) each, [previous][current]."""

    weights: Floats
    lag: Floats


class Measured(NamedTuple):
    """What the chains of a block add to the dual objective, shape (n_chains,) each."""

    norms: Floats  # <alpha, S>
    losses: Floats  # expected loss


@jit
def worst_path(
    scores: Floats, transition: Floats, gold: Codes, is_hamming: bool, tie: float, decoder: Decoder
) -> float:
    """The path of highest v = Delta + F, written to `decoder.path`, and its v."""
    n = len(gold)
    path = decoder.path[:n]
    if is_hamming:
        augmented = np.empty_like(scores)
        for t in range(n):
            for b in range(scores.shape[1]):
                augmented[t, b] = scores[t, b] + (0.0 if b == gold[t] else 1.0)
        decode_chain(augmented, transition, tie, 0, n, decoder)
    else:
        best, starts = np.empty(1), np.zeros(2, np.int64)
        best[0], starts[1] = -np.inf, n
        for t in range(n):
            path[t] = gold[t]
        decode_others(scores, transition, tie, starts, gold, path, best)
        if 1.0 + best[0] <= path_score(scores, transition, gold) + tie:
            for t in range(n):
                path[t] = gold[t]
    return path_loss(path, gold, is_hamming) + path_score(scores, transition, path)


@jit
def find_violation(
    scores: Floats, transition: Floats, chain: Chain, is_hamming: bool, atoms: Atoms, decoder: Decoder
) -> bool:
    """Whether the path of highest v, which `decoder` then holds, is above the mean v of a chain."""
    size = 0.0
    for t in range(len(scores)):
        for b in range(scores.shape[1]):
            size = max(size, abs(scores[t, b]))
    worst = worst_path(scores, transition, chain.gold, is_hamming, TIE * (1.0 + size), decoder)
    worst -= path_score(scores, transition, chain.gold)
    mean = mean_value(atom_values(scores, transition, chain, is_hamming, atoms), chain, atoms)
    return worst - mean > TIE * (1.0 + abs(worst))


@jit
def ascend(
    square: Floats, scores: Floats, transition: Floats, chain: Chain, margin: Margin, atoms: Atoms, decoder: Decoder
) -> tuple[float, Moved]:
    """Let a chain with a violation find paths and move weight to them; how much larger D is, and what was moved.

    `square` is G between the rows of the chain. -inf where it cannot be that of a kernel.
    """
    total = Moved(np.zeros_like(scores), np.zeros_like(transition))
    own_scores, own_transition, gained = scores.copy(), transition.copy(), 0.0
    for decoding in range(DECODINGS):
        if decoding > 0 and not find_violation(own_scores, own_transition, chain, margin.is_hamming, atoms, decoder):
            break
        if not add_path(decoder.path[: len(scores)], square, chain, margin, atoms):
            return -np.inf, total
        gain, moved = rebalance(own_scores, own_transition, chain, margin, atoms)
        gained += gain
        add_scaled(total.nodes, 1.0, moved.nodes)
        add_scaled(total.edges, 1.0, moved.edges)
        if decoding + 1 < DECODINGS:
            add_scaled(own_scores, 1.0, multiply(square, moved.nodes))
            add_scaled(own_transition, 1.0, moved.edges)
    return gained, total


@jit
def rebalance(scores: Floats, transition: Floats, chain: Chain, margin: Margin, atoms: Atoms) -> tuple[float, Moved]:
    """Move weight among the paths that a chain has; how much larger D is, and what was moved."""
    before = atoms.weights[chain.number].copy()
    values = atom_values(scores, transition, chain, margin.is_hamming, atoms)
    gained = move_weight(values, chain, margin.C, atoms)
    return gained, moved_since(before, chain, margin, atoms)


@jit
def chain_scores(sums: Floats, rows: Indices) -> Floats:
    """S of the positions of a chain, shape (n, n_labels)."""
    scores = np.empty((len(rows), len(sums)))
    for t in range(len(rows)):
        for b in range(len(sums)):
            scores[t, b] = sums[b, rows[t]]
    return scores


@jit
def push(tile: Tile, rows: Indices, first: int, moved: Floats, late: float, least: float, dual: Dual) -> None:
    """Let all rows of the block see what a chain changed of its weights."""
    sums, magnitudes, alpha, lag, change, sizes = dual
    n_labels, n_rows = sums.shape
    for t in range(len(rows)):
        column, largest = tile[rows[t]], 0.0
        for b in range(n_labels):
            step = moved[t, b]
            if abs(step) <= least:
                continue
            largest = max(largest, abs(step))
            alpha[first + t, b] += step
            lag[first + t, b] += late * step
            change[rows[t], b] += step
            line = sums[b]
            for other in range(n_rows):
                line[other] += column[other] * step
        if largest > 0.0:
            sizes[rows[t]] += largest
            for other in range(n_rows):
                magnitudes[other] += abs(column[other]) * largest


@jit
def visit_chains(
    tile: Tile,
    row_of: Indices,
    chains: Chains,
    atoms: Atoms,
    dual: Dual,
    transitions: Transitions,
    margin: Margin,
    decoder: Decoder,
    visits: int,
    is_inner: bool,
) -> tuple[int, float]:
    """One visit of every chain of a block, after `visits` visits; all arrays but those of T are the block's.

    An inner one moves weight among the paths that are there. Returns the first chain at which the tile turned out to
    be no kernel's, else -1, and how much larger D is.
    """
    total = 0.0
    for number in range(len(chains.firsts)):
        visits += 1
        first, last = chains.firsts[number], chains.lasts[number]
        chain, rows = Chain(number, first, chains.gold[first:last]), row_of[first:last]
        if is_inner and atoms.n_used[number] == 1:
            continue
        scores = chain_scores(dual.sums, rows)
        if is_inner:
            gained, moved = rebalance(scores, transitions.weights, chain, margin, atoms)
        else:
            if not find_violation(scores, transitions.weights, chain, margin.is_hamming, atoms, decoder):
                continue
            square = np.empty((len(rows), len(rows)))
            for s in range(len(rows)):
                for t in range(len(rows)):
                    square[s, t] = tile[rows[s], rows[t]]
            gained, moved = ascend(square, scores, transitions.weights, chain, margin, atoms, decoder)
            if gained == -np.inf:
                return number, total
        total += gained
        late = float(visits) * float(visits - 1)
        add_scaled(transitions.weights, 1.0, moved.edges)
        add_scaled(transitions.lag, late, moved.edges)
        push(tile, rows, first, moved.nodes, late, NOTHING * margin.C, dual)
    return -1, total


@jit
def chain_terms(
    row_of: Indices,
    chains: Chains,
    atoms: Atoms,
    sums: Floats,
    alpha: Floats,
    transition: Floats,
    is_hamming: bool,
    decoder: Decoder,
    measured: Measured,
) -> tuple[float, int]:
    """The sum of the hinges of the chains of a block, and how many are above 0; the rest goes into `measured`."""
    norms, losses = measured
    total, n_inside = 0.0, 0
    for number in range(len(chains.firsts)):
        first, last = chains.firsts[number], chains.lasts[number]
        gold = chains.gold[first:last]
        scores = chain_scores(sums, row_of[first:last])
        hinge = worst_path(scores, transition, gold, is_hamming, 0.0, decoder) - path_score(scores, transition, gold)
        total += hinge
        if hinge > INSIDE:
            n_inside += 1
        norms[number] = inner(alpha[first:last], scores)
        losses[number] = atoms.weights[number, atoms.paths.shape[1]] * atoms.losses[number]
        for slot in range(atoms.n_used[number]):
            if atoms.weights[number, slot] > 0.0:
                path = atoms.paths[first:last, slot]
                losses[number] += atoms.weights[number, slot] * path_loss(path, gold, is_hamming)
    return total, n_inside
