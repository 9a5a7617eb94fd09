"""A cross-validation and a prediction whose client, scheduler or worker is killed: what comes out is the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chaos.dask_processes import DaskProcesses
from chaos.reliability import Ledger
from gram_samples import KERNEL, sentences

from gramline.learners import LabelingPerceptron
from gramline.pipeline import Corpus, KernelLabeler
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.models.spread_prediction import predict_on_workers

PROGRAM = "from gramline.pipeline.cli.main import main; main()"
KILLS = 4
ROUNDS = 6
JOB = f"""
[corpus]
path = "x.parquet"

[cache]
path = "CACHE"

[gram]
block_rows = 64

[[kernel]]
c = [0.5, 0.8]

[folds]
count = 3

[[learner]]
name = "labeling-perceptron"
rounds = [2, {ROUNDS}]
early_stop = false

[[learner]]
name = "kernel-zscore"
ridge = [0.01, 0.1]
preconditioner = "none"

[[learner]]
name = "gaussian-process"
max_sweeps = 6
tolerance = 1e-14

[output]
baselines = false
report = false
"""


def start(*arguments: str | Path, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results(run: Path) -> Any:
    """Everything that was predicted, with confidences, traces and scores."""
    outcomes = RunFolder(run).outcomes()
    found = {digest: (held.predicted, held.confidence, held.traces) for digest, held in outcomes.items()}
    return found, [pq.read_table(run / name).to_pylist() for name in ("results.parquet", "predictions.parquet")]


def n_written(folder: Path) -> int:
    """Files of a run and its cache: they grow in number while something is done."""
    return sum(len(files) for _, _, files in os.walk(folder))


def strike(victim: str, process: subprocess.Popen[str], cluster: DaskProcesses, draw: random.Random) -> None:
    """kill -9 of one of them; what is gone for good is started again."""
    if victim == "client":
        process.kill()
    elif victim == "scheduler":
        cluster.kill_scheduler()
        process.communicate(timeout=120)
        assert process.returncode in (1, 2)  # lost, or not reached any more
        cluster.stop()
        cluster.start()
    else:
        workers = [pid for nanny in cluster.workers for pid in _worker_processes(nanny.pid)]
        if workers:  # between two of them there may be none
            with suppress(ProcessLookupError):
                os.kill(draw.choice(workers), signal.SIGKILL)  # its nanny starts another one


def _worker_processes(nanny: int) -> list[int]:
    """The processes below a nanny that run tasks; beside them is one that looks after shared resources."""
    found = []
    for path in Path(f"/proc/{nanny}/task").glob("*/children"):
        for pid in path.read_text().split():
            with suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


def run_under_fire(
    command: Callable[[], list[str | Path]], victim: str, cluster: DaskProcesses, folder: Path, watched: Path
) -> tuple[int, float]:
    """The same command until it has come to its end; how often something was killed, and how long the rest took."""
    seed = random.randrange(1 << 30)
    sys.stdout.write(f"seed {seed}\n")
    draw, n_kills = random.Random(seed), 0
    for _ in range(2 * KILLS):
        begin, before = time.monotonic(), n_written(watched)
        process = start(*command(), folder=folder)
        while n_kills < KILLS and process.poll() is None:
            if n_written(watched) != before:
                time.sleep(draw.uniform(0.0, 1.0))
                if process.poll() is None:
                    strike(victim, process, cluster, draw)
                    n_kills, before = n_kills + 1, n_written(watched)
                if victim != "worker":
                    break
            time.sleep(0.002)
        _, err = process.communicate(timeout=300)
        if process.returncode == 0:
            return n_kills, time.monotonic() - begin
        assert victim != "worker", err
    raise AssertionError(f"it never ends: {err}")


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", ["client", "scheduler", "worker"])
def test_a_cross_validation_under_fire(victim: str, tmp_path: Path, ledger: Ledger) -> None:
    Corpus.from_sequences(*sentences(220, seed=4)).save(tmp_path / "x.parquet")
    for name in ("calm", "fire"):
        (tmp_path / f"{name}.toml").write_text(JOB.replace("CACHE", f"{name}/cache"))
    run, events = tmp_path / "fire" / "a.run", tmp_path / "events.jsonl"
    with DaskProcesses(tmp_path / "dask") as cluster:
        calm = start("cv", "calm.toml", "-o", "calm/a.run", "--scheduler", cluster.address, folder=tmp_path)
        calm.communicate()
        assert calm.returncode == 0
        (tmp_path / "fire").mkdir()

        def cv() -> list[str | Path]:
            options = ["--checkpoint-every", "0", "--events", events]
            return ["cv", "fire.toml", "-o", run, "--scheduler", cluster.address, *options]

        n_kills, seconds = run_under_fire(cv, victim, cluster, tmp_path, tmp_path / "fire")
    assert n_kills >= 1
    expected, found = results(tmp_path / "calm" / "a.run"), results(run)
    wrong = sum(found[0][digest] != outcome for digest, outcome in expected[0].items())
    what = "client of a cross-validation" if victim == "client" else f"{victim} under a cross-validation"
    ledger.note(f"kill -9 of the {what}", times=n_kills, wrong=wrong, seconds=seconds)
    assert found == expected
    assert not list((tmp_path / "fire").rglob("*.checkpoint"))
    told = [json.loads(line) for line in events.read_text().splitlines() if line.endswith("}")]
    n_rounds = sum(one["event"] == "round" for one in told)
    assert n_rounds <= 2 * ROUNDS + n_kills, "of both kernels; a kill repeats at most one"


def test_a_prediction_survives_a_killed_worker(tmp_path: Path) -> None:
    train, new = (Corpus.from_sequences(*sentences(n, seed=n)) for n in (40, 60))
    model = KernelLabeler(KERNEL, LabelingPerceptron(rounds=2)).fit(train).model_
    with connect(workers=2) as client:
        executor, killed = DaskExecutor(client), list[int]()
        run = executor.run

        def deadly(function: Any, tasks: Any, **options: Any) -> Any:
            with closing(run(function, tasks, **options)) as outcomes:
                for outcome in outcomes:
                    if not killed:
                        killed.append(min(client.run(os.getpid).values()))
                        os.kill(killed[0], signal.SIGKILL)
                    yield outcome

        executor.run = deadly  # type: ignore[method-assign]
        found = predict_on_workers(model, new, executor, str(tmp_path / "model.zarr"), block_rows=8)
    assert killed
    assert found.labels == model.predict(new)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["client", "scheduler", "worker"])
def test_a_prediction_under_fire(victim: str, tmp_path: Path, ledger: Ledger) -> None:
    train, new = (Corpus.from_sequences(*sentences(n, seed=n)) for n in (300, 3000))
    KernelLabeler(KERNEL, LabelingPerceptron(rounds=2)).fit(train).save(tmp_path / "model.zarr")
    new.save(tmp_path / "new.parquet")
    predict = ["predict", "model.zarr", "new.parquet", "--block-rows", "64", "-o"]
    calm = start(*predict, "calm.jsonl", folder=tmp_path)
    assert calm.communicate()[1] == ""
    with DaskProcesses(tmp_path / "dask") as cluster:

        def command() -> list[str | Path]:
            return [*predict, "fire.jsonl", "--scheduler", cluster.address]

        n_kills, seconds = run_under_fire(command, victim, cluster, tmp_path, tmp_path)
    same = (tmp_path / "fire.jsonl").read_bytes() == (tmp_path / "calm.jsonl").read_bytes()
    what = "client of a prediction" if victim == "client" else f"{victim} under a prediction"
    ledger.note(f"kill -9 of the {what}", times=n_kills, wrong=int(not same), seconds=seconds)
    assert same
    assert n_kills >= 1
