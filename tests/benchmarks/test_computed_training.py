"""Exact training on values that are computed when needed, against a plain loop of tiles; and plans against runs.

Small untimed versions run by default; `pytest -m benchmark -s tests/benchmarks/test_computed_training.py` measures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest

from gramline.kernels import Polynomial, PositionKernel, SequenceLabeling
from gramline.learners import GaussianProcessLabeler, HiddenMarkovPerceptron, KernelZScoreLabeler, LabelingPerceptron
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.computed import ComputedGram
from gramline.pipeline import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.alternatives import Machines
from gramline.pipeline.gram.build import GramBuild, StoreChoices
from gramline.pipeline.gram.keep import Keep
from gramline.pipeline.models.demand import measure_demand
from gramline.pipeline.models.training_choice import training_alternatives

SEQUENCE = SequenceLabeling(reach=0.5, observation=Polynomial(2, normalized=True))
POSITION = PositionKernel(Polynomial(2, normalized=True))
OVERHEAD = 1.3  # of a training over the time of the values it computes
PLAN_FACTOR = 1.5
RUNS: dict[str, tuple[Any, Any]] = {
    "labeling perceptron, sequence kernel": (SEQUENCE, LabelingPerceptron(3)),
    "dual hidden Markov perceptron, position kernel": (POSITION, HiddenMarkovPerceptron(5, dual=True)),
}
PLANNED: dict[str, tuple[Any, Any]] = {
    **RUNS,
    "kernel Z-score, position kernel": (POSITION, KernelZScoreLabeler(ridge=0.1)),
    "Gaussian process, rank 100, position kernel": (
        POSITION,
        GaussianProcessLabeler(approximation="nystrom", rank=100, max_sweeps=3),
    ),
}


def spelled(n_structures: int) -> Corpus:
    """Sales-log sentences with spelling features of each word and its neighbours."""
    return generate_saleslog(n_structures).with_features("spelling", 1)


def seconds(action: Callable[[], Any]) -> float:
    begin = perf_counter()
    action()
    return perf_counter() - begin


def plain_loop(kernel: Any, corpus: Corpus, n_tiles: int) -> float:
    """Seconds of a kernel value in a loop over whole tiles of the usual size, into memory that is reused."""
    gram = ComputedGram(kernel, kernel.prepare(corpus.packed()), dtype="float32")
    rows = gram.layout.rows
    blocks = [gram._rows.structures(rows.structures(b).start, rows.structures(b).stop) for b in range(rows.n_blocks)]
    memory = np.empty((rows.block_rows, rows.block_rows), np.float32)
    keys = [(i, j) for i in range(rows.n_blocks) for j in range(rows.n_blocks) if i != j][:n_tiles] or [(0, 0)]
    kernel.tile(blocks[0], blocks[-1], np.float32, memory)
    n_values, begin = 0, perf_counter()
    for i, j in keys:
        n_values += kernel.tile(blocks[i], blocks[j], np.float32, memory).size
    return (perf_counter() - begin) / n_values


def trained(kernel: Any, learner: Any, corpus: Corpus) -> ComputedGram:
    gram = ComputedGram(kernel, kernel.prepare(corpus.packed()), dtype="float32")
    learner.fresh().fit(gram, corpus.labels)
    return gram


@pytest.mark.parametrize("name", RUNS)
def test_everything_that_is_timed_computes(name: str) -> None:
    kernel, learner = RUNS[name]
    gram = trained(kernel, learner, spelled(6))
    assert gram.values_computed > 0
    assert plain_loop(kernel, spelled(6), 1) > 0


@pytest.mark.benchmark
def test_training_on_computed_values_against_a_loop_of_tiles() -> None:
    corpus = spelled(1500)
    for name, (kernel, learner) in RUNS.items():
        with one_blas_thread():
            trained(kernel, learner, spelled(20))  # compiled code is loaded now
            per_value = min(plain_loop(kernel, corpus, 30) for _ in range(3))
            begin = perf_counter()
            gram = trained(kernel, learner, corpus)
            taken = perf_counter() - begin
        ratio = taken / (gram.values_computed * per_value)
        sys.stdout.write(
            f"{name}: {gram.shape[0]:,} positions, {gram.values_computed / gram.shape[0] ** 2:.2f} N^2 values, "
            f"{taken:.1f} s, {ratio:.2f} of a plain loop of tiles over as many values\n"
        )
        assert ratio <= OVERHEAD


@pytest.mark.parametrize("name", PLANNED)
def test_every_plan_that_is_compared_is_made(name: str, tmp_path: Path) -> None:
    kernel, learner = PLANNED[name]
    ways = planned(kernel, learner, spelled(8), tmp_path / "a.zarr")
    assert [way.keep for way in ways] == ["all", "none"]
    assert sum(way.is_recommended for way in ways) == 1


def planned(kernel: Any, learner: Any, corpus: Corpus, path: Path) -> Any:
    build = GramBuild(kernel, corpus, path, StoreChoices("float32"))
    demand = measure_demand(learner, kernel, corpus)
    return training_alternatives(build, InlineExecutor(), demand, Machines(), None)


@pytest.mark.benchmark
def test_plans_against_runs(tmp_path: Path) -> None:
    corpus = spelled(800)
    misses = []
    for number, (name, (kernel, learner)) in enumerate(PLANNED.items()):
        with one_blas_thread():
            every = {way.keep: way for way in planned(kernel, learner, corpus, tmp_path / f"{number}-plan.zarr")}
            for keep in ("all", "none"):
                choices = StoreChoices("float32", keep=Keep.of(keep))
                build = GramBuild(kernel, corpus, tmp_path / f"{number}-{keep}.zarr", choices)
                begin = perf_counter()
                gram = build.run(InlineExecutor())
                built = perf_counter()
                learner.fresh().fit(gram, corpus.labels)
                ended = perf_counter()
                way = every[keep]
                ratio = (ended - begin) / way.seconds
                sys.stdout.write(
                    f"{name}, keep {keep}: planned {way.build_seconds:.1f} s and {way.training_seconds:.1f} s, took "
                    f"{built - begin:.1f} s and {ended - built:.1f} s: {ratio:.2f}\n"
                )
                if not 1 / PLAN_FACTOR <= ratio <= PLAN_FACTOR:
                    misses.append(f"{name}, keep {keep}")
    assert not misses
