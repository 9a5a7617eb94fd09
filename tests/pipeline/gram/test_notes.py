"""Notes on kernels: the same words on the command line and as warnings in Python."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gramline.kernels import Identity, Linear, PositionKernel, SequenceLabeling, Substitution, Sum, context_share
from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelOverflowError, KernelWarning
from gramline.pipeline import Corpus, build_gram
from gramline.pipeline.gram.notes import LARGE_VALUE, SMALL_SHARE, kernel_notes, warn_about_kernel

N_LABELS = 35


def sentences(n_words: int = 10, length: int = 12) -> Corpus:
    rng = np.random.default_rng(4)
    X = [[f"w{word}" for word in rng.integers(0, n_words, length)] for _ in range(60)]
    return Corpus.from_sequences(X, [[f"L{rng.integers(N_LABELS)}" for _ in words] for words in X])


def test_neighbours_that_hardly_count_are_noted_with_the_reach_at_which_they_do() -> None:
    corpus = sentences()
    blind = SequenceLabeling(c=0.3)
    assert context_share(blind, corpus) < SMALL_SHARE
    (note,) = kernel_notes(blind, corpus)
    said = re.fullmatch(
        r"neighbours make (\S+) % of the Gram matrix \(on a sample\): positions are compared almost by themselves; "
        r"with a reach of (\S+) they make (\d+) %",
        note,
    )
    assert said is not None
    assert float(said[1]) / 100 == pytest.approx(context_share(blind, corpus), rel=0.1)
    better = blind.reaching(float(said[2]))
    assert context_share(better, corpus) == pytest.approx(float(said[3]) / 100, abs=0.006)
    assert list(kernel_notes(better, corpus)) == []


@pytest.mark.parametrize(
    ("kernel", "corpus"),
    [
        (SequenceLabeling(reach=1.0), sentences()),
        (PositionKernel(Identity()), sentences()),
        (SequenceLabeling(c=0.3), sentences(length=1)),  # no neighbours
        (SequenceLabeling(c=0.3), sentences(n_words=100_000)),  # none that match
    ],
)
def test_where_no_reach_helps_nothing_is_said(kernel: Kernel, corpus: Corpus) -> None:
    assert list(kernel_notes(kernel, corpus)) == []


def test_values_beyond_use_are_noted() -> None:
    corpus = sentences(n_words=2, length=40)
    large = SequenceLabeling(reach=30.0)
    assert large.diagonal(large.prepare(corpus.packed())).max() > LARGE_VALUE
    (note,) = kernel_notes(large, corpus)
    assert re.match(r"values of the longest structures grow to \de\+\d+, and beyond 1e\+30 ", note)
    reach = float(note.split("with a reach of ")[1].split()[0])
    assert list(kernel_notes(large.reaching(reach), corpus)) == []


def test_what_overflows_is_refused_and_not_noted(tmp_path: Path) -> None:
    corpus = sentences(n_words=1, length=80)
    with pytest.raises(KernelOverflowError):
        build_gram(SequenceLabeling(reach=1e6), corpus, tmp_path / "a.zarr")


def test_feature_sets_compared_as_a_whole_are_warned_about_in_the_words_of_the_command_line(tmp_path: Path) -> None:
    X = [[{"word": f"w{number}", "length": 2.0}] for number in range(4)]
    corpus = Corpus.from_sequences(X, [["A"], ["B"], ["A"], ["B"]])
    with pytest.warns(KernelWarning) as caught:
        build_gram(SequenceLabeling(), corpus, tmp_path / "a.zarr")
    assert [str(warning.message) for warning in caught] == list(kernel_notes(SequenceLabeling(), corpus))
    assert caught[0].filename == __file__
    expected = "identity compares feature sets as a whole, and 4 of 4 positions have one that is nowhere else"
    assert str(caught[0].message).startswith(expected)
    build_gram(PositionKernel(Linear(normalized=True)), corpus, tmp_path / "b.zarr")


def test_a_matrix_that_is_not_positive_semidefinite_is_noted_inside_of_a_sum_too() -> None:
    indefinite = Substitution("ab", [[0.0, 1.0], [1.0, 0.0]])
    corpus = Corpus.from_sequences([["a", "b"]], [["A", "B"]])
    for observation in (indefinite, Sum(Identity(), indefinite)):
        with pytest.warns(KernelWarning, match=r"not positive semidefinite \(smallest eigenvalue -1\)"):
            warn_about_kernel(PositionKernel(observation), corpus)
    warn_about_kernel(PositionKernel(Substitution.named("pam250")), Corpus.from_sequences([["A", "C"]]))
