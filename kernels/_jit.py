"""The one place that decides how numba is used; nobody else imports it.

No-python mode, GIL released (a Dask worker stays alive during a tile), `fastmath` off (results do not depend on the
vector width), `parallel` off (Dask owns the cores). Compiled code is cached on disk unless GRAMLINE_JIT_CACHE=0.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

CACHE = os.environ.get("GRAMLINE_JIT_CACHE", "1") != "0"


def jit(function: F) -> F:
    """Compile `function`; the plain Python version stays reachable as `function.py_func`."""
    compiled: Any = numba.njit(nogil=True, cache=CACHE, fastmath=False, parallel=False, error_model="numpy")(function)
    return cast(F, compiled)
