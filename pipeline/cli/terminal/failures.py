"""What an exception means to the person at the terminal: one line and an exit code.

0 done, 1 failed, 2 wrong usage or bad input, 130 Ctrl-C, 143 SIGTERM. Only an internal error has a traceback.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TextIO

import click

from gramline.kernels.errors import KernelError, KernelWarning
from gramline.learners.errors import LearnerError
from gramline.pipeline.cli.terminal.stopping import BEGINS_AGAIN, Terminated
from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.files import ADVICE, system_reason

FAILED, REFUSED, STOPPED, TERMINATED = 1, 2, 130, 143
HELP_WANTED = getattr(click.exceptions, "NoArgsIsHelpError", ())  # since click 8.2; before, click shows it by itself


@dataclass(frozen=True)
class Failure:
    """A line for stderr and an exit code."""

    line: str
    code: int


def to_failure(error: BaseException) -> Failure | None:
    """What to say about an error; None when it is none that the program foresees."""
    if isinstance(error, click.exceptions.Exit):
        return Failure("", error.exit_code)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        left = error.args[0] if error.args else BEGINS_AGAIN
        return Failure(f"stopped; {left}", TERMINATED if isinstance(error, Terminated) else STOPPED)
    if isinstance(error, click.ClickException):
        if isinstance(error, HELP_WANTED):
            error.show()  # a group without a command: its help page is the answer
            return Failure("", REFUSED)
        hint = ""
        if isinstance(error, click.UsageError) and error.ctx is not None:
            hint = f"{error.ctx.command_path} --help"
        problem = _one_line(error.format_message()).rstrip(".")
        join = " See" if problem.endswith("?") else "; see"
        return Failure(f"{problem}{join} {hint}" if hint else problem, REFUSED)

    if isinstance(error, InputError | KernelError | LearnerError):
        return Failure(_one_line(error.on_command_line()), REFUSED)
    if isinstance(error, OSError):
        return Failure(_system(error), REFUSED if error.errno in ADVICE else FAILED)
    if isinstance(error, RunError):
        refused = any(isinstance(cause, InputError | KernelError | LearnerError) for cause in _causes(error))
        full = any(isinstance(cause, OSError) and cause.errno in ADVICE for cause in _causes(error))
        return Failure(_one_line(error.on_command_line()), REFUSED if refused or full else FAILED)
    return None


def say_warnings_as_notes() -> None:
    """From now on what Python warns of a kernel is a note like any other; other warnings stay as they are."""
    others = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, KernelWarning):
            click.echo(f"note: {message}", err=True)
        else:
            others(message, category, filename, lineno, file, line)

    warnings.showwarning = show


def _system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    advice = ADVICE.get(error.errno or 0)
    what = system_reason(error) or type(error).__name__.lower()
    return _one_line(f"{where}{what}" + (f"; {advice}" if advice else ""))


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause = error.__cause__
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _one_line(text: str) -> str:
    return " ".join(text.split())
