"""Which steps a job has and when they run; the work itself is scripted."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock

import pytest

from gramline.pipeline.crossval.job import Problem, Variant
from gramline.pipeline.crossval.schedule import (
    AT_A_TIME,
    Build,
    Matrix,
    Sharing,
    Step,
    Stream,
    Tasks,
    needed_by,
    run_in_order,
    run_side_by_side,
    schedule,
)

VARIANTS = (
    Variant(0, "perceptron", {"rounds": 1}),
    Variant(0, "perceptron", {"rounds": 2}),
    Variant(0, "process", {}),
    Variant(1, "perceptron", {}),
    Variant(None, "features", {}),
)
PROBLEMS = [Problem(variant, fold, f"{variant}-{fold}") for variant in range(len(VARIANTS)) for fold in range(3)]


def steps_of(counts_labels: tuple[int, ...] = (), together: int = 100) -> list[Step]:
    sharing = Sharing(counts_labels, lambda learner: learner == "perceptron", lambda _problems: together)
    return schedule(PROBLEMS, VARIANTS, sharing)


def named(step: Step) -> str:
    if isinstance(step, Build):
        return f"build {step.matrix.kernel}"
    kernel = "" if step.matrix is None else f" {step.matrix.kernel}"
    return f"{step.learner}{kernel}: {' '.join(problem.digest for problem in step.problems)}"


def test_settings_and_folds_share_a_stream() -> None:
    assert [named(step) for step in steps_of()] == [
        "features: 4-0 4-1 4-2",
        "build 0",
        "perceptron 0: 0-0 1-0 0-1 1-1 0-2 1-2",
        "process 0: 2-0 2-1 2-2",
        "build 1",
        "perceptron 1: 3-0 3-1 3-2",
    ]


def test_streams_are_cut_where_memory_ends_and_settings_of_a_fold_stay_together() -> None:
    streams = [step for step in steps_of(together=4) if isinstance(step, Stream)]
    assert [named(step) for step in streams] == [
        "perceptron 0: 0-0 1-0 0-1 1-1",
        "perceptron 0: 0-2 1-2",
        "perceptron 1: 3-0 3-1 3-2",
    ]


def test_what_is_left_of_a_job_is_cut_as_before() -> None:
    """A stream is finished whole or not at all, so the others find the states that they left."""
    streams = [step for step in steps_of(together=2) if isinstance(step, Stream)]
    finished = {problem for step in streams[1:3] for problem in step.problems}
    sharing = Sharing((), lambda learner: learner == "perceptron", lambda _problems: 2)
    left = schedule([problem for problem in PROBLEMS if problem not in finished], VARIANTS, sharing)
    assert [step for step in left if isinstance(step, Stream)] == [streams[0], *streams[3:]]


def test_a_kernel_that_counts_labels_has_a_matrix_for_every_fold() -> None:
    builds = [step.matrix for step in steps_of(counts_labels=(1,)) if isinstance(step, Build)]
    assert builds == [Matrix(0), Matrix(1, 0), Matrix(1, 1), Matrix(1, 2)]


def test_everything_stands_behind_what_it_needs() -> None:
    done: set[Step] = set()
    for step in steps_of(counts_labels=(0,)):
        assert needed_by(step) in {None, *done}
        done.add(step)


class Site:
    """Steps that take their time, and who was at work beside whom."""

    def __init__(self, seconds: float = 0.02, fails: str = "") -> None:
        self.log: list[str] = []
        self.beside: set[frozenset[str]] = set()
        self.stopped = Event()
        self._seconds, self._fails = seconds, fails
        self._running: list[str] = []
        self._lock = Lock()

    def perform(self, step: Step, pass_on: Callable[[], None]) -> None:
        name = named(step)
        with self._lock:
            self.log.append(f"+ {name}")
            self._running.append(name)
            self.beside.add(frozenset(self._running))
        if isinstance(step, Build) and step.matrix.kernel == 0:
            pass_on()
        time.sleep(self._seconds)
        with self._lock:
            self._running.remove(name)
            self.log.append(f"- {name}")
        if self._fails and name.startswith(self._fails):
            raise ZeroDivisionError(name)


def test_steps_run_beside_each_other_and_after_their_build() -> None:
    site, steps = Site(), steps_of()
    run_side_by_side(steps, site.perform, site.stopped)
    assert sorted(site.log) == sorted([f"{sign} {named(step)}" for step in steps for sign in "+-"])
    for step in steps:
        need = needed_by(step)
        assert need is None or site.log.index(f"- {named(need)}") < site.log.index(f"+ {named(step)}")
    # The second build begins early, because the first one had let it, and with it what needs no build.
    assert any({"build 0", "build 1", named(steps[0])} <= group for group in site.beside)
    assert not site.stopped.is_set()


def test_no_more_of_a_kind_than_it_may_be() -> None:
    site, steps = Site(seconds=0.005), [step for step in steps_of(together=1) if not isinstance(step, Tasks)]
    run_side_by_side(steps, site.perform, site.stopped)
    widest = max(sum(name.startswith("perceptron") for name in group) for group in site.beside)
    assert widest == AT_A_TIME[Stream]


def test_the_first_failure_ends_the_others_and_is_raised() -> None:
    site, steps = Site(fails="process"), steps_of(together=1)
    with pytest.raises(ZeroDivisionError, match="process 0"):
        run_side_by_side(steps, site.perform, site.stopped)
    assert site.stopped.is_set()
    assert len(site.log) < 2 * len(steps)
    assert site.log.count("+ build 0") == 1


def test_one_after_the_other() -> None:
    site, steps = Site(seconds=0.0), steps_of()
    run_in_order(steps, site.perform)
    assert site.log == [f"{sign} {named(step)}" for step in steps for sign in "+-"]
