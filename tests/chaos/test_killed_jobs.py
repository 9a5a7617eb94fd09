"""A cross-validation and a prediction whose client, scheduler or worker is killed: what comes out is the same."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from chaos.dask_processes import DaskProcesses
from chaos.reliability import Ledger
from chaos.under_fire import Fire, events_of, n_written, start
from gram_samples import KERNEL, sentences

from gramline.learners import LabelingPerceptron
from gramline.pipeline import Corpus, KernelLabeler
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.models.spread_prediction import predict_on_workers

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


def results(run: Path) -> Any:
    """Everything that was predicted, with confidences, traces and scores."""
    outcomes = RunFolder(run).outcomes()
    found = {digest: (held.predicted, held.confidence, held.traces) for digest, held in outcomes.items()}
    return found, [pq.read_table(run / name).to_pylist() for name in ("results.parquet", "predictions.parquet")]


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
        fire = Fire(victim, lambda: n_written(tmp_path / "fire"), KILLS, 1.0, cluster)
        options = ["--checkpoint-every", "0", "--events", events, "--scheduler", cluster.address]
        fire.run(["cv", "fire.toml", "-o", run, *options], tmp_path)
    assert fire.n_kills >= 1
    expected, found = results(tmp_path / "calm" / "a.run"), results(run)
    wrong = sum(found[0][digest] != outcome for digest, outcome in expected[0].items())
    what = "client of a cross-validation" if victim == "client" else f"{victim} under a cross-validation"
    ledger.note(f"kill -9 of the {what}", times=fire.n_kills, wrong=wrong, seconds=fire.seconds)
    assert found == expected
    assert not list((tmp_path / "fire").rglob("*.checkpoint"))
    n_rounds = sum(one["event"] == "round" for one in events_of(events))
    assert n_rounds <= 2 * ROUNDS + fire.n_kills, "of both kernels; a kill repeats at most one"


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
        fire = Fire(victim, lambda: n_written(tmp_path), KILLS, 1.0, cluster)
        fire.run([*predict, "fire.jsonl", "--scheduler", cluster.address], tmp_path)
    same = (tmp_path / "fire.jsonl").read_bytes() == (tmp_path / "calm.jsonl").read_bytes()
    what = "client of a prediction" if victim == "client" else f"{victim} under a prediction"
    ledger.note(f"kill -9 of the {what}", times=fire.n_kills, wrong=int(not same), seconds=fire.seconds)
    assert same
    assert fire.n_kills >= 1
