"""One Newton step for the means of all labels and couplings at once, by conjugate gradients.

The scores depend on the means through eta = T alpha, where alpha has one entry per token and label and
T = diag(u) C diag(u) between tokens plus one indicator kernel [nb_d(t) = nb_d(t')] per offset: the couplings are just
another Gaussian process. With the normaliser's Hessian W per token (diag p - p p^T by Jensen's bound) the Newton step
is (I + W T)^-1 ([y=j] - p - alpha). I + W T is symmetric in the inner product <x, y> = x^T T y, and its eigenvalues are
at least 1. Only products with C are needed, no factorisation, and any truncation is an ascent direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.gaussian_process.inference import ROUNDING, Inference
from gramline.learners.gaussian_process.posterior import Scores
from gramline.learners.linear_algebra.cholesky import not_positive_definite

RESIDUALS = (1e-4, 1e-6, 1e-9)  # of the conjugate gradients, relative; the next one when a step is no good
MAX_PRODUCTS = 500
TRIALS = 12


@dataclass(frozen=True)
class Response:
    """The means and scores that a dual vector alpha of the tokens gives."""

    dual: Matrix  # a, shape (n, n_labels)
    mean: Matrix  # K a, shape (n, n_labels)
    couplings: Matrix  # mS, shape (n_offsets, n_labels, n_labels)
    scores: Matrix  # T alpha, shape (n_tokens, n_labels)


def respond(inference: Inference, token_dual: Matrix) -> Response:
    """The response to alpha: one product with C for all labels."""
    tokens = inference.tokens
    dual = tokens.group_sums(token_dual)
    mean = inference.local_means(dual)
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
        step, scores = _best_step(inference, change)
        if step > 0:
            q = inference.posterior
            q.token_dual = q.token_dual + step * move
            q.dual, q.mean = q.dual + step * change.dual, q.mean + step * change.mean
            q.coupling_mean = q.coupling_mean + step * change.couplings
            inference.scores = scores
            return inference.elbo() - before
    return 0.0


def _best_step(inference: Inference, change: Response) -> tuple[float, Scores]:
    """The best of 1, 1/2, 1/4, ... along a direction, and the scores there; 0 when all of them lower the bound.

    The bound is concave, so the search ends at the first step that is worse than the one before it.
    """
    q, tokens, scores = inference.posterior, inference.tokens, inference.scores
    # The part of the bound that changes along the line: a quadratic, and the normaliser of every token.
    slope = float(((tokens.label_counts - q.dual) * change.mean).sum())
    slope += float(((tokens.pair_counts - q.coupling_mean) * change.couplings).sum())
    curvature = float((change.dual * change.mean).sum() + (change.couplings**2).sum())
    best, best_gain, best_scores = 0.0, -ROUNDING * abs(inference.elbo()), scores
    step = 1.0
    for _ in range(TRIALS):
        moved = scores.with_means(scores.means + step * change.scores)
        gain = step * slope - step**2 * curvature / 2 - moved.total + scores.total
        if best > 0 and gain <= best_gain:
            break
        if gain >= best_gain:
            best, best_gain, best_scores = step, gain, moved
        step /= 2
    return best, best_scores


def newton_direction(inference: Inference, tolerance: float = RESIDUALS[-1]) -> Matrix:
    """(I + W T)^-1 ([y=j] - p - alpha), shape (n_tokens, n_labels): conjugate gradients in the inner product of T.

    The images T residual and T direction go along with their vectors, so every step costs one product with T.
    """
    hessian = inference.scores.hessian()
    residual = inference.tokens.own_labels - inference.scores.slopes.probabilities - inference.posterior.token_dual
    residual_image = respond(inference, residual).scores
    solution = np.zeros_like(residual)
    direction, direction_image = residual.copy(), residual_image.copy()
    norm = float((residual * residual_image).sum())
    enough = tolerance**2 * norm
    for _ in range(MAX_PRODUCTS):
        if norm <= enough:
            break
        step = direction + hessian.times(direction_image)
        curvature = float((direction_image * step).sum())
        if not curvature > 0:
            token = int(np.abs(direction).max(axis=1).argmax())
            raise not_positive_definite(int(inference.tokens.groups[token]), curvature)
        length = norm / curvature
        solution += length * direction
        residual -= length * step
        residual_image -= length * respond(inference, step).scores
        previous, norm = norm, float((residual * residual_image).sum())
        direction = residual + (norm / previous) * direction
        direction_image = residual_image + (norm / previous) * direction_image
    return solution
