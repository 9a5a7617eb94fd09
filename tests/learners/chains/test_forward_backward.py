"""Tests of learners/chains/forward_backward.py and learners/random_fields/likelihood.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from oracles import random_fields as oracle
from tolerances import assert_close

from gramline.learners.chains import forward_backward as module
from gramline.learners.chains.forward_backward import chain_marginals
from gramline.learners.random_fields.likelihood import ChainLikelihood

STARTS = np.array([0, 3, 3, 4, 8])


def numbers(seed: int, n_labels: int, size: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return size * draw.normal(size=(8, n_labels)), size * draw.normal(size=(n_labels, n_labels))


@pytest.mark.parametrize("n_labels", [1, 2, 3])
@pytest.mark.parametrize("has_known", [False, True])
def test_marginals_are_those_of_all_paths(n_labels: int, has_known: bool) -> None:
    scores, transition = numbers(n_labels, n_labels)
    known = np.array([-1, 0, -1, -1, n_labels - 1, -1, 0, -1], np.int32) if has_known else None
    found = chain_marginals(scores, transition, STARTS, known=known)
    edges = np.zeros((n_labels, n_labels))
    for structure, (first, last) in enumerate(pairwise(STARTS)):
        if first == last:
            assert found.log_norms[structure] == 0
            continue
        own = None if known is None else known[first:last]
        nodes, steps, log_norm = oracle.marginals(scores[first:last], transition, own)
        assert_close(found.nodes[first:last], nodes)
        assert_close(found.log_norms[structure], log_norm)
        edges += steps
    assert_close(found.edges, edges)


def test_structures_that_are_left_out_have_nothing() -> None:
    scores, transition = numbers(0, 3)
    every, some = (chain_marginals(scores, transition, STARTS, chosen) for chosen in (None, np.array([3])))
    assert not some.nodes[:4].any()
    assert_close(some.nodes[4:], every.nodes[4:])
    assert_close(some.log_norms, every.log_norms[3:])


@pytest.mark.parametrize("size", [1e2, 1e4, 1e6])
def test_large_scores_do_not_overflow(size: float) -> None:
    scores, transition = numbers(3, 3, size)
    for known in (None, np.array([-1, 0, 2, -1, 1, -1, 0, -1], np.int32)):
        found = chain_marginals(scores, transition, STARTS, known=known)
        assert all(np.isfinite(array).all() for array in found)
        assert_close(found.nodes.sum(axis=1), np.ones(8))


@pytest.mark.parametrize("known", [[0, 1, 2, 0, 1, 1, 0, 2], [0, -1, 2, -1, -1, 1, -1, 2]], ids=["all", "some"])
def test_the_slope_is_that_of_differences(known: list[int]) -> None:
    scores, transition = numbers(5, 3)
    likelihood = ChainLikelihood.of(np.array(known, np.int32), STARTS, 3)
    assert likelihood.is_convex == (min(known) >= 0)
    slope = likelihood(scores, transition)
    for point, found in ((scores, slope.nodes), (transition, slope.edges)):
        for place in np.ndindex(*point.shape):
            kept = point[place]
            values = []
            for step in (1e-5, -1e-5):
                point[place] = kept + step
                values.append(likelihood(scores, transition).loss)
            point[place] = kept
            assert abs((values[0] - values[1]) / 2e-5 + found[place]) < 1e-8


def test_compiled_and_interpreted_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    scores, transition = numbers(7, 3)
    compiled = chain_marginals(scores, transition, STARTS)
    monkeypatch.setattr(module, "forward_backward", module.forward_backward.py_func)
    for one, other in zip(compiled, chain_marginals(scores, transition, STARTS), strict=True):
        assert_close(other, one)
