"""Z-score training measured: explicit features, conjugate gradients over stored tiles, many ridges, and their memory.

Small untimed versions run by default; `pytest -m benchmark -s tests/benchmarks/test_zscore_speed.py` prints numbers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, Literal

import numpy as np
import pytest

from gramline.kernels import SequenceLabeling
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline import Corpus, StoredGram
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.crf import (
    MISSING_NOTE,
    has_crf,
    named_features,
    named_labels,
    train_crf,
)
from gramline.pipeline.experiments.zscore_ner import FEATURES
from gramline.pipeline.gram.build import StoreChoices, create_or_open

DATA = Path(os.environ.get("GRAMLINE_DATA", Path(__file__).parents[3] / "shared" / "data"))

RIDGES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
RIDGE_PRICE = 1.3  # of eight ridges against one
STREAM_SHARE = 0.5  # of a product with a warm memmap of the full matrix
CRF_PRICE = 1.0  # of Z-score training against python-crfsuite
MEMORY_LIMIT = 1_000_000_000


def seconds(action: Any, *arguments: Any, times: int = 3, clock: Callable[[], float] = perf_counter) -> float:
    taken = []
    for _ in range(times):
        begin = clock()
        action(*arguments)
        taken.append(clock() - begin)
    return median(taken)


def show(capsys: pytest.CaptureFixture[str], *lines: str) -> None:
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


def windows(n_sentences: int, reach: int) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Sales-log sentences with the words up to `reach` positions away as features, and their labels."""
    corpus = generate_saleslog(n_sentences)
    X = []
    for tokens in corpus.tokens:
        words = [str(token) for token in tokens]
        X.append(
            [
                [f"{d}:{words[k + d]}" for d in range(-reach, reach + 1) if 0 <= k + d < len(words)]
                for k in range(len(words))
            ]
        )
    return X, [[str(label) for label in labels] for labels in corpus.labels]


def smooth_gram(n_rows: int) -> DenseGram:
    """A Gaussian kernel between random points, sequences of ten."""
    points = np.random.default_rng(0).normal(size=(n_rows, 6))
    norms = (points**2).sum(axis=1)
    return DenseGram(np.exp(-0.5 * (norms[:, None] + norms[None] - 2 * points @ points.T)), [10] * (n_rows // 10))


def random_labels(n_rows: int, length: int, n_labels: int = 9) -> list[list[str]]:
    codes = np.random.default_rng(1).integers(n_labels, size=(n_rows // length, length))
    return [[f"L{code}" for code in path] for path in codes]


def random_store(folder: Path, n_blocks: int, block_rows: int, *, with_memmap: bool) -> tuple[StoredGram, Any]:
    """Random float32 tiles, diagonally dominant with the ridge used here, and the full matrix as a warm memmap."""
    corpus = Corpus.from_sequences([["a"] * (block_rows // 16)] * (16 * n_blocks))
    store = create_or_open(
        SequenceLabeling(), corpus, folder / "a.zarr", StoreChoices(dtype="float32", block_rows=block_rows)
    )
    n_rows = n_blocks * block_rows
    full = None
    if with_memmap:
        full = np.lib.format.open_memmap(folder / "full.npy", mode="w+", dtype=np.float32, shape=(n_rows, n_rows))
    draw = np.random.default_rng(0)
    for i, j in store.layout.tiles():
        tile = draw.random((block_rows, block_rows), dtype=np.float32) / n_rows
        tile = (tile + tile.T) / 2 if i == j else tile
        store.write_tile(i, j, tile)
        if full is not None:
            full[store.layout.rows.rows(i), store.layout.cols.rows(j)] = tile
            full[store.layout.rows.rows(j), store.layout.cols.rows(i)] = tile.T
    return StoredGram(store), full


def streamed_fit(
    gram: StoredGram, n_blocks: int, block_rows: int, precision: Literal["double", "single"] = "single"
) -> tuple[KernelZScoreLabeler, int]:
    """A fit of a few iterations, and the tiles it read per product."""
    before = gram.tile_reads
    labels = random_labels(n_blocks * block_rows, block_rows // 16)
    model = KernelZScoreLabeler(0.02, tolerance=1e-5, precision=precision, transition_ridge=None).fit(gram, labels)
    return model, (gram.tile_reads - before) // (model.iterations_ + 1)


def test_everything_that_is_timed_computes(tmp_path: Path) -> None:
    X, y = windows(20, 1)
    corpus = Corpus.from_sequences(X, y)
    for learner in (
        ZScoreLabeler(ridge=1e-3, transition_ridge=None),
        ZScoreLabeler(solver="cg", ridge=1e-3, transition_ridge=None),
        HiddenMarkovPerceptron(average=False),
    ):
        assert len(learner.fit(corpus).predict(corpus)) == 20
    model = KernelZScoreLabeler(RIDGES, transition_ridge=None).fit(smooth_gram(200), random_labels(200, 10))
    assert {single.status_ for single in model.path_} == {"converged"}
    gram, full = random_store(tmp_path, 3, 32, with_memmap=True)
    streamed, reads = streamed_fit(gram, 3, 32)
    assert streamed.status_ == "converged"
    assert reads == 6, "every stored tile exactly once per product"
    thin = np.ones((96, 2))
    np.testing.assert_allclose(gram.matmul(thin), full @ thin, rtol=1e-6)


@pytest.mark.benchmark
def test_training_time_against_a_crf(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Processor seconds, in turns: a busy machine disturbs both alike.

    At the default ridge, which is nearly none, and at one that cross-validation chooses: two routes of the solver.
    """
    lines, ratios = [], {}
    for name, packed in feature_sets().items():
        lines.append(f"{name}: {packed.n_positions} positions, {len(packed.vocabulary.features)} features")
        X, y = named_features(packed), named_labels(packed)
        taken: dict[str, list[float]] = {}
        ZScoreLabeler(ridge=0.1, transition_ridge=None).fit(packed)
        for _ in range(3):
            for ridge in (ZScoreLabeler(ridge=1e-3, transition_ridge=None).ridge, 0.1):
                fit = ZScoreLabeler(ridge=ridge, transition_ridge=None).fit
                taken.setdefault(f"ridge {ridge:g}", []).append(seconds(fit, packed, times=1, clock=process_time))
            if has_crf():
                crf = seconds(train_crf, X, y, tmp_path / "crf", times=1, clock=process_time)
                taken.setdefault("python-crfsuite", []).append(crf)
        theirs = median(taken.pop("python-crfsuite", [float("nan")]))
        for ridge_name, ours in taken.items():
            ratios[name, ridge_name] = median(ours) / theirs
            lines.append(f"  Z-score, {ridge_name}: {median(ours):.3f} s, ratio {ratios[name, ridge_name]:.2f}")
        lines.append(f"  python-crfsuite: {theirs:.3f} s")
    show(capsys, *lines, *([] if has_crf() else [MISSING_NOTE]))
    assert not has_crf() or max(ratios.values()) <= CRF_PRICE


@pytest.mark.benchmark
def test_training_time_of_the_variants(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for name, packed in feature_sets().items():
        lines.append(f"{name}: {packed.n_positions} positions, {len(packed.vocabulary.features)} features")
        for learner in (
            ZScoreLabeler(ridge=1e-3, transition_ridge=None),
            ZScoreLabeler(ridge=1.0, transition_ridge=None),
            ZScoreLabeler(loss="hamming", ridge=1e-3, transition_ridge=None),
            *(
                [ZScoreLabeler(ridge=1.0, moments="sampled", n_paths=100, transition_ridge=None)]
                if len(lines) == 1
                else []
            ),
            HiddenMarkovPerceptron(10, average=True),
        ):
            learner.fit(packed.structures(0, 10))  # compiles
            taken = seconds(learner.fit, packed, times=1, clock=process_time)
            lines.append(f"  {learner!r:56}{taken:9.3f} s")
    show(capsys, *lines)
    assert len(lines) == 11


def feature_sets() -> dict[str, Any]:
    """S1 and S2 of the named entities where the data is there, generated sentences elsewhere."""
    path = DATA / "conll2002_es" / "esp.train.first300"
    if path.exists():
        return {name: read_conll(path, features=features).packed() for name, features in FEATURES.items()}
    return {f"reach {reach}": Corpus.from_sequences(*windows(600, reach)).packed() for reach in (0, 2)}


@pytest.mark.benchmark
def test_eight_ridges_for_little_more_than_one(capsys: pytest.CaptureFixture[str]) -> None:
    gram, labels = smooth_gram(6000), random_labels(6000, 10)
    with one_blas_thread():  # and processor time, so that a busy machine does not disturb the ratio
        one = seconds(
            KernelZScoreLabeler(RIDGES[0], tolerance=1e-6, transition_ridge=None).fit, gram, labels, clock=process_time
        )
        eight = seconds(
            KernelZScoreLabeler(RIDGES, tolerance=1e-6, transition_ridge=None).fit, gram, labels, clock=process_time
        )
    show(capsys, f"one ridge {one:.2f} s, eight {eight:.2f} s: {eight / one:.2f} times")
    assert eight <= RIDGE_PRICE * one


@pytest.mark.benchmark
@pytest.mark.parametrize("precision", ["single", "double"])
def test_stream_rate(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, precision: Literal["double", "single"]
) -> None:
    """A pass of conjugate gradients against the same product, in the same precision, with a warm memmap.

    In double precision the memmap's float32 rows are widened in strips, as the stored tiles are: NumPy left alone would
    copy the whole matrix first, and be slower.
    """
    n_blocks, block_rows = 6, 2048
    gram, full = random_store(tmp_path, n_blocks, block_rows, with_memmap=True)
    dtype = np.float32 if precision == "single" else np.float64
    thin = np.random.default_rng(2).normal(size=(n_blocks * block_rows, 24)).astype(dtype)
    products, passes, reads = [], [], 0
    with one_blas_thread():
        for _ in range(4):  # in turns: a busy machine disturbs both alike
            products.append(seconds(memmap_product, full, thin, times=1))
            begin = perf_counter()
            model, reads = streamed_fit(gram, n_blocks, block_rows, precision)
            passes.append((perf_counter() - begin) / (model.iterations_ + 1))
    size, stored, product, per_pass = (
        full.nbytes / 1e9,
        gram.layout.n_tiles / n_blocks**2,
        *map(median, (products, passes)),
    )
    show(
        capsys,
        f"{precision} precision, matrix of {size:.2f} GB: memmap product {size / product:.2f} GB/s; "
        f"conjugate gradients {size / per_pass:.2f} GB/s of the full matrix, {stored * size / per_pass:.2f} GB/s read, "
        f"{reads} of {gram.layout.n_tiles} tiles per product: {product / per_pass:.2f} of the memmap product",
    )
    assert reads == gram.layout.n_tiles
    assert product / per_pass >= STREAM_SHARE


def memmap_product(full: Any, thin: Any) -> Any:
    if full.dtype == thin.dtype:
        return full @ thin
    strip = 256
    return np.concatenate([full[k : k + strip].astype(thin.dtype) @ thin for k in range(0, len(full), strip)])


@pytest.mark.benchmark
def test_memory_of_a_large_gram(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    n_blocks, block_rows = 16, 2048
    gram, _ = random_store(tmp_path, n_blocks, block_rows, with_memmap=False)
    script = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from test_zscore_speed import streamed_fit
from gramline.pipeline import StoredGram
model, reads = streamed_fit(StoredGram.open({str(tmp_path / "a.zarr")!r}), {n_blocks}, {block_rows})
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(model.status_, model.iterations_, reads, 1024 * int(peak.split()[1]))
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    status, iterations, reads, peak = ran.stdout.split()
    size = 4 * (n_blocks * block_rows) ** 2
    show(capsys, f"Gram of {size / 1e9:.1f} GB: {iterations} iterations, peak memory {int(peak) / 1e6:.0f} MB")
    assert status == "converged"
    assert int(reads) == gram.layout.n_tiles
    assert size > 4e9
    assert int(peak) < MEMORY_LIMIT
