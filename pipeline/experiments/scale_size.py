"""One size of the scale run, in a process of its own: plan, build, verify, train, cross-validate, report.

`python -m gramline.pipeline.experiments.scale_size SETTINGS` (JSON) writes what it measured to stdout as JSON.
Scheduler and workers are processes of their own, so that the memory of each can be told apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, perf_counter, process_time, sleep
from typing import Any, TypeVar

import numpy as np

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.cost import peak_bytes
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.errors import ClusterError, RunError
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.executors.worker_settings import ONE_THREAD, SETTINGS
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.verify import check_tile
from gramline.pipeline.reporting.run_report import write_run_report

KERNEL = SequenceLabeling(c=1.0, observation=Polynomial(degree=2, normalized=True))
ROUNDS, FOLDS, CHECKED_TILES = 3, 5, 50
RIDGE = 10.0
WARM_ROWS = 64  # longer than any sentence
CONFIGURATION = "dask.yaml"  # what every cluster that gramline starts is told
PATIENCE = 120.0  # seconds for all processes to start, on a busy machine
LOOPBACK = ("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0")
T = TypeVar("T")


@dataclass(frozen=True)
class SizeSettings:
    """What one size is given."""

    n_positions: int
    folder: str  # for the store, the run and the logs; empty at first
    seed: int = 0
    workers: int = 2
    memory_limit: int = 10**9
    block_rows: int | None = None


@dataclass(frozen=True)
class SizeResult:
    """What one size took: seconds and tile reads by stage, bytes by kind of process."""

    n_positions: int
    n_tiles: int
    stored_bytes: int
    cells: int  # kernel values computed
    seconds: dict[str, float]  # by the clock
    busy: dict[str, float]  # of all processors together
    tile_reads: dict[str, int]
    peaks: dict[str, int]
    planned_bytes: int  # memory that a worker's tile takes at most, by the plan
    iterations: int  # of the kernel Z-score's solver
    accuracy: float  # cross-validated
    at_rest: dict[str, int]  # peaks before the build


def sales_corpus(n_positions: int, seed: int) -> Corpus:
    """The first sales-log sentences of a seed that hold at most so many positions."""
    sentences = n_positions // 27 + 50  # they hold 29 on average
    corpus = generate_saleslog(sentences, seed, features="words")
    reached = np.cumsum(corpus.lengths)
    if reached[-1] < n_positions:
        raise RunError(f"{sentences} sentences hold only {int(reached[-1])} positions, not {n_positions}")
    return corpus.select(range(int(np.searchsorted(reached, n_positions, side="right"))))


class Stopwatch:
    """Time of every stage: by the clock, and of all processors together (workers and this process)."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.seconds: dict[str, float] = {}
        self.busy: dict[str, float] = {}
        self.executor: DaskExecutor | None = None
        self._say = say

    def time(self, stage: str, action: Callable[[], T]) -> T:
        begin, own, before = perf_counter(), process_time(), self._workers()
        result = action()
        seconds, busy, after = perf_counter() - begin, process_time() - own, self._workers()
        if before and before.keys() != after.keys():  # its time and its peak are lost with it
            raise RunError(f"a worker was lost during {stage}, so nothing of this size is known")
        self.seconds[stage], self.busy[stage] = seconds, busy + sum(after.values()) - sum(before.values())
        self._say(f"  {stage}: {seconds:.1f} s")
        return result

    def _workers(self) -> dict[str, float]:
        """Processor seconds of every worker so far."""
        return {} if self.executor is None else self.executor.client.run(process_time)


def run_size(settings: SizeSettings, say: Callable[[str], None]) -> SizeResult:
    """Every stage of one size; the store stays in the folder."""
    folder, watch = Path(settings.folder), Stopwatch(say)
    corpus = sales_corpus(settings.n_positions, settings.seed)
    path = folder / "gram.zarr"

    def planned() -> TileStore:
        empty = create_or_open(KERNEL, corpus, path, StoreChoices(dtype="float32", block_rows=settings.block_rows))
        plan_store(empty).check_memory(settings.memory_limit)
        return empty

    store = watch.time("plan", planned)
    plan = plan_store(store)
    with own_processes(folder, settings.workers, settings.memory_limit) as executor:
        watch.executor = executor
        watch.time("start", lambda: _warm_up(folder, executor))
        at_rest = peaks_of(executor)
        watch.time("build", lambda: compute_missing(store, executor, limit_bytes=settings.memory_limit))
        watch.time("verify", lambda: _verify(store, executor, settings.seed))
        gram, labels = StoredGram(store), corpus.labels
        gram.executor = executor  # large products are shared by the workers
        watch.time("perceptron", lambda: LabelingPerceptron(ROUNDS, average=True).fit(gram, labels))
        reads = {"perceptron": gram.tile_reads}
        zscore = _zscore()
        watch.time("Z-score", lambda: zscore.fit(gram, labels))
        reads["Z-score"] = gram.tile_reads - reads["perceptron"]
        summary = watch.time("folds", lambda: _cross_validate(folder, path, corpus, executor))
        reads["folds"] = sum(unit["tile_reads"] for unit in summary["units"])
        watch.time("report", lambda: write_run_report(folder / "cv.run"))
        peaks = peaks_of(executor)
    return SizeResult(
        n_positions=corpus.n_positions,
        n_tiles=plan.n_tiles,
        stored_bytes=StoredGram(store).status().stored_bytes,
        cells=plan.cells,
        seconds=watch.seconds,
        busy=watch.busy,
        tile_reads=reads,
        peaks=peaks,
        planned_bytes=plan.peak_bytes,
        iterations=zscore.iterations_,
        accuracy=float(np.mean(summary["settings"][0]["scores"]["accuracy"]["folds"])),
        at_rest=at_rest,
    )


def _zscore() -> KernelZScoreLabeler:
    return KernelZScoreLabeler(
        ridge=RIDGE, precision="single", tolerance=1e-3, preconditioner="none", transition_ridge=None
    )


def _warm_up(folder: Path, executor: DaskExecutor) -> None:
    """A matrix of a few tiles first: every process loads its program, which no size should pay for."""
    corpus = sales_corpus(4 * WARM_ROWS, seed=1)
    store = create_or_open(KERNEL, corpus, folder / "warm.zarr", StoreChoices(dtype="float32", block_rows=WARM_ROWS))
    compute_missing(store, executor)
    gram = StoredGram(store)
    LabelingPerceptron(1, average=True).fit(gram, corpus.labels)
    _zscore().fit(gram, corpus.labels)


def _verify(store: TileStore, executor: Executor, seed: int) -> None:
    """Recompute cells of tiles drawn at random."""
    tasks = plan_store(store, present=()).tasks
    chosen = np.random.default_rng(seed).permutation(len(tasks))[:CHECKED_TILES]
    for outcome in executor.run(check_tile, [tasks[k] for k in np.sort(chosen)]):
        if outcome.result is None or outcome.result.problem is not None:
            raise RunError(f"tile ({outcome.task.i}, {outcome.task.j}): {outcome.error or outcome.result}")


def _cross_validate(folder: Path, store: Path, corpus: Corpus, executor: Executor) -> dict[str, Any]:
    """All folds from one pass over the tiles per round."""
    job = Job(
        kernels=(KERNEL,),
        variants=(Variant(0, "labeling-perceptron", {"rounds": ROUNDS, "average": True}),),
        folds=FoldSpec(FOLDS),
        dtype="float32",
    )
    data = JobData(corpus.fingerprint, corpus.ids, corpus.tokens, corpus.labels, "saleslog", corpus)
    settings = JobSettings(stores={0: str(store)})
    return run_job(job, data, RunFolder(folder / "cv.run"), settings, executor=lambda: nullcontext(executor)).summary


def peaks_of(executor: DaskExecutor) -> dict[str, int]:
    """The largest resident size so far: of the largest worker, of the scheduler and of this process."""
    client: Any = executor.client
    return {
        "worker": max(client.run(peak_bytes).values()),
        "scheduler": int(client.run_on_scheduler(peak_bytes)),
        "client": peak_bytes(),
    }


@contextmanager
def own_processes(folder: Path, workers: int, memory_limit: int) -> Iterator[DaskExecutor]:
    """Scheduler and workers of one thread on loopback, on free ports; they end with the block."""
    address_file = folder / "scheduler.json"
    (folder / CONFIGURATION).write_text(json.dumps(SETTINGS), "utf-8")  # which is YAML as well
    processes = [_started(folder, "scheduler", "--port", "0", "--scheduler-file", str(address_file))]
    try:
        address = _address(address_file, processes[0])
        limits = ("--nworkers", str(workers), "--nthreads", "1", "--memory-limit", str(memory_limit))
        processes.append(_started(folder, "worker", address, *limits, "--local-directory", str(folder)))
        with connect(address) as client:
            client.wait_for_workers(workers, timeout=PATIENCE)
            yield DaskExecutor(client)
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _started(folder: Path, part: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *arguments, *LOOPBACK]
    with (folder / f"{part}.log").open("ab") as log:
        environment = os.environ | ONE_THREAD | {"DASK_CONFIG": str(folder / CONFIGURATION)}
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


def _address(path: Path, scheduler: subprocess.Popen[bytes]) -> str:
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline and scheduler.poll() is None:
        try:
            return str(json.loads(path.read_text("utf-8"))["address"])
        except (OSError, ValueError):
            sleep(0.1)
    raise ClusterError(f"the Dask scheduler did not start; {path.with_name('scheduler.log')} says why")


def main() -> None:
    def say(line: str) -> None:
        sys.stderr.write(line + "\n")

    result = run_size(SizeSettings(**json.loads(sys.argv[1])), say)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
