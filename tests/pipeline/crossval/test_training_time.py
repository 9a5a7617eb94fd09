"""Training time of a plan: of unsolved problems, by learner, from a sample of stored or new tiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL, corpus

from gramline.pipeline.crossval import training_time
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.training_time import training_seconds
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.models.demand import spread_sample

PERCEPTRON, ZSCORE = Variant(0, "labeling-perceptron", {"rounds": 2}), Variant(None, "zscore", {})
GAUSSIAN = Variant(0, "gaussian-process", {"max_sweeps": 2})


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("variant", [PERCEPTRON, ZSCORE, GAUSSIAN])
def test_every_kind_of_learner_is_measured_on_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Variant, is_stored: bool
) -> None:
    monkeypatch.setattr(training_time, "SAMPLE_POSITIONS", 40)
    monkeypatch.setattr(training_time, "FACTORED_POSITIONS", 20)
    found = corpus(24)
    path = str(tmp_path / "g.zarr")
    if is_stored:
        build_gram(KERNEL, found, path, block_rows=16)
    job = Job((KERNEL,), (variant,))
    settings = JobSettings(GramCache(tmp_path / "cache"), {0: path} if is_stored else {})
    data = JobData.of_corpus(found, "sample")
    seconds = training_seconds(job, data, settings, [variant] * 10, 2)
    assert seconds is not None
    assert seconds > 0
    assert not (tmp_path / "cache").exists()  # nothing is left behind
    assert training_seconds(job, data, settings, [], 2) == 0


def test_time_grows_with_passes_problems_and_positions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a clock that counts its calls, one measured training always takes one second."""
    ticks = iter(range(1000))
    monkeypatch.setattr(training_time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(training_time, "SAMPLE_POSITIONS", 40)
    found = corpus(40)
    data, settings = JobData.of_corpus(found, "sample"), JobSettings(GramCache(tmp_path / "cache"))
    n_sampled = found.select(spread_sample(found.lengths, 40)).n_positions
    ratio = found.n_positions / n_sampled
    assert ratio > 2

    def of(variant: Variant, count: int, threads: int = 1) -> float:
        return training_seconds(Job((KERNEL,), (variant,)), data, settings, [variant] * count, threads) or 0.0

    assert of(ZSCORE, 3) == pytest.approx(3 * ratio)
    assert of(ZSCORE, 3, 2) == pytest.approx(3 * ratio / 2)
    rounds = 1000  # of which the sample needs a few
    assert of(Variant(0, "labeling-perceptron", {"rounds": rounds}), 1) > 10 * ratio**2
    assert of(Variant(0, "labeling-perceptron", {"rounds": 1}), 4, 2) == pytest.approx(4 * ratio**2)


def test_what_cannot_be_trained_on_has_no_time(tmp_path: Path) -> None:
    data = JobData.of_corpus(corpus(6).without_labels(), "x")
    settings = JobSettings(GramCache(tmp_path / "cache"))
    assert training_seconds(Job((KERNEL,), (PERCEPTRON,)), data, settings, [PERCEPTRON], 1) is None


def test_a_sample_is_spread_and_has_two_structures() -> None:
    lengths = np.full(100, 10)
    assert spread_sample(lengths, 100).tolist() == [0, 11, 22, 33, 44, 55, 66, 77, 88, 99]
    assert len(spread_sample(lengths, 1)) == 2
    assert spread_sample(np.array([3, 4]), 1000).tolist() == [0, 1]
