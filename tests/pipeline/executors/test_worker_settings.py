"""Settings that suit tiles: the same in the program and in the file for processes started by hand, and in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import yaml

from gramline.pipeline.cluster.facts import START_ENVIRONMENT
from gramline.pipeline.executors.connect import use_worker_settings
from gramline.pipeline.executors.worker_settings import ALLOCATOR, SETTINGS

FILE = Path(__file__).parents[3] / "deploy" / "local" / "dask.yaml"


def test_the_file_says_the_same() -> None:
    assert yaml.safe_load(FILE.read_text("utf-8")) == SETTINGS


def test_workers_have_them(dask_client: Any) -> None:
    wanted: dict[str, Any] = SETTINGS["distributed"]["worker"]["memory"]
    for memory in dask_client.run(dask.config.get, "distributed.worker.memory").values():
        assert {key: memory[key] for key in wanted} == wanted


def test_workers_begin_with_an_allocator_that_keeps_memory(dask_client: Any) -> None:
    for begun in dask_client.run(START_ENVIRONMENT.read_text).values():  # what glibc has read; later is too late
        assert {f"{name}={value}" for name, value in ALLOCATOR.items()} <= set(begun.split("\0"))


def test_what_the_user_has_set_stays() -> None:
    with dask.config.set({"distributed.worker.memory.pause": 0.5}):
        use_worker_settings()
        assert dask.config.get("distributed.worker.memory.pause") == 0.5
    use_worker_settings()
    assert dask.config.get("distributed.worker.memory.terminate") == 0.95
