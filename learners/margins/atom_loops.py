"""Compiled distributions over the label paths of a chain, and the dual steps that move weight among them (math 9.2).

A chain has at most W label paths y^w with weights that sum to 1 together with that of one aggregate of dropped paths.
v(y) = Delta(y) + F(y) - F(y_i); weight moves from the atom of lowest v to the path of highest v. Products between the
atoms of a chain are kept, so a step takes a few operations for every atom, whatever the length of the chain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.learners.arrays import Codes, Floats, Indices

TIE = 1e-10  # a full step makes two values equal, so ties are the rule: rounding must not choose among them
MOST_STEPS = 20  # of a chain in one visit
INDEFINITE = -1e-6  # squared distance, beside the diagonal, that rounding cannot explain


class Atoms(NamedTuple):
    """The distributions of the chains of a block. The aggregate comes after the W slots in `weights` and `products`."""

    paths: Codes  # one path per slot, shape (n_positions, n_slots)
    weights: Floats  # shape (n_chains, n_slots + 1)
    products: Floats  # <phi_a - phi(y_i), phi_b - phi(y_i)>, shape (n_chains, n_slots + 1, n_slots + 1)
    n_used: Indices  # slots that hold a path, shape (n_chains,)
    mean: Floats  # of the aggregate: node marginals, shape (n_positions, n_labels)
    steps: Floats  # of the aggregate: expected transitions, shape (n_chains, n_labels, n_labels)
    losses: Floats  # of the aggregate, shape (n_chains,)


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
    """square @ nodes, most of whose entries are 0."""
    product = np.zeros_like(nodes)
    for s in range(len(nodes)):
        for b in range(nodes.shape[1]):
            if nodes[s, b] != 0.0:
                for t in range(len(nodes)):
                    product[t, b] += square[t, s] * nodes[s, b]
    return product


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
def add_difference(factor: float, path: Codes, gold: Codes, total: Moved) -> None:
    """nodes and edges += factor * (those of a path - those of the right one); exactly 0 where both are the same."""
    nodes, edges = total
    for t in range(len(path)):
        if path[t] != gold[t]:
            nodes[t, path[t]] += factor
            nodes[t, gold[t]] -= factor
        if t > 0 and (path[t] != gold[t] or path[t - 1] != gold[t - 1]):
            edges[path[t - 1], path[t]] += factor
            edges[gold[t - 1], gold[t]] -= factor


@jit
def add_path(path: Codes, square: Floats, chain: Chain, margin: Margin, atoms: Atoms) -> bool:
    """Put a path among those of a chain with weight 0; where all slots are full, the lightest gives way.

    `square` is G between the rows of the chain. False where it cannot be that of a kernel.
    """
    number, first, _ = chain
    n, n_slots = len(path), atoms.paths.shape[1]
    for slot in range(atoms.n_used[number]):
        n_equal = 0
        while n_equal < n and atoms.paths[first + n_equal, slot] == path[n_equal]:
            n_equal += 1
        if n_equal == n:
            return True
    place = atoms.n_used[number]
    if place < n_slots:
        atoms.n_used[number] += 1
    else:
        place = 0
        for slot in range(1, n_slots):
            if atoms.weights[number, slot] < atoms.weights[number, place] - TIE:
                place = slot
        fold(place, chain, margin.is_hamming, atoms)
    for t in range(n):
        atoms.paths[first + t, place] = path[t]
    atoms.weights[number, place] = 0.0
    return add_products(place, square, chain, margin.rho, atoms)


@jit
def add_products(place: int, square: Floats, chain: Chain, rho: float, atoms: Atoms) -> bool:
    """Products of the path of a slot with all atoms; False where a squared distance is negative beyond rounding."""
    number, first, gold = chain
    n, n_labels, aggregate = len(gold), atoms.mean.shape[1], atoms.paths.shape[1]
    own = Moved(np.zeros((n, n_labels)), np.zeros((n_labels, n_labels)))
    add_difference(1.0, atoms.paths[first : first + n, place], gold, own)
    nodes, edges = multiply(square, own.nodes), own.edges
    products, right = atoms.products[number], path_score(nodes, rho * edges, gold)
    for slot in range(atoms.n_used[number]):
        path = atoms.paths[first : first + n, slot]
        products[place, slot] = products[slot, place] = path_score(nodes, rho * edges, path) - right
    if atoms.weights[number, aggregate] > 0.0:
        mean = inner(atoms.mean[first : first + n], nodes) + rho * inner(atoms.steps[number], edges)
        products[place, aggregate] = products[aggregate, place] = mean - right
    size = 0.0
    for t in range(n):
        size += abs(square[t, t])
    for slot in range(atoms.n_used[number]):
        if distance(place, slot, products) < INDEFINITE * size:
            return False
    is_possible: bool = products[place, place] >= INDEFINITE * size  # distance from the right path
    return is_possible


@jit
def distance(one: int, other: int, products: Floats) -> float:
    """|phi_a - phi_b|^2."""
    squared: float = products[one, one] + products[other, other] - 2.0 * products[one, other]
    return squared


@jit
def fold(slot: int, chain: Chain, is_hamming: bool, atoms: Atoms) -> None:
    """Mix a path into the aggregate, with its weight: w stays as it is. Without it a full chain would never move."""
    number, first, gold = chain
    weights, products, last = atoms.weights[number], atoms.products[number], atoms.paths.shape[1]
    weight = weights[slot]
    if weight <= 0.0:
        return
    path = atoms.paths[first : first + len(gold), slot]
    share = weights[last] + weight
    kept, gained = weights[last] / share, weight / share
    mean, steps = atoms.mean[first : first + len(gold)], atoms.steps[number]
    add_scaled(mean, kept - 1.0, mean)
    add_scaled(steps, kept - 1.0, steps)
    for t in range(len(gold)):
        mean[t, path[t]] += gained
        if t > 0:
            steps[path[t - 1], path[t]] += gained
    squared = kept * kept * products[last, last] + gained * gained * products[slot, slot]
    squared += 2.0 * kept * gained * products[last, slot]
    for other in range(last):
        products[last, other] = kept * products[last, other] + gained * products[slot, other]
        products[other, last] = products[last, other]
    products[last, last] = squared
    atoms.losses[number] = kept * atoms.losses[number] + gained * path_loss(path, gold, is_hamming)
    weights[last] = share


@jit
def atom_values(scores: Floats, transition: Floats, chain: Chain, is_hamming: bool, atoms: Atoms) -> Floats:
    """v of the atoms of a chain, shape (n_slots + 1,); -inf in slots that are empty."""
    number, first, gold = chain
    n, last = len(gold), atoms.paths.shape[1]
    values, right = np.full(last + 1, -np.inf), path_score(scores, transition, gold)
    for slot in range(atoms.n_used[number]):
        path = atoms.paths[first : first + n, slot]
        values[slot] = path_loss(path, gold, is_hamming) + path_score(scores, transition, path) - right
    if atoms.weights[number, last] > 0.0:
        mean = inner(atoms.mean[first : first + n], scores) + inner(atoms.steps[number], transition)
        values[last] = atoms.losses[number] + mean - right
    return values


@jit
def mean_value(values: Floats, chain: Chain, atoms: Atoms) -> float:
    """The mean of v under the weights of a chain."""
    weights, mean = atoms.weights[chain.number], 0.0
    for slot in range(len(values)):
        if weights[slot] > 0.0:
            mean += weights[slot] * values[slot]
    return mean


@jit
def move_weight(values: Floats, chain: Chain, C: float, atoms: Atoms) -> float:
    """Pair steps of one chain; `values` follow. How much larger D is."""
    weights, products = atoms.weights[chain.number], atoms.products[chain.number]
    n_used, last, gained = atoms.n_used[chain.number], len(values) - 1, 0.0
    for _ in range(MOST_STEPS):
        top, bottom = -np.inf, np.inf
        for slot in range(n_used):
            top = max(top, values[slot])
            if weights[slot] > 0.0:
                bottom = min(bottom, values[slot])
        if weights[last] > 0.0:
            bottom = min(bottom, values[last])
        tie = TIE * (1.0 + abs(top))
        if top - bottom <= tie:
            return gained
        high, low = 0, 0
        while values[high] < top - tie:
            high += 1
        while values[low] > bottom + tie or weights[low] <= 0.0:
            low += 1
        rise, bend = C * (values[high] - values[low]), C * C * distance(high, low, products)
        weight = weights[low]
        step = weight if bend * weight <= rise * (1.0 + TIE) else rise / bend
        weights[low] = weight - step
        weights[high] += step
        gained += step * (rise - step * bend / 2.0)
        for slot in range(last + 1):
            values[slot] += step * C * (products[slot, low] - products[slot, high])
    return gained


@jit
def moved_since(before: Floats, chain: Chain, margin: Margin, atoms: Atoms) -> Moved:
    """What alpha = C (Y - mu) and T gain where the weights of a chain were `before`."""
    number, first, gold = chain
    n, last, n_labels = len(gold), atoms.paths.shape[1], atoms.mean.shape[1]
    moved = Moved(np.zeros((n, n_labels)), np.zeros((n_labels, n_labels)))
    for slot in range(atoms.n_used[number]):
        gained = atoms.weights[number, slot] - before[slot]
        if gained != 0.0:
            add_difference(-margin.C * gained, atoms.paths[first : first + n, slot], gold, moved)
    gained = atoms.weights[number, last] - before[last]
    if gained != 0.0:
        add_scaled(moved.nodes, -margin.C * gained, atoms.mean[first : first + n])
        add_scaled(moved.edges, -margin.C * gained, atoms.steps[number])
        for t in range(n):
            moved.nodes[t, gold[t]] += margin.C * gained
            if t > 0:
                moved.edges[gold[t - 1], gold[t]] += margin.C * gained
    add_scaled(moved.edges, margin.rho - 1.0, moved.edges)
    return moved
