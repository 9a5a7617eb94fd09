"""Settings whose numbers come to no end are given up; the others have the results they have alone."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from gram_samples import KERNEL, corpus

from gramline.kernels import PositionKernel, Substitution
from gramline.learners.errors import ConvergenceError
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import JobResult, run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.events import Event, Message
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.cache import GramCache

MATRIX = [[1.0 if a == b else 5.0 for b in "abcd"] for a in "abcd"]  # three eigenvalues are -4
INDEFINITE = PositionKernel(Substitution("abcd", MATRIX))


def test_settings_that_do_not_converge_are_failed_rows(tmp_path: Path) -> None:
    """In a pass that settings share, and as tasks; nested choices are made among the others."""
    found = corpus(14)
    data = JobData.of_corpus(found, "sample")
    ridge = [{"ridge": 0.1}, {"ridge": 0.1, "tolerance": 1e-15, "max_iterations": 1}]
    variants = (
        *(Variant(0, "kernel-zscore", params) for params in reversed(ridge)),
        *(Variant(kernel, "gaussian-process", {"max_sweeps": 2}) for kernel in (1, 0)),
    )
    heard: list[Event] = []

    def run(chosen: tuple[Variant, ...], folder: Path) -> JobResult:
        settings = JobSettings(cache=GramCache(tmp_path / "cache"), block_rows=16)
        job = Job((KERNEL, INDEFINITE), chosen, FoldSpec(2, seed=5), inner_folds=2)
        return run_job(
            job,
            data,
            RunFolder(folder),
            settings,
            executor=lambda: nullcontext(InlineExecutor()),
            progress=heard.append,
        )

    result = run(variants, tmp_path / "run")
    alone = run((variants[1], variants[3]), tmp_path / "alone")
    assert result.result.predictions == alone.result.predictions
    solver, factor = result.summary["failed"]
    assert solver["params"] == ridge[1]
    assert "the kernel Z-score with ridge 0.1 did not converge" in solver["reason"]
    assert factor["kernel"] == INDEFINITE.to_dict()
    assert "not positive semidefinite" in factor["reason"]
    assert len(result.summary["settings"]) == len(result.summary["digests"]) == 2
    assert result.nested is not None
    assert alone.nested is not None
    assert result.nested.chosen == alone.nested.chosen
    assert len([event for event in heard if isinstance(event, Message) and "failed" in event.text]) == 2
    with pytest.raises(ConvergenceError):
        run(variants[:1], tmp_path / "none")
