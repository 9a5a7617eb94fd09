"""Tiles against what the memory allows: cells per second as a share of a plain copy of the same tile, on one core.

A build writes one tile after the other into memory that is there already, and none of it is in the cache when its turn
comes. So copies and tiles alike go through several pieces of memory in turns, together far larger than the cache: a
copy of 17 MB that stays between the same two pieces never leaves a cache of 32 MB, takes half the time, and says
nothing about what a store has to wait for. What new memory costs is shown beside it. Times are of the thread, so that
other work on the machine disturbs less; the best of several. A tile in single precision is compared with a copy in
single precision.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import cycle, pairwise

import numpy as np
import pytest
from numpy.typing import DTypeLike
from scipy.sparse import csr_matrix
from sklearn.metrics.pairwise import polynomial_kernel

from gramline.kernels import EmpiricalPrior, Gaussian, Identity, Linear, Polynomial, SequenceLabeling
from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packed
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.features import spelling

LABELS = ("B", "I", "O")
COPY_SHARES = {"spelling": 0.15, "identity": 0.2, "gappy": 0.12, "spelling normalized, float32": 0.28}
PIECES = 8  # of memory that are read, and as many that are written, in turns: 270 MB of single, 540 MB of double
TIMES_DOUBLE = 1.8  # how much faster the normalized spelling tile is in single than in double precision
PRECISIONS = {"": np.float64, ", float32": np.float32}
PEERS = ("scikit-learn polynomial_kernel", "sparse product, then the power")  # the observation kernel, no recursion


def sentences(rng: np.random.Generator, n_tokens: int) -> list[list[str]]:
    """Made-up text: 5000 words of syllables, the n-th most frequent drawn in proportion to 1/n, some capitalised."""
    syllables = [consonant + vowel for consonant in "bcdfglmnprst" for vowel in "aeiou"]
    words = ["".join(rng.choice(syllables, size=rng.integers(1, 5))) for _ in range(5000)]
    share = 1 / np.arange(1, len(words) + 1)
    text = [words[code] for code in rng.choice(len(words), size=n_tokens, p=share / share.sum())]
    text = [word.capitalize() if rng.random() < 0.1 else word for word in text]
    bounds = [0]
    while bounds[-1] < n_tokens:
        bounds.append(min(n_tokens, bounds[-1] + int(rng.integers(5, 40))))
    return [text[a:b] for a, b in pairwise(bounds)]


def with_neighbours(sentence: list[str]) -> list[list[str]]:
    """The spelling of every word, and that of the words beside it."""
    padded = ["", *sentence, ""]
    return [
        [f"{name}[{shift}]" for shift in (-1, 0, 1) for name in spelling(padded[i + shift])]
        for i in range(1, len(padded) - 1)
    ]


def blocks(n_tokens: int, features: Callable[[list[str]], list[list[str]]] | None = None) -> tuple[Packed, Packed]:
    """Two packed blocks of `n_tokens` positions with random labels."""
    rng = np.random.default_rng(7)
    corpora = []
    for _ in range(2):
        text = sentences(rng, n_tokens)
        labels = [list(rng.choice(LABELS, size=len(sentence))) for sentence in text]
        corpora.append(Corpus.from_sequences([features(s) for s in text] if features else text, labels))
    rows = corpora[0].packed()
    return rows, corpora[1].packed(like=rows)


def sparse(packed: Packed, n_features: int) -> csr_matrix:
    features = packed.features
    values = np.ones(len(features.indices))
    return csr_matrix((values, features.indices, features.indptr), shape=(len(features), n_features))


class Turns:
    """Memory for tiles that is read and written piece after piece, so that none of it is in the cache when it is."""

    def __init__(self, n_rows: int, dtype: DTypeLike) -> None:
        random = np.random.default_rng(0).random((n_rows, n_rows)).astype(dtype)
        self._pieces = [(random.copy(), np.zeros_like(random)) for _ in range(PIECES)]
        self._next = cycle(self._pieces)

    def copy(self) -> None:
        source, target = next(self._next)
        np.copyto(target, source)

    def copy_into_new(self) -> None:
        next(self._next)[0].copy()

    def tile(self, kernel: Kernel, rows: Packed, cols: Packed) -> None:
        target = next(self._next)[1]
        kernel.tile(rows, cols, target.dtype, target)


def seconds(function: Callable[[], object], times: int) -> float:
    """Best time of the thread after one call to warm up."""
    function()
    taken = []
    for _ in range(times):
        begin = time.thread_time()
        function()
        taken.append(time.thread_time() - begin)
    return min(taken)


def seconds_per_tile(n_tokens: int, times: int) -> dict[str, float]:
    """Every tile of the comparison, and the copies they are compared with."""
    spelled, plain = blocks(n_tokens, with_neighbours), blocks(n_tokens)
    kernels = {
        "spelling": (SequenceLabeling(0.01, observation=Polynomial(degree=2)), spelled),
        "spelling normalized": (SequenceLabeling(0.8, observation=Polynomial(degree=2, normalized=True)), spelled),
        "spelling linear": (SequenceLabeling(0.1, observation=Linear()), spelled),
        "spelling gaussian": (SequenceLabeling(0.8, observation=Gaussian(0.05)), spelled),
        "identity": (SequenceLabeling(0.8, observation=Identity()), plain),
        "identity empirical prior": (SequenceLabeling(0.8, prior=EmpiricalPrior()), plain),
        "gappy": (SequenceLabeling(0.8, gap=0.5), plain),
    }
    taken = {}
    for suffix, dtype in PRECISIONS.items():
        turns = Turns(n_tokens, dtype)
        taken["copy" + suffix] = seconds(turns.copy, times)
        taken["copy into new memory" + suffix] = seconds(turns.copy_into_new, times)
        for name, (kernel, (rows, cols)) in kernels.items():
            left = kernel.prepare(rows)
            right = kernel.prepare(cols, like=left)
            taken[name + suffix] = seconds(lambda k=kernel, a=left, b=right, t=turns: t.tile(k, a, b), times)
            if name + suffix == "spelling":
                taken["spelling, new memory"] = seconds(lambda k=kernel, a=left, b=right: k.tile(a, b), times)
    n_features = len(spelled[1].vocabulary.features)
    left_matrix, right_matrix = (sparse(packed, n_features) for packed in spelled)
    taken["scikit-learn polynomial_kernel"] = seconds(
        lambda: polynomial_kernel(left_matrix, right_matrix, degree=2, gamma=1.0, coef0=1.0), max(1, times // 3)
    )
    taken["sparse product, then the power"] = seconds(
        lambda: ((left_matrix @ right_matrix.T).toarray() + 1.0) ** 2, max(1, times // 3)
    )
    return taken


def test_scikit_learn_computes_the_same_observation_kernel() -> None:
    rows, cols = blocks(96, with_neighbours)
    n_features = len(cols.vocabulary.features)
    ours = np.empty((96, 96))
    Polynomial(degree=2).strips(rows, cols).fill(0, 96, ours)
    np.testing.assert_allclose(
        ours, polynomial_kernel(sparse(rows, n_features), sparse(cols, n_features), degree=2, gamma=1.0, coef0=1.0)
    )
    assert 25 < len(rows.features.indices) / 96 < 45


def test_every_timed_tile_computes() -> None:
    taken = seconds_per_tile(64, times=1)
    assert len(taken) == 21
    assert min(taken.values()) >= 0


@pytest.mark.benchmark
def test_share_of_a_copy(capsys: pytest.CaptureFixture[str]) -> None:
    taken = seconds_per_tile(2048, times=15)
    lines = [f"{'2048 x 2048 tile':34}{'ms':>9}{'share of copy':>15}{'of new copy':>13}"]
    shares = {}
    for name, value in taken.items():
        precision = ", float32" if name.endswith("float32") else ""
        shares[name] = taken["copy" + precision] / value
        of_new = taken["copy into new memory" + precision] / value
        lines.append(f"{name:34}{1000 * value:9.2f}{shares[name]:15.2f}{of_new:13.2f}")
    in_single = taken["spelling normalized"] / taken["spelling normalized, float32"]
    lines.append(f"spelling normalized in single precision: {in_single:.1f} times as fast as in double")
    times = {name: taken[name] / taken["spelling"] for name in PEERS}
    lines += [f"spelling tile against {name}: {value:.1f} times as fast" for name, value in times.items()]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    for name, share in COPY_SHARES.items():
        assert shares[name] >= share, name
    assert in_single >= TIMES_DOUBLE
    assert min(times.values()) > 1
