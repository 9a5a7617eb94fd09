"""A cross-validation as one schedule: its steps, what each of them needs, and how they run side by side.

A kernel's matrix is built, then the streams and the tasks on it begin; what does not depend on each other runs side by
side. Knows problems by their numbers, and nothing of matrices, learners and machines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import Any

from gramline.pipeline.crossval.job import Problem, Variant

END_SECONDS = 10.0  # that steps have to come to an end when the job was stopped or has failed


@dataclass(frozen=True)
class Matrix:
    """The Gram matrix of a kernel; of a kernel that counts labels, the one of a fold."""

    kernel: int
    fold: int | None = None


@dataclass(frozen=True)
class Build:
    """Compute what a matrix lacks."""

    matrix: Matrix


@dataclass(frozen=True)
class Stream:
    """Problems of one learner that are trained in one pass over the tiles."""

    matrix: Matrix
    learner: str
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Tasks:
    """Problems of one learner, each a task of its own; without a matrix the learner reads features."""

    matrix: Matrix | None
    learner: str
    problems: tuple[Problem, ...]


Step = Build | Stream | Tasks
# So many of a kind run at a time. Builds one after the other, so that the folds of the first kernel start first; two
# streams, because each holds scores of all its problems in memory; two lists of tasks, so that one begins while the
# last tasks of the other are at work.
AT_A_TIME: Mapping[type[Step], int] = {Build: 1, Stream: 2, Tasks: 2}


@dataclass(frozen=True)
class Sharing:
    """What the steps of a job depend on."""

    counts_labels: Collection[int]  # kernels
    streams: Callable[[str], bool]  # whether problems of a learner share a pass
    fit_together: Callable[[Sequence[Problem]], int]  # how many of these problems one pass has memory for


def schedule(problems: Sequence[Problem], variants: Sequence[Variant], sharing: Sharing) -> list[Step]:
    """The steps in the order in which they are wanted; each needs the build of its matrix, which stands before it.

    Settings of one fold stay together in a stream: they share its training.
    """
    wanted: dict[tuple[Matrix | None, str], list[Problem]] = {}
    for problem in problems:
        variant = variants[problem.variant]
        matrix = None
        if variant.kernel is not None:
            matrix = Matrix(variant.kernel, problem.fold if variant.kernel in sharing.counts_labels else None)
        wanted.setdefault((matrix, variant.learner), []).append(problem)
    steps: list[Step] = []
    for (matrix, learner), mine in sorted(wanted.items(), key=lambda item: _place(*item[0])):
        if matrix is not None and Build(matrix) not in steps:
            steps.append(Build(matrix))
        if matrix is None or not sharing.streams(learner):
            steps.append(Tasks(matrix, learner, tuple(mine)))
            continue
        ordered = sorted(mine, key=lambda problem: (problem.fold, problem.variant))
        size = max(1, sharing.fit_together(ordered))
        batches = [tuple(ordered[first : first + size]) for first in range(0, len(ordered), size)]
        steps += [Stream(matrix, learner, batch) for batch in batches]
    return steps


def _place(matrix: Matrix | None, learner: str) -> tuple[int, int, str]:
    return (-1, -1, learner) if matrix is None else (matrix.kernel, -1 if matrix.fold is None else matrix.fold, learner)


def needed_by(step: Step) -> Build | None:
    """The step that has to end before this one begins."""
    return None if isinstance(step, Build) or step.matrix is None else Build(step.matrix)


Perform = Callable[[Step, Callable[[], None]], None]  # a step, and how it lets the next one of its kind begin early


def run_in_order(steps: Sequence[Step], perform: Perform) -> None:
    """One after the other, in this thread."""
    for step in steps:
        perform(step, lambda: None)


def run_side_by_side(
    steps: Sequence[Step], perform: Perform, stopped: Event, at_a_time: Mapping[type[Step], int] = AT_A_TIME
) -> None:
    """Every step in a thread of its own, as soon as what it needs is done and its kind has a place.

    The first error, or a stop of this thread, sets `stopped`; steps that run look at it, and no other one begins.
    """
    heard: SimpleQueue[tuple[Step, BaseException | None, bool]] = SimpleQueue()  # step, its error, whether it ended
    waiting, done = list(steps), set[Step]()
    running: dict[Step, Thread] = {}
    places: Counter[type[Any]] = Counter(at_a_time)
    gave_up: set[Step] = set()  # steps that run on, but have left their place to the next one

    def work(step: Step) -> None:
        error: BaseException | None = None
        try:
            perform(step, lambda: heard.put((step, None, False)))
        except BaseException as raised:  # noqa: BLE001 - the thread that waits raises it
            error = raised
        heard.put((step, error, True))

    try:
        while running or waiting:
            for step in list(waiting):
                need = needed_by(step)
                if places[type(step)] and (need is None or need in done):
                    places[type(step)] -= 1
                    waiting.remove(step)
                    running[step] = Thread(target=work, args=(step,), name=f"cv-{type(step).__name__}", daemon=True)
                    running[step].start()
            step, error, has_ended = heard.get()
            if step not in gave_up:
                gave_up.add(step)
                places[type(step)] += 1
            if has_ended:
                del running[step]
                done.add(step)
            if error is not None:
                raise error
    except BaseException:
        stopped.set()
        deadline = monotonic() + END_SECONDS
        for thread in running.values():
            thread.join(max(0.0, deadline - monotonic()))
        raise
