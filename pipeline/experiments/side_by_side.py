"""Independent parts of an experiment on all cores: one process and one BLAS thread each."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

from gramline.learners.linear_algebra.blas_threads import one_blas_thread

Task = TypeVar("Task")
Result = TypeVar("Result")

NOTE = "folds ran side by side, each on a core of its own"


def side_by_side(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, inline: bool = False
) -> Iterator[Result]:
    """function(task) of every task, in their order; `inline` runs them here, one after the other."""
    if inline:
        yield from map(partial(_on_one_core, function), tasks)
        return
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(partial(_on_one_core, function), tasks)


def _on_one_core(function: Callable[[Task], Result], task: Task) -> Result:
    with one_blas_thread():
        return function(task)
