"""`gramline fit` killed at random moments, again and again: the model at the end is the one of a calm training."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chaos.reliability import Ledger
from gram_samples import sentences

from gramline.pipeline import Corpus, Model

PROGRAM = "from gramline.pipeline.cli.main import main; main()"
KILLS = 4
LEARNERS = {
    "perceptron": ["--learner", "labeling-perceptron", "--rounds", "6", "--set", "early_stop=false"],
    "Z-score": ["--learner", "kernel-zscore", "--set", "ridge=0.001", "--set", "preconditioner=none"],
    "random field": ["--learner", "kernel-crf", "--set", "penalty=0.1", "--set", "tolerance=1e-8"],
    "labeling SVM": ["--learner", "labeling-svm", "--set", "tolerance=0.2"],
    "Gaussian process": ["--learner", "gaussian-process", "--set", "tolerance=1e-14", "--set", "max_sweeps=12"],
}


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def bits(path: Path) -> Any:
    attributes, arrays = Model.load(path).learner.to_state()
    return attributes, {name: array.tobytes() for name, array in arrays.items()}


def changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("keep", ["all", "none"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_training_killed_at_random_moments(name: str, keep: str, tmp_path: Path, ledger: Ledger) -> None:
    seed = random.randrange(1 << 30)
    sys.stdout.write(f"seed {seed}\n")
    draw = random.Random(seed)
    Corpus.from_sequences(*sentences(250, seed=4)).save(tmp_path / "x.parquet")
    store, checkpoint = tmp_path / "x.gram.zarr", tmp_path / "model.zarr.checkpoint"
    build = ["gram", "build", tmp_path / "x.parquet", "-o", store, "--inline", "--block-rows", "64", "--keep", keep]
    for command in (build, ["fit", store, "-o", tmp_path / "calm.zarr", *LEARNERS[name]]):
        process = start(*command)
        assert process.communicate()[1] == ""
    fit = ["fit", store, "-o", tmp_path / "model.zarr", *LEARNERS[name], "--checkpoint-every", "0"]
    n_kills = 0
    while n_kills < KILLS:
        before = changed(checkpoint)
        process = start(*fit)
        while process.poll() is None and changed(checkpoint) == before:
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.2))
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        n_kills += 1
    begin = time.monotonic()
    if not (tmp_path / "model.zarr").exists():
        process = start(*fit)
        out, err = process.communicate()
        assert (process.returncode, err) == (0, "")
        assert "going on after " in out
    assert n_kills >= 1
    assert bits(tmp_path / "model.zarr") == bits(tmp_path / "calm.zarr")
    assert not [path for path in tmp_path.iterdir() if "checkpoint" in path.name]
    ledger.note("kill -9 of a training", times=n_kills, seconds=time.monotonic() - begin)
