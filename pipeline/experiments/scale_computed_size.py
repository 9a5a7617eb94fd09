"""One size of the run without a stored matrix, in a process of its own: train by two workers, predict what is held out.

`python -m gramline.pipeline.experiments.scale_computed_size SETTINGS` (JSON) writes what it measured to stdout as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from gramline.learners.metrics import evaluate
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import measured
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.experiments.scale_size import (
    KERNEL,
    WARM_ROWS,
    SizeSettings,
    Stopwatch,
    own_processes,
    peaks_of,
    sales_corpus,
)
from gramline.pipeline.gram.build import StoreChoices, create_or_open
from gramline.pipeline.gram.keep import Keep
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.spread_prediction import predict_on_workers

ROUNDS = 3
HELD_OUT = 20_000  # positions to predict


@dataclass(frozen=True)
class ComputedSize:
    """What one size took: seconds by stage, processor seconds by kind of process, bytes at the highest."""

    n_positions: int
    n_held_out: int
    n_blocks: int
    n_tasks: int  # that the scheduler was sent
    values: int  # kernel values computed in the training
    mistakes: list[int]
    seconds: dict[str, float]  # by the clock
    busy: dict[str, float]  # of all processors together
    client_seconds: float  # of the client's processor, in the training
    peaks: dict[str, int]
    at_rest: dict[str, int]  # peaks before
    accuracy: float  # on what was held out


class Fitted(NamedTuple):
    """What is kept of the training beside its model."""

    learner: LabelingPerceptron
    n_blocks: int
    values: int
    client_seconds: float


def run_computed_size(settings: SizeSettings, n_held_out: int, say: Callable[[str], None]) -> ComputedSize:
    """Training and prediction; `n_held_out` positions come after those of the training."""
    folder, watch = Path(settings.folder), Stopwatch(say)
    parts = _parts(sales_corpus(settings.n_positions + n_held_out, settings.seed), settings.n_positions)
    held = parts.pop()
    with own_processes(folder, settings.workers, settings.memory_limit) as executor:
        watch.executor = executor
        watch.time("start", lambda: _warm_up(folder, executor))
        at_rest, n_sent = peaks_of(executor), executor.n_sent
        n_positions = parts[0].n_positions
        model, fitted = _trained(parts.pop(), settings, executor, watch)
        mistakes = [int(count) for count in model.learner.fitted()["mistakes_"]]
        say(f"  mistakes {' '.join(map(str, mistakes))}, {fitted.values / 1e9:.1f} billion values")
        place = str(folder / "model")
        predicted = watch.time("prediction", lambda: predict_on_workers(model, held, executor, place).labels)
        peaks = peaks_of(executor)
        n_sent = executor.n_sent - n_sent
    return ComputedSize(
        n_positions=n_positions,
        n_held_out=held.n_positions,
        n_blocks=fitted.n_blocks,
        n_tasks=n_sent,
        values=fitted.values,
        mistakes=mistakes,
        seconds=watch.seconds,
        busy=watch.busy,
        client_seconds=fitted.client_seconds,
        peaks=peaks,
        at_rest=at_rest,
        accuracy=evaluate(held.labels, predicted).accuracy,
    )


def _trained(corpus: Corpus, settings: SizeSettings, executor: DaskExecutor, watch: Stopwatch) -> tuple[Model, Fitted]:
    fitted = _fitted(corpus, settings, executor, watch)
    return Model.of(fitted.learner, corpus, KERNEL), fitted


def _fitted(corpus: Corpus, settings: SizeSettings, executor: DaskExecutor, watch: Stopwatch) -> Fitted:
    """Its Gram matrix, which holds the structures once more, ends here."""
    choices = StoreChoices(dtype="float32", block_rows=settings.block_rows, keep=Keep.of("none"))
    path = Path(settings.folder) / "gram.zarr"
    gram = StoredGram(watch.time("plan", lambda: create_or_open(KERNEL, corpus, path, choices)))
    gram.executor = executor
    before = process_time()
    with measured() as spent:
        learner = watch.time("training", lambda: LabelingPerceptron(ROUNDS, average=True).fit(gram, corpus.labels))
    client_seconds = process_time() - before
    return Fitted(learner, gram.layout.rows.n_blocks, spent.cost.kernel_values, client_seconds)


def _parts(whole: Corpus, n_positions: int) -> list[Corpus]:
    """The first structures that hold at most so many positions, and the others."""
    n_first = int(np.searchsorted(np.cumsum(whole.lengths), n_positions, side="right"))
    return [whole.select(range(n_first)), whole.select(range(n_first, len(whole)))]


def _warm_up(folder: Path, executor: DaskExecutor) -> None:
    """A few small blocks first: every process loads its program, which no size should pay for."""
    corpus = sales_corpus(4 * WARM_ROWS, seed=1)
    choices = StoreChoices(dtype="float32", block_rows=WARM_ROWS, keep=Keep.of("none"))
    gram = StoredGram(create_or_open(KERNEL, corpus, folder / "warm.zarr", choices))
    gram.executor = executor
    learner = LabelingPerceptron(1, average=True).fit(gram, corpus.labels)
    predict_on_workers(Model.of(learner, corpus, KERNEL), corpus, executor, str(folder / "warm"), block_rows=WARM_ROWS)


def main() -> None:
    def say(line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    given: dict[str, Any] = json.loads(sys.argv[1])
    n_held_out = given.pop("n_held_out")
    result = run_computed_size(SizeSettings(**given), n_held_out, say)
    sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
