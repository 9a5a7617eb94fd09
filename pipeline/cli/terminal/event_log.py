"""What happens in a command, told in full: as JSON lines in a file (`--events`), as lines with times on stderr (`-v`).

Every line has a time and the name of the event; the other fields are those of `gramline.pipeline.events`. A command
begins with "start" and ends with "done", "failed" or "stopped".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import IO, Any, TypeVar, cast

import click

from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.errors import first_line
from gramline.pipeline.events import Event, Listener
from gramline.pipeline.files import require_no_folder

F = TypeVar("F", bound=Callable[..., Any])


def event_fields(event: Event) -> dict[str, Any]:
    """The fields of an event as plain values, side by side."""
    fields = asdict(event)
    report: dict[str, Any] = fields.pop("report", {})
    return report | fields


class EventLog:
    """JSON lines in a file, each written at once; from any thread."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._one_at_a_time = file, Lock()

    def __call__(self, event: Event) -> None:
        self.write(event.event, event_fields(event))

    def write(self, name: str, fields: dict[str, Any]) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._one_at_a_time:
            self._file.write(json.dumps({"time": time, "event": name, **fields}, ensure_ascii=False) + "\n")
            self._file.flush()


@contextmanager
def event_log(path: str, command: str) -> Iterator[EventLog]:
    """A log at `path`, behind what is there already: a command that goes on where it was has one log."""
    require_no_folder(path)
    with Path(path).open("a", encoding="utf-8") as file:
        log, begin = EventLog(file), perf_counter()
        log.write("start", {"command": command})
        try:
            yield log
        except KeyboardInterrupt:
            log.write("stopped", {"seconds": perf_counter() - begin})
            raise
        except BaseException as error:
            log.write("failed", {"error": first_line(error), "seconds": perf_counter() - begin})
            raise
        log.write("done", {"seconds": perf_counter() - begin})


def say_event(event: Event) -> None:
    """One line on stderr: time, name and fields."""
    fields = {name: value for name, value in event_fields(event).items() if value not in (None, "")}
    shown = (f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in fields.items())
    click.echo(f"{datetime.now():%H:%M:%S} {event.event}: {' '.join(shown)}", err=True)


@dataclass(frozen=True)
class Telling:
    """Who hears what a command does, besides the person at the terminal."""

    log: EventLog | None = None
    is_verbose: bool = False

    @contextmanager
    def show(self, as_json: bool) -> Iterator[Listener]:
        """The listener of a command: a bar or lines now and then, or every event with -v; nothing of it with --json."""
        with show_progress(not as_json and not self.is_verbose) as progress:
            listeners: list[Listener] = [progress]
            if self.is_verbose:
                listeners.append(say_event)
            if self.log is not None:
                listeners.append(self.log)

            def tell(event: Event) -> None:
                for listener in listeners:
                    listener(event)

            yield tell


def telling_options(command: F) -> F:
    """Adds `--events` and `--verbose`, and hands the command a `telling`."""

    @wraps(command)
    def told(*, events: str | None, verbose: bool, **arguments: Any) -> Any:
        with ExitStack() as stack:
            path = click.get_current_context().command_path
            log = None if events is None else stack.enter_context(event_log(events, path))
            return command(telling=Telling(log, verbose), **arguments)

    to_file = click.option("--events", metavar="FILE", help="Append what happens to FILE: JSON lines with times.")
    verbose = click.option("-v", "--verbose", is_flag=True, help="Every event as a line with its time, on stderr.")
    return to_file(verbose(cast(F, told)))
