"""Jobs, folds and matrices that make no sense are refused with a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from gram_samples import KERNEL, WITH_PRIOR, corpus
from job_samples import FOLDS, ROUNDS, data_of, run

from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, Variant
from gramline.pipeline.errors import InputError, PlanError


def test_a_stored_gram_that_counted_all_labels_is_refused(tmp_path: Path) -> None:
    from gramline.pipeline.gram.build import build_gram

    found = corpus(8)
    build_gram(WITH_PRIOR, found, tmp_path / "g.zarr")
    job = Job((WITH_PRIOR,), (Variant(0, "labeling-perceptron", {}),), FOLDS)
    with pytest.raises(InputError, match="would leak"):
        run(job, data_of(found), tmp_path, stores={0: str(tmp_path / "g.zarr")})


def test_a_gaussian_process_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    job = Job((KERNEL,), (Variant(0, "gaussian-process", {}),), FOLDS)
    with pytest.raises(PlanError, match=r"a fold over .* rows needs about"):
        run(job, data_of(corpus(14)), tmp_path, limit_bytes=20_000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variants": ()}, "at least one learner"),
        ({"metric": "fame"}, "no metric 'fame'"),
        ({"inner_folds": 1}, "at least 2 inner folds"),
        (
            {"variants": (Variant(0, "ranking-perceptron", {}),)},
            "compares positions; rankers need one of whole structures",
        ),
    ],
)
def test_jobs_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Job(**({"kernels": (KERNEL,), "variants": (ROUNDS[0],)} | arguments))


@pytest.mark.parametrize(
    ("spec", "key", "sentence"),
    [
        ({"count": 1}, "count", "count must be a whole number of at least 2, got 1"),
        ({"repeats": 0}, "repeats", "repeats must be a whole number between 1 and 10000, got 0"),
        ({"repeats": 2}, "repeats", "repeated folds need a seed, and are no folds from a file"),
        (
            {"stratified": True, "group": "g"},
            None,
            "folds are stratified, grouped or read from a file; choose one of them",
        ),
    ],
)
def test_folds_that_make_no_sense(spec: dict[str, Any], key: str | None, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        FoldSpec(**spec)
    assert (caught.value.key, str(caught.value)) == (key, sentence)


def test_folds_larger_than_the_corpus_and_folds_without_a_label(tmp_path: Path) -> None:
    found = corpus(6)
    hidden: Sequence[list[str | None]] = [
        [None] * len(row) if k < 2 else list(row) for k, row in enumerate(found.labels)
    ]
    for folds, source, said in (
        (FoldSpec(9), found, "2 to 6 folds, not 9"),
        (FoldSpec(3), found.with_labels(hidden), "fold 0 has no label to test on"),
        (FoldSpec(3, group="g"), found, "the folds are grouped by 'g', but the source has no such column"),
    ):
        with pytest.raises(InputError, match=said):
            run(Job((KERNEL,), ROUNDS[:1], folds), data_of(source), tmp_path)
