"""`--checkpoint-every` and `--stop-after`: a training that is stopped, and the same command that goes on with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from gramline.learners.estimator import Learner
from gramline.pipeline.cli.terminal.notation import in_seconds
from gramline.pipeline.cli.terminal.output import say, say_json, say_notes, short_path
from gramline.pipeline.crossval.running import Survival
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.strays import sweep_partial
from gramline.pipeline.models.checkpoint import EVERY, TrainingCheckpoint, TrainingPaused

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class CheckpointOptions:
    """What was asked for, in seconds; None where nothing was."""

    every: float | None = None
    stop_after: float | None = None

    def checkpoint(self, target: str) -> TrainingCheckpoint:
        """That of the training whose model goes to `target`; the time to stop counts from now on."""
        sweep_partial(target)
        every = EVERY if self.every is None else self.every
        return TrainingCheckpoint(target, every=every, stop_after=self.stop_after, warn=lambda text: say_notes([text]))

    def survival(self, learners: Sequence[Learner]) -> Survival:
        """Of a job that trains these learners; the time to stop counts from now on."""
        if self.every is not None and not any(learner.resumes for learner in learners):
            name = learners[0].name
            raise InputError(f"--checkpoint-every has no effect with {name}, which trains in one go; leave it out")
        return Survival(
            every=EVERY if self.every is None else self.every,
            stop_at=None if self.stop_after is None else time.time() + self.stop_after,
            warn=lambda text: say_notes([text]),
        )

    def require_none(self, why: str) -> None:
        """Refuse the options where nothing is trained."""
        for option, value in (("--checkpoint-every", self.every), ("--stop-after", self.stop_after)):
            if value is not None:
                raise InputError(f"{option} has no effect {why}; leave it out")

    def require_suited(self, learner: Learner) -> None:
        """Refuse options that have no effect on this learner."""
        for option, value in (("--checkpoint-every", self.every), ("--stop-after", self.stop_after)):
            if value is not None and not learner.resumes:
                raise InputError(f"{option} has no effect with {learner.name}, which trains in one go; leave it out")


def checkpoint_options(command: F) -> F:
    """Adds both options, passed as `stops`, and says how to go on when the time to stop has come."""

    @wraps(command)
    def stopping(*, checkpoint_every: float | None, stop_after: float | None, **arguments: Any) -> Any:
        try:
            return command(stops=CheckpointOptions(checkpoint_every, stop_after), **arguments)
        except TrainingPaused as pause:
            if arguments["as_json"]:
                say_json({"stopped": True, "after": pause.after, "checkpoint": pause.path})
            else:
                say(f"stopped after {pause.after}, kept as {short_path(pause.path)}")
                say("next    the same command goes on from there")

    every = click.option(
        "--checkpoint-every",
        callback=in_seconds,
        metavar="TIME",
        help="Keep the state of a long training [default: 60s]; the same command goes on from it.",
    )
    after = click.option(
        "--stop-after",
        callback=in_seconds,
        metavar="TIME",
        help="Stop such as after 3h, where the training can go on, and keep its state.",
    )
    return every(after(cast(F, stopping)))
