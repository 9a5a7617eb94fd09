"""Folds: disjoint, covering, seeded, grouped, stratified, and refused when they make no sense."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramline.pipeline.crossval.folds import Folds, custom_folds, from_file, grouped, k_fold, stratified
from gramline.pipeline.errors import InputError


def assert_partition(folds: Folds) -> None:
    together = np.concatenate(folds.held_out)
    assert sorted(together.tolist()) == list(range(folds.n_structures))


@given(st.integers(2, 40), st.integers(2, 10), st.none() | st.integers(0, 5))
def test_k_fold_cuts_the_corpus_into_nearly_equal_parts(n: int, k: int, seed: int | None) -> None:
    k = min(n, k)
    folds = k_fold(n, k, seed=seed)
    assert_partition(folds)
    sizes = [len(held) for held in folds.held_out]
    assert max(sizes) - min(sizes) <= 1
    assert np.array_equal(np.sort(np.concatenate([folds.training(0), folds.held_out[0]])), np.arange(n))


def test_a_seed_decides_the_shuffle_and_repeats_differ() -> None:
    first, again = (k_fold(30, 3, seed=7, repeats=2) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first.held_out, again.held_out, strict=True))
    assert len(first) == 6
    assert not np.array_equal(first.held_out[0], first.held_out[3])
    assert not np.array_equal(first.held_out[0], np.arange(10))


@given(st.lists(st.sampled_from("abcdef"), min_size=6, max_size=30).filter(lambda g: len(set(g)) >= 3))
def test_groups_stay_together(groups: list[str]) -> None:
    folds = grouped(groups, 3, seed=1)
    assert_partition(folds)
    for held in folds.held_out:
        inside = {groups[k] for k in held}
        assert inside.isdisjoint({groups[k] for k in range(len(groups)) if k not in set(held.tolist())})


def test_rare_labels_are_spread_over_the_folds() -> None:
    labels: list[list[str | None]] = [["O", "RARE"]] * 3 + [["O", "COMMON"]] * 9 + [["O", None]] * 6
    folds = stratified(labels, 3, seed=0)
    assert_partition(folds)
    for held in folds.held_out:
        assert Counter(label for k in held for label in labels[k])["RARE"] == 1
        assert len(held) == 6


def test_folds_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "folds.json"
    path.write_text("[[0, 2], [1]]")
    assert [held.tolist() for held in from_file(path, 4).held_out] == [[0, 2], [1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[0, 2], [1, 3, 1]]", "fold 1 holds out structure 1 twice; name it once"),
        ("[[0, 2], [1], [2, 0]]", "fold 2 holds out the same structures as fold 0; give it once"),
    ],
)
def test_a_structure_or_a_fold_given_twice_is_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "folds.json"
    path.write_text(content)
    with pytest.raises(InputError, match=rf"^{path}: {said}$"):
        from_file(path, 4)


def test_a_structure_may_be_held_out_again_and_that_is_counted() -> None:
    assert custom_folds([[0, 2], range(1, 3), np.array([3])], 4).n_repeated == 1
    assert k_fold(6, 3).n_repeated == 0
    assert k_fold(6, 3, seed=0, repeats=2).n_repeated == 6


@pytest.mark.parametrize("content", ["", "{", "[[0, 9]]", "[[]]", "[]", '[["a"]]', "7", "[[0, 1, 2, 3]]", "[[-1]]"])
def test_a_bad_file_is_refused_in_a_sentence(tmp_path: Path, content: str) -> None:
    path = tmp_path / "folds.json"
    path.write_text(content)
    with pytest.raises(InputError):
        from_file(path, 4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: k_fold(3, 4), "3 structures can be cut into 2 to 3 folds, not 4"),
        (lambda: k_fold(3, 1), "not 1"),
        (lambda: k_fold(3, 2, repeats=2), "need a seed"),
        (lambda: custom_folds([], 3), "there is no fold; give at least one list of held-out structures"),
        (lambda: custom_folds([[0], 1], 3), "fold 1 must be a list of structure numbers, got 1"),
        (lambda: custom_folds([[0], "12"], 3), "fold 1 must be a list of structure numbers, got '12'"),
        (lambda: custom_folds([[0], [1.5]], 3), r"fold 1 must be a list of structure numbers, got \[1.5\]"),
        (lambda: custom_folds([[True, False, False]], 3), "fold 0 must be a list of structure numbers"),
        (lambda: custom_folds([[0], [[1, 2]]], 3), "fold 1 must be a list of structure numbers"),
        (lambda: custom_folds([[0], [1, -2]], 3), "fold 1 holds out structure -2, but the corpus has 0 to 2"),
        (lambda: custom_folds([[0, 3]], 3), "fold 0 holds out structure 3, but the corpus has 0 to 2"),
        (lambda: Folds(3, (np.array([1, 1]),)), "fold 0 holds out structure 1 twice"),
        (lambda: Folds(3, (np.array([True, False, False]),)), "fold 0 holds out .*; give the numbers of structures"),
        (
            lambda: Folds(3, (np.array([1]),), (np.array([4]),)),
            "fold 0 leaves out structure 4, but the corpus has 0 to",
        ),
        (lambda: Folds(3, (np.array([1]),), (np.array([1]),)), "fold 0 tests on structure 1 and leaves it out"),
        (lambda: grouped(["a", "a", "b"], 3), "2 groups can be cut into 2 to 2 folds, not 3"),
        (
            lambda: Folds(6, (np.array([0]), np.array([2])), (np.array([5]),)),
            "1 folds leave structures out, but there are 2",
        ),
        (lambda: Folds(2, (np.array([0]),), (np.array([1]),)), "nothing is left to train on"),
    ],
)
def test_folds_that_make_no_sense_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_what_a_fold_leaves_out_neither_trains_nor_is_tested_on() -> None:
    folds = Folds(6, (np.array([0, 1]), np.array([2])), (np.array([5]), np.array([0, 1])))
    assert folds.training(0).tolist() == [2, 3, 4]
    assert folds.hidden(1).tolist() == [0, 1, 2]
    assert folds.training(1).tolist() == [3, 4, 5]
