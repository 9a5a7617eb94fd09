"""How long training will take: passes times the speed of a pass, measured by training on a sample of the structures.

    seconds = (rounds + 1) * (seconds of one round on n' positions) * (n / n')^e * problems

e = 1 for learners on features, 2 for those that stream a Gram matrix, 3 for those that factor it. One thread solves
the problems that share a pass; the others are spread over all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from gramline.learners.estimator import Learner
from gramline.learners.kinds import SharedPassLearner
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.crossval.folds import Folds, Held, k_fold
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.training import HeldOut, fit_on_corpus, fit_on_gram, square_of
from gramline.pipeline.executors.base import FINAL, InlineExecutor
from gramline.pipeline.gram.build import GramBuild, StoreChoices
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.models.demand import spread_sample

SAMPLE_POSITIONS = 1500
FACTORED_POSITIONS = 300  # of a sample for learners that take the cube of it
MOST_PROBLEMS = 6  # that share the measured pass
SAMPLE_FOLDS = 3
LONG = 3.0  # seconds, beside which loading compiled code is nothing

Train = Callable[[Sequence[Learner]], list[HeldOut]]


def training_seconds(
    job: Job, data: JobData, settings: JobSettings, variants: Sequence[Variant], n_threads: int
) -> float | None:
    """Of these problems, one variant each, all of the same learner; None where the sample cannot be trained on."""
    if not variants:
        return 0.0
    alike = list({id(one): one for one in variants if one.kernel == variants[0].kernel}.values())[:MOST_PROBLEMS]
    learner = alike[0].make()
    together = isinstance(learner, SharedPassLearner)
    exponent = 1 if learner.reads_corpus else 3 if learner.factors_by_tiles else 2
    limit = FACTORED_POSITIONS if exponent == 3 else SAMPLE_POSITIONS
    try:
        per_problem, n_sampled = _measure(job, data, settings, alike if together else alike[:1], limit)
    except FINAL:  # no labels in the sample, numbers that overflow: the run itself will say so
        return None
    seconds = per_problem * (data.n_positions / n_sampled) ** exponent * len(variants)
    return seconds if together else seconds / min(n_threads, len(variants))


def _measure(
    job: Job, data: JobData, settings: JobSettings, variants: Sequence[Variant], limit: int
) -> tuple[float, int]:
    """Seconds that a problem takes at most on the sample, and the positions of the sample."""
    learners, kernel = [variant.make() for variant in variants], variants[0].kernel
    if kernel is None:
        assert data.corpus is not None
        chosen = spread_sample(data.corpus.lengths, limit)
        part, labels, folds = data.corpus.select(chosen), [data.labels[k] for k in chosen], _folds(chosen)

        def train(learners: Sequence[Learner]) -> list[HeldOut]:
            return [fit_on_corpus(one, part, labels, folds.training(0), folds.held_out[0]) for one in learners]

        return _timed(train, learners), part.n_positions
    with _gram(job, data, settings, kernel, limit) as (gram, chosen):
        labels, folds = [data.labels[k] for k in chosen], _folds(chosen)

        def stream(learners: Sequence[Learner]) -> list[HeldOut]:
            return fit_on_gram(learners, gram, labels, folds, [k % len(folds) for k in range(len(learners))])

        return _timed(stream, learners), gram.shape[0]


def _folds(chosen: Held) -> Folds:
    return k_fold(len(chosen), min(SAMPLE_FOLDS, len(chosen)))


def _timed(train: Train, learners: Sequence[Learner]) -> float:
    """Seconds per learner, with as many rounds as each may take."""
    outcomes, seconds = _once(train, learners)
    if seconds < LONG:  # the first time loads compiled code
        outcomes, seconds = _once(train, [one.fresh() for one in learners])
    limit = max(one.round_limit for one in learners)
    rounds = max((len(curve) for held in outcomes for curve in held.traces.values()), default=0)
    return seconds / len(learners) * ((limit + 1) / (rounds + 1) if limit and rounds else 1.0)


def _once(train: Train, learners: Sequence[Learner]) -> tuple[list[HeldOut], float]:
    begin = perf_counter()
    outcomes = train(learners)
    return outcomes, perf_counter() - begin


@contextmanager
def _gram(
    job: Job, data: JobData, settings: JobSettings, kernel: int, limit: int
) -> Iterator[tuple[GramOperator, Held]]:
    """The Gram matrix of a sample, and its structures: a part of the stored one, or one that is built and forgotten."""
    path = _store(job, data, settings, kernel)
    if path is not None:
        whole = stored(path, len(data.labels))
        rows = whole.layout.rows
        n_blocks = max(1, int(np.searchsorted(rows.block_starts, limit, side="right")) - 1)
        if n_blocks * rows.block_rows <= 2 * limit or n_blocks == rows.n_blocks:
            n_leading = int(rows.block_structures[n_blocks])
            yield (whole if n_leading == len(data.labels) else stored(path, n_leading)), np.arange(n_leading)
        else:  # whole tiles would be too large a sample
            chosen = spread_sample(rows.lengths, limit)
            yield square_of(whole, chosen), chosen
        return
    assert data.corpus is not None
    with TemporaryDirectory() as folder:
        chosen = spread_sample(data.corpus.lengths, limit)
        build = GramBuild(
            job.kernels[kernel], data.corpus.select(chosen), f"{folder}/sample.gram.zarr", StoreChoices(job.dtype)
        )
        yield build.run(InlineExecutor()), chosen


def _store(job: Job, data: JobData, settings: JobSettings, kernel: int) -> str | None:
    """A complete stored Gram matrix of the kernel."""
    path = settings.stores.get(kernel)
    if path is None and data.corpus is not None and settings.cache is not None:
        entry = settings.cache.find(GramSpec.of(job.kernels[kernel], data.corpus.packed(), None, job.dtype))
        path = None if entry is None else entry.store
    return path if path is not None and stored(path, len(data.labels)).status().is_complete else None
