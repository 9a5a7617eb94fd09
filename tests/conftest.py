"""What all tests share: one Dask cluster per session, and which tests run only when their marker is asked for."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background lets them, and every command that they start, ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How Dask watches itself costs an idle cluster of two an eighth of a core; read from here by every process of a test.
os.environ.setdefault("DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED", "False")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL", "500ms")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL", "5s")

# Threads of BLAS that wait for the next small product spin: where test processes share the cores, training a Gaussian
# process took ten times the processor time. Benchmarks measure what a user has.
if "benchmark" not in sys.argv:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# The same examples every time, whatever the machine's speed; HYPOTHESIS_PROFILE=searching looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("searching", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

if "PYTEST_XDIST_WORKER" in os.environ:
    from compiled_once import wait_for_others

    wait_for_others()

ON_REQUEST = ("slow", "chaos", "benchmark", "soak", "fuzz", "places")  # run by pytest -m slow, and so on


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without -m, tests that take minutes, kill many processes or only measure are left out."""
    if config.getoption("markexpr"):
        return
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in ON_REQUEST)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A client of a local cluster of two one-thread processes. Do not kill its workers: start your own for that."""
    from gramline.pipeline.executors.connect import connect

    with connect(workers=2, memory_limit="2GiB") as client:
        yield client
