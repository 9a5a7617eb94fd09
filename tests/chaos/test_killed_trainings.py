"""`gramline fit` whose client, scheduler or worker is killed, again and again: the model is that of a calm training.

Every step that a training keeps has a name. The steps that all runs of a command kept together are those of the calm
training, none of them twice: what a kill repeats is less than one step, and no step is longer than a round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chaos.dask_processes import DaskProcesses
from chaos.reliability import Ledger
from chaos.under_fire import Fire, events_of, start
from gram_samples import sentences

from gramline.learners.catalogue import LEARNERS as CATALOGUE
from gramline.pipeline import Corpus
from gramline.pipeline.models.trained import load_trained

KILLS = {"client": 3, "scheduler": 1, "worker": 2}
PAUSE = 0.2  # at most, between a step that was kept and the kill
LEARNERS = {
    "labeling perceptron": ["labeling-perceptron", "rounds=4", "early_stop=false"],
    "hidden Markov perceptron": ["hidden-markov-perceptron", "dual=true", "rounds=4"],
    "labeling SVM": ["labeling-svm", "tolerance=0.5"],
    "structured SVM": ["structured-svm", "tolerance=0.5"],
    "random field": ["kernel-crf", "penalty=0.1", "tolerance=1e-8"],
    "Z-score": ["kernel-zscore", "ridge=0.01", "preconditioner=none"],
    "Gaussian process": ["gaussian-process", "tolerance=1e-14", "max_sweeps=6"],
    "low-rank Gaussian process": [
        "gaussian-process",
        "tolerance=1e-14",
        "max_sweeps=6",
        "approximation=nystrom",
        "rank=60",
    ],
    "ranking perceptron": ["ranking-perceptron", "passes=4"],
    "ranking SVM": ["ranking-svm", "tolerance=0.01"],
}


def calmly(*command: str | Path, folder: Path) -> None:
    """A command that nobody kills; in a process of its own like the others, so that sums have the same order."""
    process = start(*command, folder=folder)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gram matrices of sentences and of groups of candidates, all tiles stored or none."""
    folder = tmp_path_factory.mktemp("stores")
    Corpus.from_sequences(*sentences(120, seed=4)).save(folder / "x.parquet")
    words = [[[a, [b, "x"], [c, "y"]] for a in "ST" for b in "ABC" for c in "ABCD"] for _ in range(6)]
    trees = [tree for group in words for tree in group]
    grouped = Corpus.from_parses(trees).with_column("group", [k // 3 for k in range(len(trees))])
    grouped.with_column("score", [float(k % 3 == k % 2) for k in range(len(trees))]).save(folder / "trees.parquet")
    for name in ("x", "trees"):
        for keep in ("all", "none"):
            build = ["gram", "build", folder / f"{name}.parquet", "-o", folder / f"{name}.{keep}.zarr", "--inline"]
            calmly(*build, "--block-rows", "64" if name == "x" else "24", "--keep", keep, folder=folder)
    return folder


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    with DaskProcesses(tmp_path_factory.mktemp("dask")) as running:
        yield running


def fit(stores: Path, name: str, keep: str) -> list[str | Path]:
    learner, *settings = LEARNERS[name]
    is_ranker = learner.startswith("ranking")
    store = stores / f"{'trees' if is_ranker else 'x'}.{keep}.zarr"
    candidates = ["--candidates", stores / "trees.parquet"] if is_ranker else []
    return ["fit", store, "--learner", learner, *(f"--set={one}" for one in settings), *candidates]


def bits(path: Path) -> Any:
    """Everything that the learner of a model or ranker has."""
    attributes, arrays = load_trained(path).learner.to_state()
    return attributes, {name: array.tobytes() for name, array in arrays.items()}


def steps(events: Path) -> list[str]:
    """What was kept, in its order."""
    return [str(event["after"]) for event in events_of(events) if event["event"] == "checkpoint"]


def n_rounds(events: Path) -> int:
    return sum(event["event"] == "round" for event in events_of(events))


def require_no_step_twice(kept: Sequence[str], calm: Sequence[str]) -> None:
    place = -1
    for after in kept:
        assert after in calm[place + 1 :], f"{after} was trained twice"
        place = calm.index(after, place + 1)


def changed(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0


def train_under_fire(name: str, command: list[str | Path], fire: Fire, folder: Path) -> None:
    """The command without and with kills, and what must be the same."""
    calm, burnt = folder / "calm.jsonl", folder / "fire.jsonl"
    keeping = ["--checkpoint-every", "0", "--events"]
    calmly(*command, "-o", folder / "calm.zarr", *keeping, calm, folder=folder)
    told = fire.run([*command, "-o", folder / "model.zarr", *keeping, burnt], folder)
    assert fire.n_kills >= 1, f"the training of the {name} ended before anything was killed"
    assert bits(folder / "model.zarr") == bits(folder / "calm.zarr")
    if told:
        assert not [path for path in folder.iterdir() if "checkpoint" in path.name]
        assert fire.n_runs == 1 or "going on after " in told
    kept, whole = steps(burnt), steps(calm)
    require_no_step_twice(kept, whole)
    assert len(whole) - len(kept) <= fire.n_kills, "a kill keeps a step from being told of, at most"
    assert n_rounds(burnt) <= n_rounds(calm) + fire.n_kills, "a kill repeats one round at most"


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_training_whose_client_is_killed(name: str, stores: Path, tmp_path: Path, ledger: Ledger) -> None:
    checkpoint = tmp_path / "model.zarr.checkpoint"
    fire = Fire(
        "client", lambda: changed(checkpoint), KILLS["client"], PAUSE, has_result=(tmp_path / "model.zarr").exists
    )
    train_under_fire(name, fit(stores, name, "all"), fire, tmp_path)
    ledger.note(f"kill -9 of the training of a {name}", times=fire.n_kills, seconds=fire.seconds)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@pytest.mark.parametrize("victim", ["scheduler", "worker"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_training_on_workers_that_die(
    name: str, victim: str, stores: Path, cluster: DaskProcesses, tmp_path: Path, ledger: Ledger
) -> None:
    """They compute the tiles, none of which is stored."""
    checkpoint = tmp_path / "model.zarr.checkpoint"
    fire = Fire(victim, lambda: changed(checkpoint), KILLS[victim], PAUSE, cluster, (tmp_path / "model.zarr").exists)
    command = [*fit(stores, name, "none"), "--scheduler", cluster.address]
    train_under_fire(name, command, fire, tmp_path)
    ledger.note(f"kill -9 of the {victim} under a training", times=fire.n_kills, seconds=fire.seconds)


def test_every_learner_on_a_gram_is_killed() -> None:
    assert CATALOGUE.keys() - {"zscore"} == {learner for learner, *_ in LEARNERS.values()}
