from itertools import pairwise

import numpy as np
import pytest
from oracles.viterbi import all_paths, best_path, path_score
from tolerances import assert_close

from gramline.learners.chains import viterbi as module
from gramline.learners.chains.viterbi import best_others, path_scores, structure_sums, viterbi


def chains(seed, lengths, n_labels, integers=False):
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    scores = random.normal(size=(starts[-1], n_labels))
    transition = random.normal(size=(n_labels, n_labels))
    if integers:  # few distinct values: many exact ties
        scores, transition = np.rint(scores), np.rint(transition)
    return scores, transition, starts


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("n_labels", [1, 2, 3])
def test_best_of_all_paths_with_the_lowest_label_on_ties(n_labels, integers):
    for seed in range(8):
        scores, transition, starts = chains(seed, [4, 1, 0, 2, 5], n_labels, integers)
        path, totals = viterbi(scores, transition, starts)
        for s in range(5):
            expected = best_path(scores[starts[s] : starts[s + 1]], transition)
            assert tuple(path[starts[s] : starts[s + 1]]) == expected
            assert_close(totals[s], path_score(scores[starts[s] : starts[s + 1]], transition, expected))


def test_all_zero_scores_give_label_zero():
    path, _ = viterbi(np.zeros((6, 3)), np.zeros((3, 3)), np.array([0, 6]))
    assert path.tolist() == [0] * 6


def test_rounding_breaks_no_tie():
    scores = np.array([[0.3, 0.1 + 0.2], [0.0, 5e-17], [0.0, 0.0]])
    transition, starts = np.array([[0.0, 0.1 + 0.2 - 0.3], [0.0, 0.0]]), np.array([0, 1, 3])
    assert viterbi(scores, transition, starts)[0].tolist() == [1, 0, 1]
    assert viterbi(scores, transition, starts, np.array([0.6, 0.6, 0.6]))[0].tolist() == [0, 0, 0]
    assert viterbi(scores, transition, starts, np.full(3, 1e-9))[0].tolist() == [1, 0, 1]


def test_interpreted_equals_compiled():
    scores, transition, starts = chains(3, [3, 0, 4], 3)
    path, totals = viterbi(scores, transition, starts)
    again, third, sums = module.Decoder.of(7, 4, 3), module.Decoder.of(7, 4, 3), np.zeros_like(totals)
    module._decode_all.py_func(scores, transition, np.zeros(3), starts, again, sums)
    for s in range(3):
        module.decode_chain.py_func(scores, transition, 0.0, starts[s], starts[s + 1], third)
    assert path.tolist() == again.path.tolist() == third.path.tolist()
    assert_close(totals, sums)


def test_scores_of_given_paths():
    scores, transition, starts = chains(5, [0, 3, 1, 0, 4, 0], 3)
    path = np.array([0, 2, 1, 2, 1, 1, 0, 2], np.int32)
    expected = [path_score(scores[a:b], transition, path[a:b]) for a, b in pairwise(starts)]
    assert_close(path_scores(scores, transition, starts, path), expected)
    assert structure_sums(np.zeros((0, 2)), np.array([0, 0])).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("integers", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_best_of_all_paths_but_one(n_labels, integers):
    for seed in range(8):
        scores, transition, starts = chains(seed, [4, 1, 0, 2, 5], n_labels, integers)
        best, _ = viterbi(scores, transition, starts)
        for given in (best, np.random.default_rng(seed).integers(n_labels, size=len(best), dtype=np.int32)):
            others, totals = best_others(scores, transition, starts, given)
            assert_close(path_scores(scores, transition, starts, others)[[0, 1, 3, 4]], totals[[0, 1, 3, 4]])
            again, sums = given.copy(), np.full(5, -np.inf)
            module.decode_others.py_func(scores, transition, 0.0, starts, given, again, sums)
            assert (others.tolist(), totals.tolist()) == (again.tolist(), sums.tolist())
            assert totals[2] == -np.inf
            for s in (0, 1, 3, 4):
                here = slice(starts[s], starts[s + 1])
                paths = [path for path in all_paths(starts[s + 1] - starts[s], n_labels) if path != tuple(given[here])]
                assert tuple(others[here]) in paths
                assert_close(totals[s], max(path_score(scores[here], transition, path) for path in paths))


def test_one_label_has_no_other_path():
    others, totals = best_others(np.ones((3, 1)), np.ones((1, 1)), np.array([0, 2, 3]), np.zeros(3, np.int32))
    assert others.tolist() == [0, 0, 0]
    assert totals.tolist() == [-np.inf, -np.inf]
