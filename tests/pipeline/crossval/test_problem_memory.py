"""The memory of a problem by the method that was chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from gram_samples import KERNEL, corpus

from gramline.learners.catalogue import make_learner
from gramline.pipeline import build_gram
from gramline.pipeline.crossval.problem_memory import ProblemSize, factor_limit, problem_bytes
from gramline.pipeline.errors import PlanError
from gramline.pipeline.gram.plan import ThreadLimit

GIGABYTE = 10**9
EXACT = make_learner("gaussian-process", {})
NYSTROM = make_learner("gaussian-process", {"approximation": "nystrom", "rank": 400})


@pytest.fixture
def size(tmp_path: Path) -> ProblemSize:
    """8,300 rows, whatever the store has: only its blocks count."""
    store = build_gram(KERNEL, corpus(), tmp_path / "a.zarr", block_rows=16).store
    return ProblemSize(store, n_rows=8300, n_labels=8, n_held=1660)


def test_a_low_rank_needs_what_a_low_rank_needs(size: ProblemSize) -> None:
    assert problem_bytes(EXACT, size) == 4 * 8 * 8300**2
    assert problem_bytes(NYSTROM, size) < problem_bytes(EXACT, size) / 4


def test_what_fits_is_not_refused(size: ProblemSize) -> None:
    limit = ThreadLimit(GIGABYTE)
    assert factor_limit(NYSTROM, size, limit) == GIGABYTE // 2
    assert factor_limit(EXACT, size, limit) == 0  # by tiles
    assert factor_limit(EXACT, size, ThreadLimit(3 * GIGABYTE)) == 3 * GIGABYTE // 2


def test_a_refusal_names_the_worker_and_another_way(size: ProblemSize) -> None:
    limit = ThreadLimit(10**8, "a thread of the worker tls://node1:5")
    with pytest.raises(PlanError, match=r"more than the 100 MB a thread of the worker tls://node1:5 may use") as exact:
        factor_limit(EXACT, size, limit)
    assert "Nystrom" in exact.value.advice
    with pytest.raises(PlanError) as low:
        factor_limit(NYSTROM, size, limit)
    assert "Nystrom" not in low.value.advice
    assert "rank below 400" in low.value.advice
