"""Test processes that begin with an empty cache of compiled code: each function is compiled by one of them."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher


def wait_for_others() -> None:
    """Who wants a function that another process compiles waits for it, and reads the result from the cache.

    A module is locked by a lock on its source; what a function calls is compiled meanwhile, and imports have no cycles.
    The lock of the compiler comes first: threads of a process never wait for each other's files.
    """
    compile_it, locked = Dispatcher.compile, set[Path]()

    def compile_once(self: Any, signature: Any) -> Any:
        source = Path(self.py_func.__code__.co_filename)
        if isinstance(self._cache, NullCache) or not source.is_file():
            return compile_it(self, signature)
        with global_compiler_lock:
            if source in locked:
                return compile_it(self, signature)
            with source.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                locked.add(source)
                try:
                    return compile_it(self, signature)
                finally:
                    locked.remove(source)

    Dispatcher.compile = compile_once
