"""The one place that decides how numba is used; nobody else imports it.

No-python mode, GIL released (a Dask worker stays alive during a tile), `fastmath` off (results do not depend on the
vector width), `parallel` off (Dask owns the cores). Compiled code is cached on disk unless GRAMLINE_JIT_CACHE=0.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import cgutils, types
from numba.core.compiler import Compiler
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

llvm: Any = cgutils  # which has no types
F = TypeVar("F", bound=Callable[..., Any])

CACHE = os.environ.get("GRAMLINE_JIT_CACHE", "1") != "0"
OPTIONS: dict[str, Any] = {"nogil": True, "cache": CACHE, "fastmath": False, "parallel": False, "error_model": "numpy"}


def jit(function: F) -> F:
    """Compile `function`; the plain Python version stays reachable as `function.py_func`."""
    compiled: Any = numba.njit(**OPTIONS)(function)
    return cast(F, compiled)


class Apart(Compiler):
    """The compiler of functions whose arrays lie apart; numba offers that only to its own parallel loops."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


def jit_inline(function: F) -> F:
    """As `jit`, but always part of its callers: a call that hands over many arrays costs more than a short loop."""
    compiled: Any = numba.njit(forceinline=True, **OPTIONS)(function)
    return cast(F, compiled)


def jit_apart(function: F) -> F:
    """Compile an inner loop into its callers; no array that it writes may overlap with another of its arguments.

    Otherwise the compiler checks all pairs of arrays before every loop, and gives up vectors where they are many.
    """
    compiled: Any = numba.njit(pipeline_class=Apart, forceinline=True, **OPTIONS)(function)
    return cast(F, compiled)


def prefetch(line: NDArray[Any], at: int) -> None:
    """Ask for the cache line of line[at], to be written soon. Changes nothing: interpreted, it does nothing at all.

    A store that misses the cache waits for its line, and few can wait at once; a row that was asked for while the one
    before it was computed is there in time.
    """


@intrinsic
def _prefetch(_typing: Any, line: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.bitcast(builder.gep(array.data, [arguments[1]]), llvm.voidptr_t)
        kind = llvm.ir.FunctionType(llvm.ir.VoidType(), [llvm.voidptr_t] + 3 * [llvm.int32_t])
        for_writing, near, data = (llvm.int32_t(flag) for flag in (1, 2, 1))
        instruction = llvm.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(instruction, [place, for_writing, near, data])
        return context.get_dummy_value()

    return types.void(line, at), generate


@overload(prefetch, inline="always", strict=False)
def _compiled_prefetch(line: Any, at: Any) -> Any:  # noqa: ARG001 - numba asks for the implementation by types
    compiled: Any = _prefetch
    return lambda line, at: compiled(line, at)


STEP = 8  # numbers, at most a cache line of them in either precision; a constant, so that the loop is unrolled


@jit
def ask_for(row: NDArray[Any]) -> None:
    """Have the cache fetch a row that is written soon."""
    for t in range(0, len(row), STEP):
        prefetch(row, t)
