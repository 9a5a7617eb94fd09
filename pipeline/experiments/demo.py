"""The demo, from corpus to report: generated sentences, Gram matrices in Zarr, labelers trained from them, a test.

The same sentences go the way twice, as dependency trees and as sequences. Everything lands in one folder; a second run
finds its tiles there and computes none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
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
from gramline.pipeline.events import Event, Listener, Message, TileDone, TileReport, silent
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.files import write_whole
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.missing import compute_missing, plan_store
from gramline.pipeline.gram.plan import Plan
from gramline.pipeline.gram.status import GramStatus
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.model import Model
from gramline.pipeline.reporting.content import Curve, Report, Sentence, SettingRow
from gramline.pipeline.reporting.heatmap import thumbnail
from gramline.pipeline.reporting.page import page

BLOCK_ROWS = 1024  # smaller than the default, so that there are tiles to watch
ROUNDS = 10
TRAIN_SEED, TEST_SEED = 1, 2
KERNELS: dict[str, Kernel] = {
    # Used, wished or rejected: a verb far away in the sentence, but near in its dependency tree, decides that.
    "trees": TreeLabeling(c=2.0, observation=Linear(normalized=True)),
    "sequences": SequenceLabeling(c=2.0, observation=Linear(normalized=True)),
}
SUFFIXES = {"trees": "", "sequences": "-sequences"}  # of everything that the demo writes


@dataclass(frozen=True, eq=False)
class Trained:
    """The Gram matrix of one kind of structures, the labeler trained from it, and what that says of new sentences."""

    plan: Plan
    gram: StoredGram
    status: GramStatus
    learner: LabelingPerceptron
    support_positions: int
    predicted: list[list[str]]
    evaluation: Evaluation


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo computed with dependency trees and without, the seconds of each part, and its files."""

    folder: Path
    train: Corpus
    test: Corpus
    trees: Trained
    sequences: Trained  # the same sentences without their trees
    tiles: list[TileReport]  # of the trees, those that were computed
    seconds: dict[str, float]  # generate, build, train, evaluate: trees; sequences: training and test of those

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    def to_dict(self) -> dict[str, Any]:
        trees, sequences, sides = self.trees, self.sequences, (self.trees, self.sequences)
        return {
            "folder": str(self.folder),
            "kernel": trees.gram.kernel.to_dict(),
            "train": {"sentences": len(self.train), "positions": self.train.n_positions},
            "test": {"sentences": len(self.test), "positions": self.test.n_positions},
            "tiles": sum(side.status.n_tiles for side in sides),
            "computed": sum(len(side.plan.tasks) for side in sides),
            "reused": sum(side.plan.n_present for side in sides),
            "stored_bytes": sum(side.status.stored_bytes for side in sides),
            "mistakes": trees.learner.mistakes_,
            "support_positions": trees.support_positions,
            "seconds": self.seconds,
            "report": str(self.report),
            "evaluation": trees.evaluation.to_dict(),
            "sequences": {"kernel": sequences.gram.kernel.to_dict(), "evaluation": sequences.evaluation.to_dict()},
        }


def run_demo(
    folder: Path,
    *,
    n_sentences: int,
    n_held_out: int,
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener = silent,
) -> DemoResult:
    """Run it; `executor` is only entered when there are tiles to compute. A `Message` says that a part begins."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = {"start": perf_counter()}  # of every part
    progress(Message(f"generating {n_sentences:,} sentences to train on and {n_held_out:,} to test on"))
    train = {kind: _corpus(folder, "train", n_sentences, TRAIN_SEED, kind) for kind in KERNELS}
    test = {kind: _corpus(folder, "test", n_held_out, TEST_SEED, kind) for kind in KERNELS}
    ends["generate"] = perf_counter()
    choices = StoreChoices(dtype="float32", block_rows=BLOCK_ROWS)
    places = {kind: folder / f"train-{n_sentences}{SUFFIXES[kind]}.gram.zarr" for kind in KERNELS}
    stores = {kind: create_or_open(kernel, train[kind], places[kind], choices) for kind, kernel in KERNELS.items()}
    plans = {kind: plan_store(store) for kind, store in stores.items()}
    tiles = _build(stores, plans, executor, progress)
    ends["build"] = perf_counter()
    progress(Message("training the labeling perceptron on dependency trees from the store"))
    grams = {kind: StoredGram(store) for kind, store in stores.items()}
    trained = _train(grams["trees"], train["trees"], folder / "model.zarr")
    ends["train"] = perf_counter()
    progress(Message("labeling the held-out sentences"))
    trees = _tested(plans["trees"], grams["trees"], *trained, test["trees"])
    ends["evaluate"] = perf_counter()
    progress(Message("the same with the sentences as plain sequences"))
    trained = _train(grams["sequences"], train["sequences"], folder / "model-sequences.zarr")
    sequences = _tested(plans["sequences"], grams["sequences"], *trained, test["sequences"])
    ends["sequences"] = perf_counter()
    seconds = {part: end - begin for (_, begin), (part, end) in pairwise(ends.items())}
    result = DemoResult(folder, train["trees"], test["trees"], trees, sequences, tiles, seconds)
    write_whole(result.report, page(demo_report(result)))
    return result


def _build(
    stores: Mapping[str, TileStore],
    plans: Mapping[str, Plan],
    executor: Callable[[], AbstractContextManager[Executor]],
    progress: Listener,
) -> list[TileReport]:
    """Compute the missing tiles of all stores on one executor; returns the reports of the trees' tiles."""
    tiles: dict[str, list[TileReport]] = {kind: [] for kind in stores}
    n_todo, n_tiles = sum(len(plan.tasks) for plan in plans.values()), sum(plan.n_tiles for plan in plans.values())
    if n_todo == 0:
        progress(Message(f"the Gram matrices are there: all {n_tiles:,} tiles are reused"))
        return []
    stored, peak = sum(plan.stored_bytes for plan in plans.values()), max(plan.peak_bytes for plan in plans.values())
    needs = f"{stored / 1e6:,.0f} MB on disk, {peak / 1e6:,.0f} MB of memory per thread"
    progress(Message(f"planned: {n_todo:,} of {n_tiles:,} tiles to compute, {needs}"))
    with executor() as runner:
        threads = f"{runner.n_threads} thread{'s' * (runner.n_threads > 1)}"
        for kind, store in stores.items():
            progress(Message(f"building the Gram matrix of the {kind} on {threads}"))

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


def _tested(plan: Plan, gram: StoredGram, learner: LabelingPerceptron, model: Model, test: Corpus) -> Trained:
    predicted = model.predict(test.without_labels())
    scores = evaluate(test.labels, predicted)
    return Trained(plan, gram, gram.status(), learner, model.support.n_positions, predicted, scores)


def _corpus(folder: Path, name: str, n_sentences: int, seed: int, kind: str) -> Corpus:
    corpus = generate_saleslog(n_sentences, seed, kind, features="words")
    corpus.save(folder / f"{name}{SUFFIXES[kind]}.parquet")
    return corpus


def _row(name: str, evaluation: Evaluation) -> SettingRow:
    scores = FoldResult(0, 0, evaluation)
    return SettingRow(name, "", {metric: [scores.metric(metric)] for metric in METRICS})


def _without_trees(result: DemoResult) -> SettingRow:
    return _row("same learner without the trees", result.sequences.evaluation)


def _majority(result: DemoResult) -> SettingRow:
    counts = result.train.label_counts()
    frequent = max(counts, key=lambda label: counts[label])
    guessed = [[frequent] * len(path) for path in result.test.labels]
    return _row(f"majority label ({frequent})", evaluate(result.test.labels, guessed))


def demo_report(result: DemoResult) -> Report:
    """The content of the demo's page."""
    trees, train, test = result.trees, result.train, result.test
    evaluation, status, learner = trees.evaluation, trees.status, repr(trees.learner)
    kernel = describe(trees.gram.kernel.to_dict())
    links = test.table.column("links").to_pylist()
    rows = zip(test.ids, test.tokens, test.labels, trees.predicted, links, strict=True)
    return Report(
        title="gramline demo: what do the sales logs say?",
        subtitle=(
            f"{len(train):,} generated sentences to train on, {len(test):,} others to test on, "
            f"{len(train.label_names)} labels"
        ),
        baselines=[_without_trees(result), _majority(result)],
        cards={
            "F1": f"{evaluation.tokens.f1:.4f}",
            "Gram matrix": f"{status.shape[0]:,} x {status.shape[1]:,}",
            "tiles computed": f"{len(trees.plan.tasks):,} of {status.n_tiles:,}",
            "time": f"{sum(result.seconds.values()):.1f} s",
        },
        metric="accuracy",
        settings=[replace(_row(learner, evaluation), kernel=kernel)],
        best=0,
        fold_word="test set",
        commands={"Look closer": f"gramline evaluate {result.folder}/model.zarr {result.folder}/test.parquet"},
        curves=[
            Curve(
                "round",
                "share of positions with a mistake",
                "The solid line is of the training set: the share of its positions that a round got wrong before it "
                "learned from them. The dashed line is of the test set.",
                {learner: [count / train.n_positions for count in trees.learner.mistakes_]},
                evaluation.hamming_loss,
            )
        ],
        labels=evaluation.labels,
        by_label=evaluation.by_label,
        confusion=evaluation.confusion,
        sentences=[Sentence(f"sentence {name}", words, gold, own, below) for name, words, gold, own, below in rows],
        gram=thumbnail(trees.gram, kernel),
        tiles=result.tiles,
        itemsize=trees.gram.dtype.itemsize,
        parameters={
            "command": f"gramline demo --sentences {len(train)}",
            "kernel": kernel,
            "learner": learner,
            "Gram matrix": status.path,
            "numbers": status.dtype,
        }
        | {f"seconds to {step}": f"{seconds:.2f}" for step, seconds in result.seconds.items()},
        versions=versions(),
    )
