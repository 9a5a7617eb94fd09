"""Streaming products, distributed builds and their memory, measured; the choice of block size and compression.

Small untimed versions run by default; `pytest -m benchmark -s tests/benchmarks/test_stream_speed.py` prints numbers.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pytest

from gramline.kernels import Polynomial, SequenceLabeling
from gramline.learners import LabelingPerceptron
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import DEFAULT_BLOCK_ROWS
from gramline.pipeline import Corpus, StoredGram, build_gram, connect
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.events import BuildFinished, Event, TileDone
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.missing import plan_store

KERNEL = SequenceLabeling(c=0.01, observation=Polynomial(degree=2))
STREAM_SHARES = {"float32": 0.7, "float64": 0.5}  # of a product from a warm memmap of the full matrix
BUILD_OVERHEAD = 1.3  # wall time over tile time per worker thread
WORKER_LIMIT = "1GB"


def log_corpus(n_positions: int, *, features: str = "token") -> Corpus:
    """Sales-log sentences of about that many positions."""
    per_sentence = generate_saleslog(100).n_positions / 100
    return generate_saleslog(round(n_positions / per_sentence) + 1, features=features)


def filled_store(path: Path, n_blocks: int, block_rows: int) -> tuple[StoredGram, np.ndarray[Any, Any]]:
    """A float32 store of random tiles, and the same full matrix as a warm memmap."""
    corpus = Corpus.from_sequences([["a"] * block_rows] * n_blocks)
    store = create_or_open(
        SequenceLabeling(), corpus, path / "a.zarr", StoreChoices(dtype="float32", block_rows=block_rows)
    )
    n_rows = n_blocks * block_rows
    full = np.lib.format.open_memmap(path / "full.npy", mode="w+", dtype=np.float32, shape=(n_rows, n_rows))
    draw = np.random.default_rng(0)
    for i, j in store.layout.tiles():
        tile = draw.random((block_rows, block_rows), dtype=np.float32)
        tile = (tile + tile.T) / 2 if i == j else tile
        store.write_tile(i, j, tile)
        full[store.layout.rows.rows(i), store.layout.cols.rows(j)] = tile
        full[store.layout.rows.rows(j), store.layout.cols.rows(i)] = tile.T
    full.flush()
    return StoredGram(store), np.load(path / "full.npy", mmap_mode="r")


@contextmanager
def one_core() -> Iterator[None]:
    """This thread, and every thread it starts, on one core; BLAS on one thread."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with one_blas_thread():
            yield
    finally:
        os.sched_setaffinity(0, before)


def interleaved(actions: dict[str, Callable[[], Any]], times: int) -> dict[str, float]:
    """Median seconds of each, measured in turns so that a busy machine disturbs all alike."""
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(times + 1):
        for name, action in actions.items():
            begin = perf_counter()
            action()
            taken[name].append(perf_counter() - begin)
    return {name: median(values[1:]) for name, values in taken.items()}


def say(lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")


# ---- products


def products(gram: StoredGram, full: np.ndarray[Any, Any], n_columns: int = 9) -> dict[str, Callable[[], Any]]:
    W = np.random.default_rng(1).normal(size=(len(full), n_columns))
    single = W.astype(np.float32)
    return {
        "memmap @ W float32": lambda: full @ single,
        "store @ W float32": lambda: gram.matmul(single),  # type: ignore[arg-type]
        "memmap @ W float64": lambda: full @ W,
        "store @ W float64": lambda: gram.matmul(W),
    }


def test_streamed_products_equal_those_of_the_memmap(tmp_path: Path) -> None:
    found = {name: action() for name, action in products(*filled_store(tmp_path, n_blocks=3, block_rows=96)).items()}
    exact = found["memmap @ W float64"]
    np.testing.assert_allclose(found["store @ W float64"], exact, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found["store @ W float32"], exact, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found["memmap @ W float32"], exact, rtol=1e-3, atol=1e-3)


@pytest.mark.benchmark
def test_stream_against_a_warm_memmap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gram, full = filled_store(tmp_path, n_blocks=8, block_rows=DEFAULT_BLOCK_ROWS)
    actions = products(gram, full)
    with one_core():
        alone = interleaved(actions, times=5)
    with one_blas_thread():
        together = interleaved(actions, times=5)
    lines = [f"{'16384 x 16384 float32, 9 columns':34}{'s, one core':>13}{'s, two cores':>13}"]
    lines += [f"{name:34}{alone[name]:13.3f}{together[name]:13.3f}" for name in actions]
    shares = {}
    for store, memmap in (("float32", "float32"), ("float64", "float64"), ("float64", "float32")):
        ratios = [taken[f"memmap @ W {memmap}"] / taken[f"store @ W {store}"] for taken in (alone, together)]
        shares[store, memmap] = ratios[0]
        lines.append(f"{f'store in {store} : memmap in {memmap}':34}{ratios[0]:13.2f}{ratios[1]:13.2f}")
    say(lines, capsys)
    for dtype, share in STREAM_SHARES.items():
        assert shares[dtype, dtype] >= share, dtype


# ---- builds


def peak_bytes() -> int:
    """The most memory this process ever held, or since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def forget_peak() -> int:
    """Start a new peak at what is held now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def train(path: str) -> tuple[int, int]:
    """Mistakes of one round of training from the store, and the tiles it read."""
    gram = StoredGram.open(path)
    learner = LabelingPerceptron(rounds=1, average=False).fit(gram, gram.labels)
    return learner.mistakes_[0], gram.tile_reads


def build_and_train(client: Any, corpus: Corpus, path: Path, **choices: Any) -> dict[str, float]:
    """Build on the cluster and train on one of its workers; times, tiles and memory of the workers."""
    client.run(warm_up)
    before = client.run(forget_peak)
    heard: list[Event] = []
    gram = build_gram(KERNEL, corpus, path, client=client, progress=heard.append, **choices)
    finished = heard[-1]
    assert isinstance(finished, BuildFinished)
    built = client.run(peak_bytes)
    reports = [event.report for event in heard if isinstance(event, TileDone)]
    client.run(forget_peak)
    begin = perf_counter()
    mistakes, reads = client.submit(train, str(path), pure=False).result()
    n_threads = sum(client.nthreads().values())
    return {
        "tiles": finished.n_computed,
        "wall": finished.seconds,
        "compute": sum(report.compute_seconds for report in reports),
        "write": sum(report.write_seconds for report in reports),
        "read": sum(report.read_seconds for report in reports),
        "overhead": finished.seconds
        * n_threads
        / sum(report.compute_seconds + report.write_seconds for report in reports),
        "gram bytes": gram.shape[0] ** 2 * gram.dtype.itemsize,
        "stored bytes": gram.status().stored_bytes,
        "planned bytes": plan_store_peak(gram),
        "idle bytes": max(before.values()),
        "build bytes": max(built.values()),
        "train bytes": max(client.run(peak_bytes).values()),
        "train seconds": perf_counter() - begin,
        "mistakes": mistakes,
        "reads": reads,
        "blocks": gram.layout.rows.n_blocks,
    }


def warm_up() -> None:
    """Load and compile what a worker needs, so that its memory is that of a worker at rest."""
    gram = build_gram(KERNEL, log_corpus(64), f"memory://warm-{os.getpid()}")
    LabelingPerceptron(rounds=1, average=False).fit(gram, gram.labels)


def plan_store_peak(gram: StoredGram) -> int:
    from gramline.pipeline.gram.plan import plan_gram

    rows, cols = gram.store.block_bytes()
    itemsize = gram.dtype.itemsize
    return plan_gram(gram.layout, (), itemsize, (rows, cols)).peak_bytes


@pytest.mark.filterwarnings("ignore:neighbours make")
def test_a_worker_holds_far_less_than_the_matrix(dask_client: Any, tmp_path: Path) -> None:
    found = build_and_train(dask_client, log_corpus(5000), tmp_path / "a.zarr", block_rows=512)
    assert found["gram bytes"] > 190e6
    assert found["build bytes"] - found["idle bytes"] < 60e6
    assert found["train bytes"] - found["idle bytes"] < 80e6
    assert found["reads"] <= found["blocks"] ** 2


def report_lines(found: dict[str, float], n_positions: int) -> list[str]:
    size = {name.removesuffix(" bytes"): value for name, value in found.items() if name.endswith("bytes")}
    wanted = (found["compute"] + found["write"]) / 2
    return [
        f"{n_positions} positions, {found['tiles']:.0f} tiles, 2 workers of {WORKER_LIMIT}: "
        f"{size['stored'] / 1e9:.1f} GB stored, {size['gram'] / 1e9:.1f} GB as a full matrix",
        f"tile time in all threads: compute {found['compute']:.1f} s, write {found['write']:.1f} s, "
        f"corpus blocks {found['read']:.1f} s",
        f"build {found['wall']:.1f} s: {found['overhead']:.2f} times (compute + write) / threads = {wanted:.1f} s",
        f"peak RSS of a worker: at rest {size['idle'] / 1e6:.0f} MB, building {size['build'] / 1e6:.0f} MB "
        f"(planned {(size['idle'] + size['planned']) / 1e6:.0f} MB), training {size['train'] / 1e6:.0f} MB",
        f"one round of training: {found['mistakes']:.0f} mistakes, {found['reads']:.0f} tiles read in "
        f"{found['train seconds']:.1f} s",
    ]


@pytest.mark.benchmark
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings(
    "ignore:neighbours make:gramline.kernels.errors.KernelWarning"
)  # speed does not depend on the reach
def test_build_time_and_memory_of_a_large_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = log_corpus(24 * DEFAULT_BLOCK_ROWS, features="spelling")
    with connect(workers=2, memory_limit=WORKER_LIMIT) as client:
        found = build_and_train(client, corpus, tmp_path / "a.zarr")
    shutil.rmtree(tmp_path / "a.zarr")
    say(report_lines(found, corpus.n_positions), capsys)
    assert found["tiles"] >= 300
    assert found["stored bytes"] >= 8e9
    assert found["overhead"] <= BUILD_OVERHEAD
    assert max(found["build bytes"], found["train bytes"]) < 1e9
    assert found["build bytes"] <= found["idle bytes"] + found["planned bytes"]


# ---- block size and compression


def tile_times(corpus: Corpus, path: Path, block_rows: int, dtype: str, compression: str) -> dict[str, float]:
    """Median processor time over a few tiles of a real matrix, and the bytes that a cell takes on disk."""
    store = create_or_open(
        KERNEL, corpus, path, StoreChoices(block_rows=block_rows, dtype=dtype, compression=compression)
    )
    tasks = plan_store(store).tasks[:7]
    taken: dict[str, list[float]] = {"compute": [], "write": [], "read": []}
    # A virtual machine pays dearly for memory it never touched before, so the first round only touches it.
    for task in (*tasks, *tasks):
        rows, cols = store.read_block(task.i), store.read_block(task.j)
        marks = [process_time()]
        tile = KERNEL.tile(rows, cols, store.tiles.dtype)
        marks.append(process_time())
        store.write_tile(task.i, task.j, tile)
        marks.append(process_time())
        store.read_tile(task.i, task.j)
        marks.append(process_time())
        if len(taken["compute"]) < len(tasks) - 1:
            store.tiles.delete(task.i, task.j)
        for name, (begin, end) in zip(taken, pairwise(marks), strict=True):
            taken[name].append(end - begin)
    sizes = {"bytes per cell": store.tiles.stored_bytes() / len(tasks) / block_rows**2}
    return {name: median(values[len(tasks) :]) for name, values in taken.items()} | sizes


def test_tile_times_are_measured(tmp_path: Path) -> None:
    found = tile_times(log_corpus(300), tmp_path / "a.zarr", 128, "float32", "lz4")
    assert 0 < found["bytes per cell"] < 4
    assert min(found.values()) > 0


@pytest.mark.benchmark
def test_block_sizes_and_compressions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus = log_corpus(4 * 4096, features="spelling")
    columns = ("compute ms", "write ms", "read ms", "write GB/s", "read GB/s", "bytes/cell")
    header = "".join(f"{name:>12}" for name in columns)
    lines = [f"{'block':>6}{'dtype':>9}{'codec':>7}{header}{'tile s/Gcell':>14}"]
    found = {}
    for block_rows in (512, 1024, 2048, 4096):
        for dtype in ("float64", "float32"):
            for compression in ("none", "lz4", "zstd"):
                if compression != "none" and block_rows != DEFAULT_BLOCK_ROWS:
                    continue
                path = tmp_path / f"{block_rows}-{dtype}-{compression}"
                times = found[block_rows, dtype, compression] = tile_times(corpus, path, block_rows, dtype, compression)
                shutil.rmtree(path)
                size = block_rows**2 * np.dtype(dtype).itemsize / 1e9
                milliseconds = [1e3 * times[name] for name in ("compute", "write", "read")]
                per_cell = (times["compute"] + times["write"]) / block_rows**2 * 1e9
                lines.append(
                    f"{block_rows:6}{dtype:>9}{compression:>7}"
                    + "".join(f"{value:12.1f}" for value in milliseconds)
                    + f"{size / times['write']:12.2f}{size / times['read']:12.2f}"
                    + f"{times['bytes per cell']:12.2f}{per_cell:14.2f}"
                )
    say(lines, capsys)
    assert found[512, "float64", "none"]["bytes per cell"] >= 8
