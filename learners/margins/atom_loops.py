"""Compiled distributions over the label paths of a chain, and the dual steps that move weight among them (math 9.2).

A chain has at most W label paths y^w with weights that sum to 1 together with that of one aggregate of dropped paths.
v(y) = Delta(y) + F(y); weight moves from the atom of lowest v to the path of highest v.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices

TIE = 1e-10  # a full step makes two values equal, so ties are the rule: rounding must not choose among them
MOST_PAIRS = 10  # steps of a chain in one visit
INDEFINITE = -1e-6  # curvature, beside that of the diagonal, that rounding cannot explain


class Atoms(NamedTuple):
    """The distributions of the chains of a block."""

    paths: Codes  # one path per slot, shape (n_positions, n_slots)
    weights: Floats  # shape (n_chains, n_slots)
    n_used: Indices  # slots that hold a path, shape (n_chains,)
    mean: Floats  # of the aggregate: node marginals, shape (n_positions, n_labels)
    steps: Floats  # of the aggregate: expected transitions, shape (n_chains, n_labels, n_labels)
    shares: Floats  # its weight, shape (n_chains,)
    losses: Floats  # its loss, shape (n_chains,)


class Chain(NamedTuple):
    """One of them."""

    number: int
    first: int  # position
    gold: Codes  # shape (n,)


class Margin(NamedTuple):
    """What is minimised."""

    C: float
    rho: float  # weight of a transition beside G
    is_hamming: bool  # loss: positions that are wrong, or 1 for a path that is


class Moved(NamedTuple):
    """What the steps of a visit change."""

    nodes: Floats  # of alpha, shape (n, n_labels)
    edges: Floats  # of T, shape (n_labels, n_labels)


@jit
def add_scaled(total: Floats, factor: float, more: Floats) -> None:
    """total += factor * more, for two axes. A loop: array expressions take seconds to compile."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            total[i, j] += factor * more[i, j]


@jit
def inner(left: Floats, right: Floats) -> float:
    """Sum of the products of two tables."""
    total = 0.0
    for i in range(left.shape[0]):
        for j in range(left.shape[1]):
            total += left[i, j] * right[i, j]
    return total


@jit
def multiply(square: Floats, nodes: Floats) -> Floats:
    """square @ nodes, most of whose rows are 0."""
    product = np.zeros_like(nodes)
    for s in range(len(nodes)):
        for b in range(nodes.shape[1]):
            if nodes[s, b] != 0.0:
                for t in range(len(nodes)):
                    product[t, b] += square[t, s] * nodes[s, b]
    return product


@jit
def path_of(slot: int, chain: Chain, paths: Codes) -> Codes:
    """The path of a slot, shape (n,); a copy."""
    path = np.empty(len(chain.gold), np.int32)
    for t in range(len(path)):
        path[t] = paths[chain.first + t, slot]
    return path


@jit
def path_loss(path: Codes, gold: Codes, is_hamming: bool) -> float:
    """Delta of a path."""
    n_wrong = 0.0
    for t in range(len(path)):
        if path[t] != gold[t]:
            n_wrong += 1.0
    return n_wrong if is_hamming else min(n_wrong, 1.0)


@jit
def path_score(scores: Floats, transition: Floats, path: Codes) -> float:
    """F of a path."""
    total = 0.0
    for t in range(len(path)):
        total += scores[t, path[t]]
        if t > 0:
            total += transition[path[t - 1], path[t]]
    return total


@jit
def add_path(path: Codes, chain: Chain, is_hamming: bool, atoms: Atoms) -> None:
    """Put a path among those of a chain with weight 0; where all slots are full, the lightest gives way."""
    number, first, _ = chain
    n, n_slots = len(path), atoms.paths.shape[1]
    for slot in range(atoms.n_used[number]):
        n_equal = 0
        while n_equal < n and atoms.paths[first + n_equal, slot] == path[n_equal]:
            n_equal += 1
        if n_equal == n:
            return
    place = atoms.n_used[number]
    if place < n_slots:
        atoms.n_used[number] += 1
    else:
        place = 0
        for slot in range(1, n_slots):
            if atoms.weights[number, slot] < atoms.weights[number, place]:
                place = slot
        fold(place, chain, is_hamming, atoms)
    for t in range(n):
        atoms.paths[first + t, place] = path[t]
    atoms.weights[number, place] = 0.0


@jit
def fold(slot: int, chain: Chain, is_hamming: bool, atoms: Atoms) -> None:
    """Mix a path into the aggregate, with its weight: w stays as it is. Without it a full chain would never move."""
    number, first, gold = chain
    weight = atoms.weights[number, slot]
    if weight <= 0.0:
        return
    path = path_of(slot, chain, atoms.paths)
    share = atoms.shares[number] + weight
    kept, gained = atoms.shares[number] / share, weight / share
    mean, steps = atoms.mean[first : first + len(gold)], atoms.steps[number]
    add_scaled(mean, kept - 1.0, mean)
    add_scaled(steps, kept - 1.0, steps)
    for t in range(len(gold)):
        mean[t, path[t]] += gained
        if t > 0:
            steps[path[t - 1], path[t]] += gained
    atoms.losses[number] = kept * atoms.losses[number] + gained * path_loss(path, gold, is_hamming)
    atoms.shares[number] = share


@jit
def atom_values(scores: Floats, transition: Floats, chain: Chain, is_hamming: bool, atoms: Atoms) -> Floats:
    """v of every path of a chain, and of its aggregate last, shape (n_used + 1,)."""
    number, first, gold = chain
    n, n_used = len(gold), atoms.n_used[number]
    values = np.empty(n_used + 1)
    for slot in range(n_used):
        path = path_of(slot, chain, atoms.paths)
        values[slot] = path_loss(path, gold, is_hamming) + path_score(scores, transition, path)
    values[n_used] = atoms.losses[number]
    if atoms.shares[number] > 0.0:
        values[n_used] += inner(atoms.mean[first : first + n], scores) + inner(atoms.steps[number], transition)
    return values


@jit
def weight_of(slot: int, chain: Chain, atoms: Atoms) -> float:
    """The weight of an atom; the one after the last slot is the aggregate."""
    number = chain.number
    weight: float = atoms.shares[number] if slot == atoms.n_used[number] else atoms.weights[number, slot]
    return weight


@jit
def add_atom(factor: float, slot: int, chain: Chain, atoms: Atoms, total: Moved) -> None:
    """nodes += factor * mu, edges += factor * nu of an atom."""
    number, first, gold = chain
    nodes, edges = total
    if slot == atoms.n_used[number]:
        add_scaled(nodes, factor, atoms.mean[first : first + len(gold)])
        add_scaled(edges, factor, atoms.steps[number])
        return
    for t in range(len(gold)):
        label = atoms.paths[first + t, slot]
        nodes[t, label] += factor
        if t > 0:
            edges[atoms.paths[first + t - 1, slot], label] += factor


@jit
def move_weight(
    square: Floats, scores: Floats, transition: Floats, chain: Chain, margin: Margin, atoms: Atoms, moved: Moved
) -> bool:
    """Pair steps of one chain; its own scores and T follow at once, `moved` adds them up.

    `square` is G between the rows of the chain. False where it cannot be that of a kernel.
    """
    C, rho, is_hamming = margin
    n_used, size = atoms.n_used[chain.number], 0.0
    for t in range(len(square)):
        size += abs(square[t, t])
    for _ in range(MOST_PAIRS):
        values = atom_values(scores, transition, chain, is_hamming, atoms)
        top, bottom = -np.inf, np.inf
        for slot in range(n_used + 1):
            if slot < n_used:
                top = max(top, values[slot])
            if weight_of(slot, chain, atoms) > 0.0:
                bottom = min(bottom, values[slot])
        tie = TIE * (1.0 + abs(top))
        if top - bottom <= tie:
            return True
        high, low = 0, 0
        while values[high] < top - tie:
            high += 1
        while values[low] > bottom + tie or weight_of(low, chain, atoms) <= 0.0:
            low += 1
        step_of = Moved(np.zeros_like(scores), np.zeros_like(transition))
        add_atom(C, low, chain, atoms, step_of)
        add_atom(-C, high, chain, atoms, step_of)
        nodes, edges = step_of  # the change of T is rho times `edges`
        reached = multiply(square, nodes)
        bend = inner(nodes, reached) + rho * inner(edges, edges)
        if bend < INDEFINITE * C * C * size:
            return False
        weight, rise = weight_of(low, chain, atoms), C * (values[high] - values[low])
        step = weight if bend * weight <= rise else rise / bend
        if low == n_used:
            atoms.shares[chain.number] = weight - step
        else:
            atoms.weights[chain.number, low] = weight - step
        atoms.weights[chain.number, high] += step
        add_scaled(scores, step, reached)
        add_scaled(transition, step * rho, edges)
        add_scaled(moved.nodes, step, nodes)
        add_scaled(moved.edges, step * rho, edges)
    return True
