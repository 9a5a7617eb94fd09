"""What runs the tasks of a build, and the options of a run: checked before anything is written.

Tested in tests/pipeline/executors/test_exposed.py and tests/pipeline/gram/test_wrong_builds.py.
"""

from __future__ import annotations

from typing import Any

from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Number
from gramline.pipeline.errors import InputError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.executors.base import Executor, InlineExecutor

ONE_OR_MORE, ZERO_OR_MORE = Number(whole=True, least=1), Number(whole=True, least=0)


def choose_executor(client: Any, executor: Executor | None, listener: Listener = silent) -> Executor:
    """The executor given, one on the client's workers, or this process; these tell `listener` of retries and losses."""
    if executor is not None and client is not None:
        raise InputError("give a client or an executor, not both")
    if executor is not None:
        if not (hasattr(executor, "n_threads") and callable(getattr(executor, "run", None))):
            raise InputError(f"executor must run tasks, as InlineExecutor() does, got {executor!r}", key="executor")
        return executor
    if client is None:
        return InlineExecutor(listener=listener)
    if not hasattr(client, "scheduler"):
        advice = "make one with gramline.pipeline.connect(address)"
        raise InputError(f"client must be a Dask client, got {client!r}", advice=advice, key="client")
    from gramline.pipeline.executors.dask import DaskExecutor  # only who has a cluster needs Dask

    return DaskExecutor(client, listener=listener)


def check_run(limit_bytes: int | None, retries: int, progress: Listener) -> None:
    """Refuse options that no run can have, before it writes anything."""
    plain_value("retries", ZERO_OR_MORE, retries, InputError, as_given=True)
    if limit_bytes is not None:
        plain_value("limit_bytes", ZERO_OR_MORE, limit_bytes, InputError)
    if not callable(progress):
        raise InputError(f"progress must be a function of an event, got {progress!r}", key="progress")
