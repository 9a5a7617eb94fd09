"""Fit time of the Gaussian-process labeler, as a multiple of one Cholesky factorisation per label; its calibration.

A small untimed version runs by default; `pytest -m benchmark -s tests/benchmarks/test_gaussian_process_speed.py`
prints the ratio and a reliability table.
"""

from __future__ import annotations

from statistics import median
from time import perf_counter
from typing import Literal

import numpy as np
import pytest
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.reporting.content import calibration_error

AT_MOST = 60.0  # Cholesky factorisations per label
LABELS = ("B", "I", "O")


def problem(n_sentences: int, length: int) -> tuple[DenseGram, list[list[str]]]:
    """Binary features in a window, a linear kernel and labels that hang on feature, neighbour and chance."""
    random = np.random.default_rng(0)
    n = n_sentences * length
    words = random.zipf(1.6, n) % 2000
    labels = (words % 7 % 3 + (random.random(n) < 0.1)) % 3
    labels[1:] = np.where(labels[:-1] == 2, labels[1:], np.maximum(labels[1:] - 1, 0))
    matrix = np.zeros((n, n))
    for shift in (-2, -1, 0, 1, 2):
        moved = np.roll(words, shift)
        matrix += moved[:, None] == moved
    flat = [LABELS[code] for code in labels]
    return DenseGram(matrix, np.full(n_sentences, length)), [flat[k : k + length] for k in range(0, n, length)]


def cholesky_seconds(n_rows: int) -> float:
    """Median time of LAPACK on a float64 matrix of that size."""
    random = np.random.default_rng(1).standard_normal((n_rows, 50))
    matrix = np.asfortranarray(random @ random.T + n_rows * np.eye(n_rows))
    seconds = []
    for _ in range(5):
        copy = matrix.copy(order="F")
        start = perf_counter()
        lapack.dpotrf(copy, lower=1, overwrite_a=1, clean=0)
        seconds.append(perf_counter() - start)
    return median(seconds)


def test_the_benchmark_problem_is_learned() -> None:
    gram, labels = problem(12, 8)
    model = GaussianProcessLabeler(max_sweeps=10, bound="jensen", scale=1.0).fit(gram, labels)
    pairs = [
        (a, b)
        for known, found in zip(labels, model.predict(gram), strict=True)
        for a, b in zip(known, found, strict=True)
    ]
    assert np.mean([a == b for a, b in pairs]) > 0.8
    assert cholesky_seconds(8) >= 0.0


def held_out(n_sentences: int, length: int, n_folds: int) -> tuple[np.ndarray, np.ndarray]:
    """(confidence, whether it was right) of every position, each predicted by a model that has not seen it."""
    gram, labels = problem(n_sentences, length)
    matrix, flat = gram.matrix, np.array([label for row in labels for label in row])
    confidences, hits = [], []
    for fold in range(n_folds):
        test = np.arange(n_sentences) % n_folds == fold
        there = np.repeat(test, length)
        lengths = np.full(n_sentences, length)
        model = GaussianProcessLabeler(offsets="GPSL2", tolerance=1e-4, bound="jensen", scale=1.0).fit(
            DenseGram(matrix[np.ix_(~there, ~there)], lengths[~test]), [labels[k] for k in np.flatnonzero(~test)]
        )
        cross = DenseGram(
            matrix[np.ix_(~there, there)], lengths[~test], lengths[test], col_diagonal=np.diagonal(matrix)[there]
        )
        found = model.predict_proba(cross)
        confidences.append(found.max(axis=1))
        hits.append(np.array(model.label_names_)[found.argmax(axis=1)] == flat[there])
    return np.concatenate(confidences), np.concatenate(hits)


def test_held_out_positions_are_all_predicted_once() -> None:
    confidence, right = held_out(6, 5, 2)
    assert confidence.shape == right.shape == (30,)
    assert (confidence >= 1 / 3).all()


@pytest.mark.benchmark
def test_calibration_on_held_out_folds() -> None:
    confidence, right = held_out(60, 20, 5)
    error = calibration_error(confidence, right)
    print(f"\nreliability of predict_proba on {len(right)} held-out positions")  # noqa: T201
    for low in np.arange(0.3, 1.0, 0.1):
        chosen = (confidence >= low) & (confidence < low + 0.1 + 1e-9 * (low > 0.85))
        if chosen.any():
            told, true = confidence[chosen].mean(), right[chosen].mean()
            print(f"  {low:.1f}-{low + 0.1:.1f}  {chosen.sum():5d}  told {told:.3f}  right {true:.3f}")  # noqa: T201
    print(f"expected calibration error {error:.3f}")  # noqa: T201
    assert error < 0.2


@pytest.mark.benchmark
@pytest.mark.parametrize("bound", ["jensen", "expected"])
@pytest.mark.parametrize("offsets", ["GPSL1", "GPSL2", "GPSL4"])
def test_fit_time_in_cholesky_factorisations(offsets: str, bound: Literal["jensen", "expected"]) -> None:
    gram, labels = problem(100, 20)
    GaussianProcessLabeler(bound=bound, max_sweeps=1, scale=1.0).fit(*problem(4, 5))  # compile
    with threadpool_limits(limits=1):
        start = perf_counter()
        model = GaussianProcessLabeler(offsets=offsets, bound=bound, scale=1.0).fit(gram, labels)
        seconds = perf_counter() - start
        ratio = seconds / (len(LABELS) * cholesky_seconds(gram.shape[0]))
    print(  # noqa: T201
        f"\n{offsets}, {bound}: N = {gram.shape[0]} ({model.n_distinct_} distinct), {model.sweeps_} sweeps, "
        f"{seconds:.2f} s = {ratio:.1f} x labels x one Cholesky (at most {AT_MOST:.0f})"
    )
    assert model.converged_
    assert ratio <= AT_MOST
