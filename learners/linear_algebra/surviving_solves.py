"""Solves side by side that survive: each keeps its memory in one checkpoint, and its result once it has ended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.checkpoints import Checkpoint, State, named, part_of
from gramline.learners.linear_algebra.conjugate_gradient import Result, Solution, solve_together
from gramline.learners.linear_algebra.solve_memory import SolveMemory, begin_all, numbered

ENDED = "ended"  # before the names of the arrays of a result


class Ended(NamedTuple):
    """How the result of a solve that has come to its end is kept in a state."""

    to_state: Callable[[Any], State]
    from_state: Callable[[State], Any]


def _solutions_state(solutions: Sequence[Solution]) -> State:
    return numbered([solution.to_arrays() for solution in solutions]) | {"n_solutions": np.array(len(solutions))}


def _solutions_of(state: State) -> list[Solution]:
    return [Solution.from_arrays(part_of(state, str(number))) for number in range(int(state["n_solutions"]))]


SOLUTIONS = Ended(_solutions_state, _solutions_of)


def solve_surviving(
    apply_all: Callable[[dict[int, Matrix]], dict[int, Matrix]],
    solves: Sequence[Generator[Matrix, Matrix, Result]],
    memories: Sequence[SolveMemory],
    checkpoint: Checkpoint,
    ended: Ended = SOLUTIONS,
) -> list[Result]:
    """`solve_together` from a checkpoint that keeps the `memories` of the solves.

    Products are made of the same blocks then as without an interruption.
    """
    n_begun = n_products = 0
    if (begun := checkpoint.restore()) is not None:
        begin_all(memories, begun)
        n_begun = n_products = int(begun["n_products"])
    done = {
        number: ended.from_state(last)
        for number, memory in enumerate(memories)
        if (last := part_of(memory.begun or {}, ENDED))
    }

    def state() -> State:
        return numbered([memory.state for memory in memories]) | {"n_products": np.array(n_products)}

    def after(results: dict[int, Result], is_last: bool) -> None:
        nonlocal n_products
        for number, result in results.items() if memories else ():
            memories[number].state = named(ENDED, ended.to_state(result))
        if n_products > n_begun:
            checkpoint.offer(f"iteration {n_products}", state, is_last=is_last)
        n_products += 1

    return solve_together(apply_all, solves, done, after)
