"""Passes of dual ascent over groups of candidates for any number of problems, and the duality gap after each of them.

As `passes`, whose visits are blocks of the Gram; here they are groups, whose rows may lie in two blocks. A training can
leave its state between two batches of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Floats, Indices, Matrix
from gramline.learners.candidates.groups import training_batches
from gramline.learners.checkpoints import Checkpoint, State, named, number, part_of
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.margins.passes import ROUNDING, Bounds, Stopping, is_converged
from gramline.learners.margins.ranking_loops import Candidates, Known, Steps, group_terms, visit_groups
from gramline.learners.operators.definiteness import not_semidefinite, require_semidefinite
from gramline.learners.operators.lazy_scores import Change, LazyScores, Visit
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.orders import AHEAD
from gramline.learners.operators.packets import Scores


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive groups that are visited together."""

    part: slice  # of all candidates
    rows: Indices  # of the Gram, each once, in order
    places: Indices  # of each candidate in `rows`
    starts: Indices  # first candidate of each group, and the end, counted from that of the batch


@dataclass(eq=False)
class GroupProblem:
    """One set of groups with its dual weights; candidates stand group after group, the correct one first.

    `alpha` of a wrong candidate is a_ij; that of a correct one is what is left of C, so those of a group sum to C, or
    are all 0 where a group does not train.
    """

    rows: Indices  # of the candidates in the Gram, shape (n_candidates,)
    starts: Indices  # shape (n_groups + 1,)
    margins: Floats  # 1 - (o_i0 - o_ij); 0 of the correct ones, shape (n_candidates,)
    alpha: Floats  # shape (n_candidates,)
    C: float
    stopping: Stopping
    trace: list[Bounds] = field(default_factory=list)

    @classmethod
    def start(
        cls, candidates: Sequence[Indices], groups: Indices, offsets: Matrix, C: float, stopping: Stopping
    ) -> GroupProblem:
        """All of C on the correct candidates of some groups, hence w = 0; `offsets` (n_rows,) are added to F."""
        rows, starts = np.concatenate(candidates), offsets_from_lengths([len(own) for own in candidates])
        correct = np.repeat(offsets[rows[starts[:-1]]], np.diff(starts))
        margins, alpha = 1.0 - (correct - offsets[rows]), np.zeros(len(rows))
        margins[starts[:-1]], alpha[starts[:-1][groups]] = 0.0, C
        return cls(rows, starts, margins, alpha, C, stopping)

    @property
    def is_done(self) -> bool:
        if not self.trace:
            return False
        return len(self.trace) >= self.stopping.passes or is_converged(self.trace[-1], self.stopping)

    def visit(self, batch: Batch, visit: Visit, scores: Scores) -> Change | None:
        """Dual ascent over the groups of a batch, in order; what it changed of the weights of its rows."""
        tile = visit.tile.astype(float, copy=False)
        steps = Steps(*np.zeros((2, len(tile))))
        known = Known(scores.sums[0], scores.magnitudes)
        visit_groups(tile, self._candidates(batch, visit.local), known, steps)
        rows = np.flatnonzero(steps.sizes)
        return Change(rows, steps.change[rows, None], steps.sizes[rows]) if len(rows) else None

    def terms(self, batch: Batch, local: Indices, scores: Scores) -> Matrix:
        """Sums over the groups of a batch: of hinges, of a_ij (1 - o_i0 + o_ij) and <w, w>; and of its terms' sizes."""
        return np.array(group_terms(self._candidates(batch, local), scores.sums[0]))

    def bounds(self, hinge: float, gained: float, norm: float) -> Bounds:
        """P = |w|^2 / 2 + C sum of hinges,  D = sum_ij a_ij (1 - o_i0 + o_ij) - |w|^2 / 2."""
        return Bounds(norm / 2.0 + self.C * hinge, gained - norm / 2.0)

    def row_weights(self, n_rows: int) -> Matrix:
        """F(x) = sum_s weights[s] K(s, x), shape (n_rows,)."""
        weights, firsts = np.zeros(n_rows), self.starts[:-1]
        wrong = self.alpha.copy()
        wrong[firsts] = 0.0
        np.subtract.at(weights, self.rows, wrong)
        np.add.at(weights, self.rows[firsts], np.add.reduceat(wrong, firsts))
        return weights

    def _candidates(self, batch: Batch, local: Indices) -> Candidates:
        part = batch.part
        return Candidates(local[batch.places], batch.starts, self.margins[part], self.alpha[part])


class RankingTraining:
    """Problems over the same groups, of which each trains on some, and the scores of all rows that are in any."""

    def __init__(self, gram: GramOperator, groups: list[Indices], problems: Sequence[GroupProblem]) -> None:
        self.problems = list(problems)
        self._layout = gram.layout.rows
        starts = offsets_from_lengths([len(rows) for rows in groups])
        self._batches = [_batch(groups, numbers, starts) for numbers in training_batches(groups, self._layout)]
        self._scores = LazyScores(gram, [1] * len(self.problems))
        self._scores.limit_to([batch.rows for batch in self._batches])
        self._n_passes = 0
        self._batch = 0  # the next one; 0 between two passes

    def run(self, checkpoint: Checkpoint) -> None:
        """Passes until every problem has converged or has had all its passes, from where the checkpoint is."""
        if (begun := checkpoint.restore()) is not None:
            self._resume(begun)
        limit = max((problem.stopping.passes for problem in self.problems), default=0)
        while running := self._running():
            this = f"pass {self._n_passes + 1} of {limit}"
            # The products are thin, and more BLAS threads wait for each other longer than they compute.
            with one_blas_thread():
                self._run_pass(running, this, checkpoint)
                self._measure(running)
            self._n_passes += 1
            checkpoint.offer(this, self._state, is_last=not self._running())

    def _running(self) -> dict[int, GroupProblem]:
        return {place: problem for place, problem in enumerate(self.problems) if not problem.is_done}

    def _run_pass(self, problems: dict[int, GroupProblem], this: str, checkpoint: Checkpoint) -> None:
        """The batches of a pass that are left."""
        n_batches = len(self._batches)
        for place in range(self._batch, n_batches):
            batch = self._batches[place]
            visit = self._scores.enter(batch.rows, list(problems), self._coming(place))
            if not self._n_passes:
                require_semidefinite(visit.tile, visit.local, batch.rows, self._layout)
            pairs = zip(problems.values(), visit.scores, strict=True)
            self._scores.leave(visit, [problem.visit(batch, visit, own) for problem, own in pairs])
            self._batch = (place + 1) % n_batches
            if self._batch:
                checkpoint.offer(f"batch {self._batch} of {n_batches} in {this}", self._state)
        self._scores.check()

    def _measure(self, problems: dict[int, GroupProblem]) -> None:
        """P and D of every problem, all rows up to date."""
        totals = np.zeros((len(problems), 4))
        for place, batch in enumerate(self._batches):
            local, every = self._scores.refresh(batch.rows, list(problems), self._coming(place))
            for total, problem, own in zip(totals, problems.values(), every, strict=True):
                total += problem.terms(batch, local, own)
        for (hinge, gained, norm, size), problem in zip(totals.tolist(), problems.values(), strict=True):
            bounds = problem.bounds(hinge, gained, norm)
            if norm < -ROUNDING * size or bounds.gap < -ROUNDING * abs(bounds.primal):
                said = (
                    f"the weights have the squared length {norm:g}, and the dual exceeds the primal by {-bounds.gap:g}"
                )
                raise not_semidefinite(said, None, self._layout)
            problem.trace.append(bounds)

    def _coming(self, place: int) -> list[Indices]:
        n_batches = len(self._batches)
        return [self._batches[k % n_batches].rows for k in range(place + 1, place + min(AHEAD, n_batches - 1) + 1)]

    def _state(self) -> State:
        state = {"n_passes": number(self._n_passes), "batch": number(self._batch)}
        state |= named("scores", self._scores.state())
        for place, problem in enumerate(self.problems):
            state[f"alpha.{place}"] = problem.alpha.copy()
            state[f"trace.{place}"] = np.array(problem.trace, np.float64).reshape(-1, 2)
        return state

    def _resume(self, state: State) -> None:
        self._n_passes, self._batch = int(state["n_passes"]), int(state["batch"])
        self._scores.resume(part_of(state, "scores"))
        for place, problem in enumerate(self.problems):
            problem.alpha[:] = state[f"alpha.{place}"]
            problem.trace[:] = [Bounds(*bounds) for bounds in state[f"trace.{place}"].tolist()]


def _batch(groups: Sequence[Indices], numbers: list[int], starts: Indices) -> Batch:
    """The batch of these groups, and of lone candidates between them: they take no step, wherever they stand."""
    first, end = numbers[0], numbers[-1] + 1
    rows = np.unique(np.concatenate([groups[number] for number in numbers]))
    every = np.concatenate(groups[first:end])
    places = np.minimum(np.searchsorted(rows, every), len(rows) - 1)
    return Batch(slice(int(starts[first]), int(starts[end])), rows, places, starts[first : end + 1] - starts[first])
