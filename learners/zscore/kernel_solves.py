"""Everything that kernel Z-score labelers want solved on one Gram matrix, in one stream of its tiles.

Labelers with the same labels and solver share one Krylov space. Those that choose their ridges add the same problem
with some structures hidden, fold by fold, and one product at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramline.learners.arrays import Floats, Indices
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.linear_algebra.conjugate_gradient import Solution, Solve, Status
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.linear_algebra.surviving_solves import solve_surviving
from gramline.learners.operators.operator import GramOperator
from gramline.learners.zscore.kernel_problem import KernelProblem
from gramline.learners.zscore.ridge_choice import HiddenFold, RidgeSetting, Trial, hidden_folds

Settings = tuple[RidgeSetting, ...]  # of one labeler: one for every ridge of its list
Steps = Callable[[KernelProblem, Sequence[float], SolveMemory | None], Solve]


@dataclass(eq=False)
class SharedProblem:
    """One training set and solver, and the settings of all labelers that want it solved."""

    gram: GramOperator
    problem: KernelProblem
    steps: Steps
    settings: list[Settings]

    @cached_property
    def folds(self) -> list[HiddenFold]:
        return hidden_folds(self.problem.statistics)

    @cached_property
    def _typical(self) -> float:
        return float(np.abs(self.gram.diagonal()[self.problem.rows]).mean())

    def ridges_of(self, setting: RidgeSetting) -> tuple[float, ...]:
        typical = self._typical if setting.ridge == "auto" else 0.0
        return setting.ridges(self.problem.statistics.n_labels, typical, is_fixed=not (setting.is_open and self.folds))

    def ridges(self, settings: Sequence[RidgeSetting]) -> tuple[float, ...]:
        """Every ridge that one of them may choose, growing."""
        return tuple(sorted({ridge for setting in settings for ridge in self.ridges_of(setting)}))

    @cached_property
    def all_ridges(self) -> tuple[float, ...]:
        return self.ridges([setting for settings in self.settings for setting in settings])

    @cached_property
    def trials(self) -> list[tuple[tuple[float, ...], HiddenFold]]:
        """The folds to solve, with their ridges: for each labeler the same as if it were alone."""
        tried = dict.fromkeys(self.ridges(settings) for settings in self.settings if _is_open(settings))
        return [(ridges, fold) for ridges in tried for fold in self.folds]


@dataclass(eq=False)
class SolvedProblem:
    """A problem with its solutions by ridge, and what those with hidden structures gave."""

    shared: SharedProblem
    by_ridge: dict[float, Solution]
    trials: list[tuple[tuple[float, ...], Trial]]

    def chosen(self, settings: Settings) -> list[tuple[float, float]]:
        """(ridge, transition ridge) of every setting; a solve that did not converge is chosen where there is no other.

        The folds decide, and only among more than one pair.
        """
        tried = self.shared.ridges(settings)
        own = [trial for ridges, trial in self.trials if ridges == tried] if _is_open(settings) else []
        pairs = []
        for setting in settings:
            ridges = self.shared.ridges_of(setting)
            solved = [ridge for ridge in ridges if self.by_ridge[ridge].status is Status.CONVERGED]
            pairs.append(setting.best(own, solved or ridges[-1:], self.shared.problem.statistics))
        return pairs


def solve_all(
    gram: GramOperator, problems: Sequence[SharedProblem], *, is_double: bool, checkpoint: Checkpoint = NOWHERE
) -> list[SolvedProblem]:
    """All of them solved together; every tile is read once per iteration, in single precision unless `is_double`."""
    hidden = [(shared, ridges, fold) for shared in problems for ridges, fold in shared.trials]
    n_solves = len(problems) + len(hidden)
    # A memory holds blocks of the last iteration, which otherwise are gone by now.
    memories = [] if checkpoint is NOWHERE else [SolveMemory() for _ in range(n_solves)]
    memory_of: list[SolveMemory | None] = [*memories] or [None] * n_solves
    parts: list[tuple[Indices, Solve]] = [
        (shared.problem.rows, shared.steps(shared.problem, shared.all_ridges, memory))
        for shared, memory in zip(problems, memory_of, strict=False)
    ]
    parts += [
        (shared.problem.rows[fold.visible], fold.steps(ridges, memory=memory))
        for (shared, ridges, fold), memory in zip(hidden, memory_of[len(problems) :], strict=True)
    ]

    def product(numbers: Sequence[int], blocks: Sequence[Floats]) -> list[Floats]:
        """G times every block, whose rows are those of its part; shapes (n_rows, width)."""
        ends = np.cumsum([block.shape[1] for block in blocks])
        if len(blocks) == 1 and len(blocks[0]) == gram.shape[0] and is_double:
            return [gram.matmul(blocks[0])]
        wide = np.zeros((gram.shape[0], ends[-1]), np.float64 if is_double else np.float32)
        for number, block, end in zip(numbers, blocks, ends, strict=True):
            wide[parts[number][0], end - block.shape[1] : end] = block
        return np.split(gram.matmul(wide), ends[:-1], axis=1)

    def apply_all(blocks: dict[int, Floats]) -> dict[int, Floats]:
        products = product(list(blocks), list(blocks.values()))
        return {
            number: _rows(part, parts[number][0]).astype(np.float64, copy=False)
            for number, part in zip(blocks, products, strict=True)
        }

    solutions = solve_surviving(apply_all, [solve for _, solve in parts], memories, checkpoint)
    solved = [
        SolvedProblem(shared, dict(zip(shared.all_ridges, found, strict=True)), [])
        for shared, found in zip(problems, solutions, strict=False)
    ]
    if hidden:
        numbers = range(len(problems), len(parts))
        values = [np.hstack([solution.value for solution in solutions[number]]) for number in numbers]
        for (shared, ridges, fold), scores in zip(hidden, product(numbers, values), strict=True):
            trained = scores[shared.problem.rows].astype(np.float64, copy=False)
            by_ridge = dict(zip(ridges, np.split(trained, len(ridges), axis=1), strict=True))
            solved[problems.index(shared)].trials.append((ridges, Trial(fold, by_ridge)))
    return solved


def _rows(table: Floats, rows: Indices) -> Floats:
    """Growing `rows` of a table; all of them are the table itself, not a copy as long as a corpus."""
    return table if len(rows) == len(table) else table[rows]


def _is_open(settings: Settings) -> bool:
    return any(setting.is_open for setting in settings)
