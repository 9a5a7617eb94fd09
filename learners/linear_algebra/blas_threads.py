"""BLAS held to one thread: for tiles and thin blocks, too small to share, where idle threads would spin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Enter it in the thread that drives the work as well: the first to set the limit is the one that lifts it."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    """Looking up the loaded libraries takes milliseconds, so it is done once."""
    return ThreadpoolController()
