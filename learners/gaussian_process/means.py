"""One Newton step for the means of all labels and couplings at once, by conjugate gradients.

The scores depend on the means through eta = T alpha, where alpha has one entry per token and label and
T = diag(u) C diag(u) between tokens plus one indicator kernel [nb_d(t) = nb_d(t')] per offset: the couplings are just
another Gaussian process. With the normaliser's Hessian W per token (diag p - p p^T by Jensen's bound) the Newton step
is (I + W T)^-1 ([y=j] - p - alpha). W = R R^T, so it is solved with the symmetric I + R^T T R, whose eigenvalues are
at least 1. Only products with C are needed, no factorisation, and any truncation is an ascent direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.inference import ROUNDING, Inference
from gramline.learners.linear_algebra.cholesky import not_positive_definite

RESIDUALS = (1e-4, 1e-6, 1e-9)  # of the conjugate gradients, relative; the next one when a step is no good
MAX_PRODUCTS = 500
TRIALS = 12


@dataclass(frozen=True)
class Response:
    """What a dual vector alpha of the tokens does."""

    dual: Matrix  # a, shape (n, n_labels)
    mean: Matrix  # K a, shape (n, n_labels)
    couplings: Matrix  # mS, shape (n_offsets, n_labels, n_labels)
    scores: Matrix  # T alpha, shape (n_tokens, n_labels)


def respond(inference: Inference, token_dual: Matrix) -> Response:
    """Means and scores that belong to alpha: one product with C for all labels."""
    tokens, weights = inference.tokens, inference.weights
    dual = tokens.group_sums(token_dual)
    mean = inference.posterior.scale * weights * inference.covariance.multiply(weights * dual)
    couplings = tokens.neighbour_sums(token_dual)
    return Response(dual, mean, couplings, mean[tokens.groups] + tokens.coupling_scores(couplings))


def update_means(inference: Inference) -> float:
    """alpha -> alpha + step * Newton direction; returns the gain of the bound.

    What a rough direction leaves out can be large where K is large, so it is refined when no step of it helps.
    """
    before = inference.elbo()
    for residual in RESIDUALS:
        move = newton_direction(inference, residual)
        change = respond(inference, move)
        step = _best_step(inference, change)
        if step > 0:
            q = inference.posterior
            q.token_dual = q.token_dual + step * move
            q.dual, q.mean = q.dual + step * change.dual, q.mean + step * change.mean
            q.coupling_mean = q.coupling_mean + step * change.couplings
            inference.score_means = inference.score_means + step * change.scores
            return inference.elbo() - before
    return 0.0


def _best_step(inference: Inference, change: Response) -> float:
    """The best of 1, 1/2, 1/4, ... along a direction; 0 when all of them lower the bound.

    The bound is concave, so the search ends at the first step that is worse than the one before it.
    """
    q, tokens = inference.posterior, inference.tokens
    # The bound along the line, without what stays: a quadratic, and the logsumexp of every token.
    slope = float(((tokens.label_counts - q.dual) * change.mean).sum())
    slope += float(((tokens.pair_counts - q.coupling_mean) * change.couplings).sum())
    curvature = float((change.dual * change.mean).sum() + (change.couplings**2).sum())
    before = -inference.total()
    best, best_gain = 0.0, -ROUNDING * abs(inference.elbo())
    step = 1.0
    for _ in range(TRIALS):
        moved = inference.score_means + step * change.scores
        shifted = inference.normalizer.totals(moved, inference.score_variances).sum()
        gain = float(step * slope - step**2 * curvature / 2 - shifted - before)
        if best > 0 and gain <= best_gain:
            break
        if gain >= best_gain:
            best, best_gain = step, gain
        step /= 2
    return best


def newton_direction(inference: Inference, tolerance: float = RESIDUALS[-1]) -> Matrix:
    """(I + W T)^-1 r = r - R (I + R^T T R)^-1 R^T T r with r = [y=j] - p - alpha, shape (n_tokens, n_labels)."""
    probabilities = inference.probabilities()
    roots = inference.normalizer.roots(inference.score_means, inference.score_variances)
    gap = inference.tokens.own_labels - probabilities - inference.posterior.token_dual
    residual = roots.transposed(respond(inference, gap).scores)
    solution = np.zeros_like(residual)
    direction = residual.copy()
    norm = float((residual * residual).sum())
    enough = tolerance**2 * norm
    for _ in range(MAX_PRODUCTS):
        if norm <= enough:
            break
        image = direction + roots.transposed(respond(inference, roots.times(direction)).scores)
        curvature = float((direction * image).sum())
        if not curvature > 0:
            token = int(np.abs(direction).max(axis=1).argmax())
            raise not_positive_definite(int(inference.tokens.groups[token]), curvature)
        length = norm / curvature
        solution += length * direction
        residual -= length * image
        previous, norm = norm, float((residual * residual).sum())
        direction = residual + (norm / previous) * direction
    return gap - roots.times(solution)
