"""When a checkpoint is written, what it costs, and which ones are not used; time is scripted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, corpus

from gramline.learners import DenseGram, GaussianProcessLabeler, HiddenMarkovPerceptron, LabelingPerceptron
from gramline.learners.checkpoints import State
from gramline.learners.errors import LearnerParameterError
from gramline.pipeline import KernelLabeler, build_gram
from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.events import Message
from gramline.pipeline.models import checkpoint as module
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, TrainingPaused, identity_of

IDENTITY = {"version": "1", "learner": {"name": "x", "rounds": 3}, "matrix": {"numbers": "abc"}, "labels": "def"}


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A checkpoint in a folder of its own, its clock and what it said."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.clock, self.said, self.told = Clock(), list[str](), list[str]()
        self.kept = TrainingCheckpoint(folder / "model.zarr", clock=self.clock, warn=self.said.append, **options)
        self.path = Path(self.kept.path)
        self.kept.begin(IDENTITY, lambda event: self.told.append(event.text if isinstance(event, Message) else ""))

    def offer(self, number: int, *, cost: float = 0.0, is_last: bool = False) -> None:
        def state() -> State:
            self.clock.now += cost
            return {"number": np.array(number)}

        self.kept.offer(f"round {number}", state, is_last=is_last)

    def number(self) -> int | None:
        """What another training would begin with."""
        again = Bench(self.path.parent)
        state = again.kept.restore()
        return None if state is None else int(state["number"])


def test_a_short_training_writes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with bench.kept.kept():
        for number in range(9):
            bench.clock.now += 1
            bench.offer(number, is_last=number == 8)
    assert list(tmp_path.iterdir()) == []


def test_it_is_written_every_so_often_and_removed_at_the_end(tmp_path: Path) -> None:
    bench = Bench(tmp_path, every=60.0)
    with bench.kept.kept():
        found = []
        for number in range(8):
            bench.clock.now += 20
            bench.offer(number)
            found.append(bench.number())
        assert found == [None, None, 2, 2, 2, 5, 5, 5]
    assert list(tmp_path.iterdir()) == []


def test_it_takes_at_most_two_percent_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, every=5.0)
    spent: list[float] = []

    def slow(*_arguments: Any) -> None:
        spent.append(3.0)
        bench.clock.now += 3.0

    monkeypatch.setattr(module, "write_array_file", slow)
    begin = bench.clock.now
    for number in range(20000):
        bench.clock.now += 0.1
        before = bench.clock.now
        bench.offer(number, cost=0.2)
        spent.append(bench.clock.now - before - (3.0 if spent and spent[-1] == 3.0 else 0.0))
    assert sum(spent) > 0
    assert sum(spent) <= 0.02 * (bench.clock.now - begin)


def test_a_stop_between_two_checkpoints_leaves_the_last_round(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.clock.now += 30
    bench.offer(3)
    with pytest.raises(KeyboardInterrupt) as stop, bench.kept.kept():
        raise KeyboardInterrupt
    assert stop.value.args == ("no model was written, but round 3 is kept; the same command goes on from there",)
    assert bench.number() == 3


def test_a_failure_of_the_machine_leaves_it_as_well(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.clock.now += 30
    bench.offer(3)
    with pytest.raises(RunError), bench.kept.kept():
        raise RunError("the store did not answer")
    assert bench.number() == 3


def test_time_to_stop(tmp_path: Path) -> None:
    bench = Bench(tmp_path, stop_after=100.0)
    bench.clock.now += 5
    bench.offer(1)
    bench.clock.now += 99
    with pytest.raises(TrainingPaused) as pause, bench.kept.kept():
        bench.offer(2)
    assert (pause.value.after, pause.value.path) == ("round 2", str(bench.path))
    assert bench.number() == 2


def test_a_training_that_has_ended_is_not_stopped_but_what_follows_is(tmp_path: Path) -> None:
    bench = Bench(tmp_path, stop_after=100.0)
    bench.clock.now += 200
    bench.offer(3, is_last=True)
    with pytest.raises(TrainingPaused):
        bench.kept.settle()
    assert bench.number() == 3


def test_going_on_is_told(tmp_path: Path) -> None:
    bench = Bench(tmp_path, every=0.0)
    bench.offer(7)
    again = Bench(tmp_path)
    assert again.kept.restore() is not None
    (line,) = again.told
    assert line.startswith("going on after round 7 (checkpoint of ")
    assert again.said == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": "0"}, "it is of gramline 0, and this is 1"),
        ({"learner": {"name": "x", "rounds": 5}}, "it is of x with other parameters (rounds is 5 instead of 3)"),
        ({"learner": {"name": "y"}}, "it is of another learner"),
        ({"matrix": {"numbers": "xyz"}}, "it is of another Gram matrix: another corpus or kernel, or other blocks"),
        ({"labels": "xyz"}, "it is of other labels"),
    ],
)
def test_that_of_another_training_is_not_used(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    bench = Bench(tmp_path, every=0.0)
    bench.kept.begin(IDENTITY | change)
    bench.offer(1)
    again = Bench(tmp_path)
    assert again.kept.restore() is None
    assert again.said == [f"{bench.path} is not used and will be replaced: {reason}"]
    assert again.told == []


def damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def foreign(path: Path) -> None:
    path.write_text("something else\n" * 9)


@pytest.mark.parametrize("harm", [damaged, truncated, foreign], ids=lambda harm: harm.__name__)
def test_a_damaged_one_is_not_used(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    bench = Bench(tmp_path, every=0.0)
    bench.offer(1)
    harm(bench.path)
    again = Bench(tmp_path)
    assert again.kept.restore() is None
    (sentence,) = again.said
    assert sentence.startswith(f"{bench.path} is not used and will be replaced: it is damaged, ")


def test_a_training_goes_on_when_no_checkpoint_can_be_written(tmp_path: Path) -> None:
    bench = Bench(tmp_path, every=0.0)
    bench.path.mkdir()
    for number in range(3):
        bench.offer(number)
    assert len(bench.said) == 1
    assert bench.said[0].startswith("no checkpoint was written: ")


def test_nothing_is_kept_beside_a_model_in_memory() -> None:
    kept = TrainingCheckpoint("memory://model", every=0.0)
    kept.begin(IDENTITY)
    kept.offer("round 1", lambda: pytest.fail("nobody asks for a state"))
    assert kept.restore() is None


def test_what_makes_a_training_the_same(tmp_path: Path) -> None:
    some = corpus(12)
    learner = LabelingPerceptron(rounds=3)
    dense = DenseGram.of(KERNEL, some.packed())
    other_blocks = DenseGram.of(KERNEL, some.packed(), block_rows=7)
    stored = build_gram(KERNEL, some, tmp_path / "x.zarr")
    every = [
        identity_of(learner, dense, some.labels, KERNEL, some),
        identity_of(learner, other_blocks, some.labels, KERNEL, some),
        identity_of(LabelingPerceptron(rounds=4), dense, some.labels, KERNEL, some),
        identity_of(learner, dense, [[None] * len(part) for part in some.labels], KERNEL, some),
        identity_of(learner, dense, some.labels, KERNEL, corpus(12, seed=1)),
        identity_of(learner, stored, some.labels),
    ]
    assert every[0] == identity_of(learner, dense, some.labels, KERNEL, some)
    assert all(one != another for place, one in enumerate(every) for another in every[:place])
    with pytest.raises(InputError, match="needs a stored Gram matrix"):
        identity_of(learner, dense, some.labels)


class Stopping(TrainingCheckpoint):
    """Ctrl-C at an offer."""

    stop_at = 3

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        super().offer(after, state, is_last=is_last)
        self.stop_at -= 1
        if not self.stop_at:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    "learner",
    [
        LabelingPerceptron(rounds=5),
        HiddenMarkovPerceptron(rounds=5, dual=True),
        GaussianProcessLabeler(tolerance=1e-12),
    ],
    ids=lambda learner: learner.name,
)
def test_a_labeler_of_python_goes_on(tmp_path: Path, learner: Any) -> None:
    some = corpus(20)
    undisturbed = KernelLabeler(KERNEL, learner, block_rows=9).fit(some).model_.learner.to_state()
    labeler = KernelLabeler(KERNEL, learner, block_rows=9)
    with pytest.raises(KeyboardInterrupt):
        labeler.fit(some, checkpoint=Stopping(tmp_path / "model.zarr", every=0.0))
    assert [path.name for path in tmp_path.iterdir()] == ["model.zarr.checkpoint"]
    labeler.fit(some, checkpoint=TrainingCheckpoint(tmp_path / "model.zarr"))
    attributes, arrays = labeler.model_.learner.to_state()
    assert attributes == undisturbed[0]
    assert {name: array.tobytes() for name, array in arrays.items()} == {
        name: array.tobytes() for name, array in undisturbed[1].items()
    }
    assert list(tmp_path.iterdir()) == []


def test_a_learner_that_trains_in_one_go_takes_none(tmp_path: Path) -> None:
    with pytest.raises(LearnerParameterError, match="HiddenMarkovPerceptron trains in one go"):
        KernelLabeler(learner=HiddenMarkovPerceptron()).fit(corpus(9), checkpoint=TrainingCheckpoint(tmp_path / "m"))
