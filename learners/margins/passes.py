"""Passes of dual ascent over one Gram for any number of problems, and the duality gap after each of them.

A pass visits every block once; a visit changes dual weights of the rows of the block and makes the dual D larger. A
problem may follow it up with inner passes, which only use what is known of its chains. After a pass and these all rows
are brought up to date and P and D are measured at one and the same weights: P - D bounds what is left. Problems never
see each other; they only share the tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.checkpoints import NOWHERE, Checkpoint, State, named, number, part_of
from gramline.learners.kinds import RoundProgress
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.definiteness import not_semidefinite, require_semidefinite
from gramline.learners.operators.lazy_scores import Change, LazyScores, Visit
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.orders import AHEAD
from gramline.learners.operators.packets import Scores

ROUNDING = 1e-7  # of what was summed: a negative gap or length beyond this has another cause


class Stopping(NamedTuple):
    """When the passes end: at P - D <= tolerance * P, or after so many of them."""

    tolerance: float
    passes: int


class Terms(NamedTuple):
    """What the rows of a block add to P and D."""

    hinge: float  # sum of hinges
    n_inside: int  # positions or chains inside the margin
    norms: Matrix  # <A, S> of each structure of the block


class Bounds(NamedTuple):
    """P and D at the same weights."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return self.primal - self.dual


class MarginProblem(Protocol):
    """One set of labels with its dual weights."""

    stopping: Stopping
    trace: list[Bounds]  # one per pass

    @property
    def n_labels(self) -> int: ...

    @property
    def is_inner(self) -> bool:
        """Whether the next pass, or the one under way, is an inner one."""

    def visit(self, block: int, visit: Visit, scores: Scores) -> Change | None:
        """Dual ascent over the rows of a block, in order; what it changed of their weights."""

    def end_pass(self) -> None:
        """All blocks were visited; say whether an inner pass follows."""

    def measure(self, block: int, local: Indices, scores: Scores) -> Terms:
        """What a block adds to P and D, from scores that are up to date."""

    def bounds(self, hinge: float, norm: float) -> Bounds:
        """P and D from the sum of all hinges and <A, S>."""

    def state(self) -> State:
        """All that the visits changed, but for the trace; copies."""

    def resume(self, state: State) -> None:
        """Go on where `state` was."""


def is_converged(bounds: Bounds, stopping: Stopping) -> bool:
    return bounds.gap <= stopping.tolerance * bounds.primal


def convergence_notes(gap: float, objective: float, stopping: Stopping, n_passes: int) -> list[str]:
    """What to say of a training that ended too early; nothing of any other."""
    if is_converged(Bounds(objective, objective - gap), stopping):
        return []
    return [
        f"after {n_passes} passes the duality gap is {gap:.3g}, {gap / objective:.2g} of the objective (tolerance "
        f"{stopping.tolerance:g}); give more passes, a smaller C or a larger tolerance"
    ]


def train(
    gram: GramOperator,
    problems: Sequence[MarginProblem],
    progress: RoundProgress | None,
    checkpoint: Checkpoint = NOWHERE,
) -> None:
    """Passes over the tiles until every problem has converged or has had all its passes.

    `progress` is called after every pass with its number, from 1, and how many are inside the margin in all problems.
    """
    _Training(gram, problems).run(progress, checkpoint)


class _Training:
    """Problems and the scores of all rows; it can leave its state between two blocks."""

    def __init__(self, gram: GramOperator, problems: Sequence[MarginProblem]) -> None:
        self._gram, self._problems = gram, problems
        self._scores = LazyScores(gram, [problem.n_labels for problem in problems])
        self._limit = max(problem.stopping.passes for problem in problems)
        self._n_passes = 0
        self._block = 0  # the next one to visit; 0 between two passes

    def run(self, progress: RoundProgress | None, checkpoint: Checkpoint) -> None:
        if (begun := checkpoint.restore()) is not None:
            self._resume(begun)
        while running := self._running():
            this = f"pass {self._n_passes + 1} of {self._limit}"
            # The products are thin, and more BLAS threads wait for each other longer than they compute.
            with one_blas_thread():
                self._visit_all(running, set(running), this, checkpoint)
                while inner := self._inner():
                    self._visit_all(running, inner, this, NOWHERE)  # quick: a training goes on before them
                is_last = all(len(one.trace) + 1 == one.stopping.passes for one in running.values())
                n_inside = _measure(self._gram, self._scores, running, is_last=is_last)
            self._n_passes += 1
            if progress is not None:
                progress(self._n_passes, n_inside)
            checkpoint.offer(this, self._state, is_last=not self._running())

    def _running(self) -> dict[int, MarginProblem]:
        return {number: problem for number, problem in enumerate(self._problems) if not _is_done(problem)}

    def _inner(self) -> set[int]:
        return {number for number, problem in enumerate(self._problems) if problem.is_inner}

    def _visit_all(
        self, problems: dict[int, MarginProblem], active: set[int], this: str, checkpoint: Checkpoint
    ) -> None:
        """One pass of the active ones; the others only receive what belongs to them, since rows receive it once."""
        layout, scores = self._gram.layout.rows, self._scores
        for block in range(self._block, layout.n_blocks):
            visit = scores.enter(layout.rows(block), list(problems), layout.rows_after(block, AHEAD))
            if not self._n_passes and not self._inner():
                require_semidefinite(visit.tile, visit.local, layout.rows(block), layout)
            changes = [
                problem.visit(block, visit, own) if number in active else None
                for (number, problem), own in zip(problems.items(), visit.scores, strict=True)
            ]
            scores.leave(visit, changes)
            self._block = (block + 1) % layout.n_blocks
            if not self._block:
                for number in active:
                    problems[number].end_pass()
            else:
                checkpoint.offer(f"block {self._block} of {layout.n_blocks} in {this}", self._state)
        scores.check()

    def _state(self) -> State:
        state = {"n_passes": number(self._n_passes), "block": number(self._block)}
        state |= named("scores", self._scores.state())
        for place, problem in enumerate(self._problems):
            state |= named(f"problem.{place}", problem.state())
            state[f"trace.{place}"] = np.array(problem.trace, np.float64).reshape(-1, 2)
        return state

    def _resume(self, state: State) -> None:
        self._n_passes, self._block = int(state["n_passes"]), int(state["block"])
        self._scores.resume(part_of(state, "scores"))
        for place, problem in enumerate(self._problems):
            problem.resume(part_of(state, f"problem.{place}"))
            problem.trace[:] = [Bounds(*bounds) for bounds in state[f"trace.{place}"].tolist()]


def _is_done(problem: MarginProblem) -> bool:
    if not problem.trace:
        return False
    return len(problem.trace) >= problem.stopping.passes or is_converged(problem.trace[-1], problem.stopping)


def _measure(gram: GramOperator, scores: LazyScores, problems: dict[int, MarginProblem], *, is_last: bool) -> int:
    """P and D of every problem, and how many positions or chains are inside the margin."""
    layout = gram.layout.rows
    terms: list[list[Terms]] = [[] for _ in problems]
    for block in range(layout.n_blocks):
        coming = layout.rows_after(block, AHEAD, is_last=is_last)
        local, every = scores.refresh(layout.rows(block), list(problems), coming)
        for found, problem, own in zip(terms, problems.values(), every, strict=True):
            found.append(problem.measure(block, local, own))
    for found, problem in zip(terms, problems.values(), strict=True):
        norms = np.concatenate([part.norms for part in found])
        norm = float(norms.sum())
        bounds = problem.bounds(sum(part.hinge for part in found), norm)
        if norm < -ROUNDING * np.abs(norms).sum() or bounds.gap < -ROUNDING * abs(bounds.primal):
            said = f"the weights have the squared length {norm:g}, and the dual exceeds the primal by {-bounds.gap:g}"
            raise not_semidefinite(said, int(layout.structure_starts[norms.argmin()]), layout)
        problem.trace.append(bounds)
    return sum(part.n_inside for found in terms for part in found)
