"""Support vector machines as their definitions read: a general quadratic program over everything written down."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
from scipy.optimize import minimize


def maximise(linear, quadratic, start, upper, groups):
    """max linear . x - x^T quadratic x / 2, x <= upper, sums of x over each group as at the start."""
    sums = np.array([[float(k in group) for k in range(len(start))] for group in groups])
    fixed = sums @ start
    solution = minimize(
        lambda x: x @ quadratic @ x / 2 - linear @ x,
        start,
        jac=lambda x: quadratic @ x - linear,
        bounds=[(bound[0], bound[1]) for bound in upper],
        constraints={"type": "eq", "fun": lambda x: sums @ x - fixed, "jac": lambda _: sums},
        method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 5000},
    )
    return solution.x, -solution.fun


def crammer_singer(gram, gold, C, prior, label_kernel):
    """(A, the optimum): A[t, b] <= C [b = y_t], sum_b A[t, b] = 0; positions without a label have A[t] = 0."""
    n, n_labels = prior.shape
    quadratic = np.einsum("st,sa,tb,ab->satb", gram, prior, prior, label_kernel).reshape(n * n_labels, n * n_labels)
    linear, upper = np.zeros((n, n_labels)), []
    for t, right in enumerate(gold):
        for b in range(n_labels):
            upper.append((0.0, 0.0) if right is None else (None, C if b == right else 0.0))
        if right is not None:
            linear[t, right] = 1.0
    groups = [set(range(t * n_labels, (t + 1) * n_labels)) for t in range(n)]
    found, value = maximise(linear.ravel(), quadratic, np.zeros(n * n_labels), upper, groups)
    return found.reshape(n, n_labels), value


def position_objective(gram, dual, gold, C, prior, label_kernel):
    """|w|^2 / 2 + C sum of hinges at these dual weights."""
    scores = prior * (gram @ ((dual * prior) @ label_kernel))
    total = (dual * scores).sum() / 2
    for t, right in enumerate(gold):
        if right is not None:
            total += C * (max(score + (b != right) for b, score in enumerate(scores[t])) - scores[t, right])
    return total


def loss_of(path, gold, loss):
    n_wrong = sum(one != other for one, other in zip(path, gold, strict=True))
    return n_wrong if loss == "hamming" else min(n_wrong, 1)


def counts(features, path, n_labels, rho):
    """phi(x, y): features by label, and steps between labels weighed by sqrt(rho)."""
    emission, transition = np.zeros((n_labels, features.shape[1])), np.zeros((n_labels, n_labels))
    for row, label in zip(features, path, strict=True):
        emission[label] += row
    for previous, label in pairwise(path):
        transition[previous, label] += np.sqrt(rho)
    return np.concatenate([emission.ravel(), transition.ravel()])


def paths_of(n, n_labels):
    return list(product(range(n_labels), repeat=n))


def structured(features, golds, n_labels, C, rho, loss):
    """(w, the optimum) of the dual over all label paths of all chains; `features` is one matrix per chain."""
    rows, losses, groups, start = [], [], [], []
    for table, gold in zip(features, golds, strict=True):
        right = counts(table, gold, n_labels, rho)
        paths = paths_of(len(gold), n_labels)
        groups.append(set(range(len(rows), len(rows) + len(paths))))
        for path in paths:
            rows.append(C * (right - counts(table, path, n_labels, rho)))
            losses.append(C * loss_of(path, gold, loss))
            start.append(float(tuple(path) == tuple(gold)))
    differences = np.array(rows)
    found, value = maximise(
        np.array(losses), differences @ differences.T, np.array(start), [(0.0, None)] * len(rows), groups
    )
    return found @ differences, value


def structured_objective(weights, features, golds, n_labels, C, rho, loss):
    """|w|^2 / 2 + C sum_i ( max_y [Delta(y) + w . phi(y)] - w . phi(y_i) ), every path written down."""
    total = weights @ weights / 2
    for table, gold in zip(features, golds, strict=True):
        best = max(
            loss_of(path, gold, loss) + weights @ counts(table, path, n_labels, rho)
            for path in paths_of(len(gold), n_labels)
        )
        total += C * (best - weights @ counts(table, gold, n_labels, rho))
    return total


def ranking(gram, groups, C, offsets):
    """(row weights, the optimum): a_ij >= 0, sum_j a_ij <= C, the rest of C standing with the correct candidate."""
    n, differences, linear, start, sets = len(gram), [], [], [], []
    for rows in groups:
        sets.append(set(range(len(start), len(start) + len(rows))))
        for row in rows:
            difference = np.zeros(n)
            difference[rows[0]] += 1
            difference[row] -= 1
            differences.append(difference)
            linear.append(0.0 if row == rows[0] else 1 - offsets[rows[0]] + offsets[row])
            start.append(C if row == rows[0] else 0.0)
    table = np.array(differences)
    found, value = maximise(np.array(linear), table @ gram @ table.T, np.array(start), [(0.0, None)] * len(start), sets)
    return found @ table, value


def ranking_objective(gram, weights, groups, C, offsets):
    """|w|^2 / 2 + C sum_i max(0, max_j (1 - s(x_i0) + s(x_ij))) with s = F + offsets."""
    scores = gram @ weights + offsets
    total = weights @ gram @ weights / 2
    for rows in groups:
        total += C * max(0.0, *(1 - scores[rows[0]] + scores[row] for row in rows[1:]), 0.0)
    return total
