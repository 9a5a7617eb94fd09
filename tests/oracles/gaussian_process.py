"""The Gaussian-process labeler by its formulas: explicit inverses, loops over tokens, nothing clever."""

from __future__ import annotations

import numpy as np


def neighbour(codes, lengths, t, d):
    """Label of the neighbour of token t at offset d; None outside the structure or where there is no label."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    structure = int(np.searchsorted(starts, t, side="right")) - 1
    there = t + d
    if not starts[structure] <= there < starts[structure + 1] or codes[there] < 0:
        return None
    return int(codes[there])


def scores(codes, lengths, offsets, means, covariances, coupling_mean, coupling_variance):
    """z[t, q] for every token, labeled or not."""
    n_labels = len(means)
    z = np.zeros((len(codes), n_labels))
    for t in range(len(codes)):
        for q in range(n_labels):
            z[t, q] = means[q][t] + covariances[q][t, t] / 2
            for k, d in enumerate(offsets):
                a = neighbour(codes, lengths, t, d)
                if a is not None:
                    z[t, q] += coupling_mean[k, a, q] + coupling_variance[k, a, q] / 2
    return z


def softmax(z):
    weights = np.exp(z - z.max())
    return weights / weights.sum()


def elbo(kernels, codes, lengths, offsets, means, covariances, coupling_mean, coupling_variance):
    """The bound; `kernels`, `means`, `covariances` are one per label, of all tokens. Kernels must be invertible."""
    total = 0.0
    for K, m, V in zip(kernels, means, covariances, strict=True):
        inverse = np.linalg.inv(K)
        total += 0.5 * (np.linalg.slogdet(V @ inverse)[1] - np.trace(V @ inverse) - m @ inverse @ m + len(K))
    total += 0.5 * (np.log(coupling_variance) - coupling_variance - coupling_mean**2 + 1).sum()
    z = scores(codes, lengths, offsets, means, covariances, coupling_mean, coupling_variance)
    for t, y in enumerate(codes):
        if y < 0:
            continue
        total += means[y][t] - np.log(np.exp(z[t] - z[t].max()).sum()) - z[t].max()
        for k, d in enumerate(offsets):
            a = neighbour(codes, lengths, t, d)
            if a is not None:
                total += coupling_mean[k, a, y]
    return total


def posterior(K, dual, precision):
    """(m, V) of one label: m = K a, V = (K^-1 + diag lam)^-1."""
    return K @ dual, np.linalg.inv(np.linalg.inv(K) + np.diag(precision))


def scale_gradient(posterior):
    """dELBO / d log scale_j = (a_j^T K_j a_j - sum_t lam V[t, t]) / 2 at the optimum of a posterior."""
    return (posterior.quadratic - posterior.degrees_of_freedom) / 2


def predictive(K, cross, new_diagonal, dual, precision):
    """Mean and variance of one label at new positions: K_*^T a and k_** - K_*^T (K + diag(1 / lam))^-1 K_*."""
    inverse = np.linalg.inv(K + np.diag(1.0 / precision))
    return cross.T @ dual, new_diagonal - np.diagonal(cross.T @ inverse @ cross)


def refined_scores(base, couplings, offsets, lengths, iterations):
    """RNS after that many sweeps, position by position."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    rns = [softmax(row) for row in base]
    for _ in range(iterations):
        following = []
        for s in range(len(lengths)):
            for t in range(starts[s], starts[s + 1]):
                z = base[t].copy()
                for k, d in enumerate(offsets):
                    if starts[s] <= t + d < starts[s + 1]:
                        for a in range(base.shape[1]):
                            z = z + rns[t + d][a] * couplings[k, a]
                following.append(softmax(z))
        rns = following
    return np.array(rns)
