"""One run that all tests of the page look at."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL

from gramline.kernels import SequenceLabeling
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.reporting.run_report import write_run_report

NASTY = "<script>alert(1)</script>&\"'"


@pytest.fixture(scope="session")
def nasty() -> str:
    """A word of the run that must be escaped."""
    return NASTY


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with several kernels and learners, probabilities, inner folds and unpleasant words."""
    draw = np.random.default_rng(0)
    words = ["apple", "bread", NASTY, "drum"]
    X = [[str(word) for word in draw.choice(words, draw.integers(2, 7))] for _ in range(18)]
    y = [[("B" if word in words[:2] and draw.random() < 0.8 else "O") for word in sentence] for sentence in X]
    found = Corpus.from_sequences(X, y, labels=["B", "O"])
    data = JobData(found.fingerprint, found.ids, found.tokens, found.labels, "words.parquet", found)
    variants = (
        *(Variant(k, "labeling-perceptron", {"rounds": n}) for k in (0, 1) for n in (1, 3)),
        Variant(0, "gaussian-process", {"max_sweeps": 4}),
    )
    job = Job((KERNEL, SequenceLabeling(c=0.4)), variants, FoldSpec(3, seed=1), inner_folds=2)
    folder = tmp_path_factory.mktemp("report")
    run_job(
        job,
        data,
        RunFolder(folder / "run"),
        JobSettings(
            cache=GramCache(folder / "cache"),
            block_rows=20,
            description={"job_file": "[corpus]\npath = 'words.parquet'\n"},
            has_baselines=True,
        ),
        executor=lambda: nullcontext(InlineExecutor()),
    )
    write_run_report(folder / "run")
    return folder / "run"
