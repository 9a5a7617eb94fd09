"""Passes of dual ascent over one Gram for any number of problems, and the duality gap after each of them.

A pass visits every block once; a visit changes dual weights of the rows of the block and makes the dual D larger. After
a pass all rows are brought up to date and P and D are measured at one and the same weights: P - D bounds what is left.
Problems never see each other; they only share the tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from gramline.learners.arrays import Indices, Matrix
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

    def visit(self, block: int, visit: Visit, scores: Scores) -> Change | None:
        """Dual ascent over the rows of a block, in order; what it changed of their weights."""

    def measure(self, block: int, local: Indices, scores: Scores) -> Terms:
        """What a block adds to P and D, from scores that are up to date."""

    def bounds(self, hinge: float, norm: float) -> Bounds:
        """P and D from the sum of all hinges and <A, S>."""


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


def train(gram: GramOperator, problems: Sequence[MarginProblem], progress: RoundProgress | None) -> None:
    """Passes over the tiles until every problem has converged or has had all its passes.

    `progress` is called after every pass with its number, from 1, and how many are inside the margin in all problems.
    """
    scores = LazyScores(gram, [problem.n_labels for problem in problems])
    running, n_passes = list(range(len(problems))), 0
    while running:
        still = {number: problems[number] for number in running}
        # The products are thin, and more BLAS threads wait for each other longer than they compute.
        with one_blas_thread():
            _run_pass(gram, scores, still, is_first=n_passes == 0)
            n_inside = _measure(gram, scores, still)
        n_passes += 1
        if progress is not None:
            progress(n_passes, n_inside)
        running = [number for number, problem in still.items() if not _is_done(problem)]


def _is_done(problem: MarginProblem) -> bool:
    return len(problem.trace) >= problem.stopping.passes or is_converged(problem.trace[-1], problem.stopping)


def _run_pass(gram: GramOperator, scores: LazyScores, problems: dict[int, MarginProblem], *, is_first: bool) -> None:
    layout = gram.layout.rows
    for block in range(layout.n_blocks):
        visit = scores.enter(layout.rows(block), list(problems), layout.rows_after(block, AHEAD))
        if is_first:
            require_semidefinite(visit.tile, visit.local, layout.rows(block), layout)
        changes = [
            problem.visit(block, visit, own) for problem, own in zip(problems.values(), visit.scores, strict=True)
        ]
        scores.leave(visit, changes)
    scores.check()


def _measure(gram: GramOperator, scores: LazyScores, problems: dict[int, MarginProblem]) -> int:
    """P and D of every problem, and how many positions or chains are inside the margin."""
    layout = gram.layout.rows
    terms: list[list[Terms]] = [[] for _ in problems]
    for block in range(layout.n_blocks):
        local, every = scores.refresh(layout.rows(block), list(problems), layout.rows_after(block, AHEAD))
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
