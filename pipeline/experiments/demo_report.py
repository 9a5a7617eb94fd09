"""The demo as a report: one setting, tested on sentences of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from gramline.kernels.descriptions import describe
from gramline.learners.estimator import Learner
from gramline.pipeline.crossval.summary import versions
from gramline.pipeline.crossval.validate import METRICS, FoldResult
from gramline.pipeline.events import TileReport
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.reporting.content import Report, Sentence, SettingRow
from gramline.pipeline.reporting.heatmap import thumbnail
from gramline.pipeline.reporting.run_report import tile_times

if TYPE_CHECKING:
    from gramline.pipeline.experiments.demo import DemoResult


def demo_report(
    result: DemoResult,
    learner: Learner,
    predicted: Sequence[Sequence[str]],
    gram: StoredGram,
    tiles: Sequence[TileReport],
) -> Report:
    """What the demo did, as a page; `predicted` are the labels of its held-out sentences."""
    scores = FoldResult(0, 0, result.evaluation)
    small = thumbnail(gram)
    kernel = describe(result.kernel.to_dict())
    sentences = [
        Sentence(f"sentence {name}", tokens, gold, list(found))
        for name, tokens, gold, found in zip(
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
