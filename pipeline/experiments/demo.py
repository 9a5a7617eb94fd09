"""The demo, from corpus to report: generated sentences, Gram matrices in Zarr, labelers trained from them, a test.

The same sentences go the way twice, as dependency trees and as sequences. Everything lands in one folder; a second run
finds its tiles there and computes none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import describe
from gramline.kernels.observations.features import Linear
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.kernels.trees.labeling import TreeLabeling
from gramline.learners.metrics import Evaluation, evaluate
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.summary import versions
from gramline.pipeline.crossval.validate import METRICS, FoldResult
from gramline.pipeline.events import Event, Listener, TileDone, TileReport, silent
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.experiments.base import Say
from gramline.pipeline.gram.build import StoreChoices, compute_missing, create_or_open, plan_store
from gramline.pipeline.gram.plan import Plan
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import GramStatus, StoredGram
from gramline.pipeline.models.model import Model
from gramline.pipeline.reporting.content import Report, Sentence, SettingRow
from gramline.pipeline.reporting.heatmap import thumbnail
from gramline.pipeline.reporting.run_report import tile_times, write_page

BLOCK_ROWS = 1024  # smaller than the default, so that there are tiles to watch
ROUNDS = 10
TRAIN_SEED, TEST_SEED = 1, 2
KERNELS: dict[str, Kernel] = {
    # Used, wished or rejected: a verb far away in the sentence, but near in its dependency tree, decides that.
    "trees": TreeLabeling(c=2.0, observation=Linear(normalized=True)),
    "sequences": SequenceLabeling(c=2.0, observation=Linear(normalized=True)),
}
SUFFIXES = {"trees": "", "sequences": "-sequences"}  # of everything that the demo writes


@dataclass(frozen=True)
class Trained:
    """The Gram matrix of one kind of structures, and the labeler trained from it."""

    kernel: Kernel
    plan: Plan
    status: GramStatus
    mistakes: list[int]
    support_positions: int
    evaluation: Evaluation

    @staticmethod
    def of(plan: Plan, gram: StoredGram, learner: LabelingPerceptron, model: Model, evaluation: Evaluation) -> Trained:
        return Trained(gram.kernel, plan, gram.status(), learner.mistakes_, model.support.n_positions, evaluation)


@dataclass(frozen=True)
class DemoResult(Trained):
    """What the demo computed with dependency trees, the seconds of each part, and its files."""

    folder: Path
    train: Corpus
    test: Corpus
    sequences: Trained  # the same sentences without their trees
    seconds: dict[str, float]  # generate, build, train, evaluate: trees; sequences: training and test of those

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def to_dict(self) -> dict[str, Any]:
        sides = (self, self.sequences)
        return {
            "folder": str(self.folder),
            "kernel": self.kernel.to_dict(),
            "train": {"sentences": len(self.train), "positions": self.train.n_positions},
            "test": {"sentences": len(self.test), "positions": self.test.n_positions},
            "tiles": sum(side.status.n_tiles for side in sides),
            "computed": sum(len(side.plan.tasks) for side in sides),
            "reused": sum(side.plan.n_present for side in sides),
            "stored_bytes": sum(side.status.stored_bytes for side in sides),
            "mistakes": self.mistakes,
            "support_positions": self.support_positions,
            "seconds": self.seconds,
            "report": str(self.report),
            "evaluation": self.evaluation.to_dict(),
            "sequences": {"kernel": self.sequences.kernel.to_dict(), "evaluation": self.sequences.evaluation.to_dict()},
        }


def run_demo(
    folder: Path,
    *,
    n_sentences: int,
    n_held_out: int,
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener = silent,
    say: Say = lambda _line: None,
) -> DemoResult:
    """Run it; `executor` is only entered when there are tiles to compute. `say` is called as each part begins."""
    folder.mkdir(parents=True, exist_ok=True)
    clock = _Stopwatch()
    say(f"generating {n_sentences:,} sentences to train on and {n_held_out:,} to test on")
    train = {kind: _corpus(folder, "train", n_sentences, TRAIN_SEED, kind) for kind in KERNELS}
    test = {kind: _corpus(folder, "test", n_held_out, TEST_SEED, kind) for kind in KERNELS}
    clock.lap("generate")
    stores = {
        kind: create_or_open(
            kernel,
            train[kind],
            folder / f"train-{n_sentences}{SUFFIXES[kind]}.gram.zarr",
            StoreChoices(dtype="float32", block_rows=BLOCK_ROWS),
        )
        for kind, kernel in KERNELS.items()
    }
    plans = {kind: plan_store(store) for kind, store in stores.items()}
    tiles = _build(stores, plans, executor, progress, say)
    clock.lap("build")
    say("training the labeling perceptron on dependency trees from the store")
    grams = {kind: StoredGram(store) for kind, store in stores.items()}
    learner, model = _train(grams["trees"], train["trees"], folder / "model.zarr")
    clock.lap("train")
    say("labeling the held-out sentences")
    predicted = model.predict(test["trees"].without_labels())
    trees = Trained.of(plans["trees"], grams["trees"], learner, model, evaluate(test["trees"].labels, predicted))
    clock.lap("evaluate")
    say("the same with the sentences as plain sequences")
    other, model = _train(grams["sequences"], train["sequences"], folder / "model-sequences.zarr")
    scores = evaluate(test["sequences"].labels, model.predict(test["sequences"].without_labels()))
    sequences = Trained.of(plans["sequences"], grams["sequences"], other, model, scores)
    clock.lap("sequences")
    result = DemoResult(
        **vars(trees), folder=folder, train=train["trees"], test=test["trees"], sequences=sequences, seconds=clock.laps
    )
    write_page(demo_report(result, learner, predicted, grams["trees"], tiles), result.report)
    return result


def _build(
    stores: Mapping[str, TileStore],
    plans: Mapping[str, Plan],
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener,
    say: Say,
) -> list[TileReport]:
    """Compute the missing tiles of all stores on one executor; returns the reports of the trees' tiles."""
    tiles: dict[str, list[TileReport]] = {kind: [] for kind in stores}
    n_todo, n_tiles = sum(len(plan.tasks) for plan in plans.values()), sum(plan.n_tiles for plan in plans.values())
    if n_todo == 0:
        say(f"the Gram matrices are there: all {n_tiles:,} tiles are reused")
        return []
    stored, peak = sum(plan.stored_bytes for plan in plans.values()), max(plan.peak_bytes for plan in plans.values())
    say(
        f"planned: {n_todo:,} of {n_tiles:,} tiles to compute, {stored / 1e6:,.0f} MB on disk, {peak / 1e6:,.0f} MB of "
        "memory per thread"
    )
    with executor() as runner:
        for kind, store in stores.items():
            say(f"building the Gram matrix of the {kind} on {runner.n_threads} thread{'s' * (runner.n_threads > 1)}")

            def listen(event: Event, reports: list[TileReport] = tiles[kind]) -> None:
                if isinstance(event, TileDone):
                    reports.append(event.report)
                progress(event)

            compute_missing(store, runner, progress=listen)
    return tiles["trees"]


def _train(gram: StoredGram, corpus: Corpus, path: Path) -> tuple[LabelingPerceptron, Model]:
    learner = LabelingPerceptron(rounds=ROUNDS, average=True).fit(gram, corpus.labels)
    model = Model.of(learner, corpus, gram.kernel)
    model.save(path, overwrite=True)
    return learner, model


def _corpus(folder: Path, name: str, n_sentences: int, seed: int, kind: str) -> Corpus:
    corpus = generate_saleslog(n_sentences, seed, kind, features="words")
    corpus.save(folder / f"{name}{SUFFIXES[kind]}.parquet")
    return corpus


def demo_report(
    result: DemoResult,
    learner: LabelingPerceptron,
    predicted: Sequence[Sequence[str]],
    gram: StoredGram,
    tiles: Sequence[TileReport],
) -> Report:
    """The content of the demo's page; `predicted` are the labels of its held-out sentences."""
    scores = FoldResult(0, 0, result.evaluation)
    small = thumbnail(gram)
    kernel = describe(result.kernel.to_dict())
    sentences = [
        Sentence(f"sentence {name}", tokens, gold, labels)
        for name, tokens, gold, labels in zip(
            result.test.ids, result.test.tokens, result.test.labels, predicted, strict=True
        )
    ]
    return Report(
        title="gramline demo: what do the sales logs say?",
        subtitle=(
            f"{len(result.train):,} generated sentences to train on, {len(result.test):,} others to test on, "
            f"{len(result.train.label_names)} labels"
        ),
        cards={
            "learner": repr(learner),
            "accuracy": f"{result.evaluation.accuracy:.4f}",
            "F1": f"{result.evaluation.tokens.f1:.4f}",
            "Gram matrix": f"{result.status.shape[0]:,} x {result.status.shape[1]:,}",
            "tiles computed": f"{len(result.plan.tasks):,} of {result.status.n_tiles:,}",
            "time": f"{sum(result.seconds.values()):.1f} s",
        },
        metric="accuracy",
        settings=[SettingRow(repr(learner), kernel, {name: [scores.metric(name)] for name in METRICS})],
        best=0,
        fold_word="test set",
        curves={"mistakes": {repr(learner): [float(count) for count in result.mistakes]}},
        labels=result.evaluation.labels,
        confusion=result.evaluation.confusion,
        sentences=sentences,
        gram=small,
        gram_caption=small.caption(kernel),
        tiles=tile_times([asdict(tile) for tile in tiles], gram.dtype.itemsize),
        parameters={
            "command": f"gramline demo --sentences {len(result.train)}",
            "kernel": kernel,
            "learner": repr(learner),
            "Gram matrix": result.status.path,
            "numbers": result.status.dtype,
        }
        | {f"seconds to {step}": f"{seconds:.2f}" for step, seconds in result.seconds.items()},
        versions=versions(),
    )


class _Stopwatch:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.laps[name], self._last = now - self._last, now
