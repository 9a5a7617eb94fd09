"""What a build did, gathered from its events and told in a line or two."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, size
from gramline.pipeline.cli.terminal.progress import shown
from gramline.pipeline.events import BuildFinished, BuildStarted, Event, Listener


class Tally:
    """The numbers of a build, for its last line."""

    def __init__(self) -> None:
        self._numbers: dict[str, Any] = {"computed": 0, "reused": 0, "seconds": 0.0, "tile_seconds": 0.0, "threads": 0}

    def and_then(self, listener: Listener) -> Listener:

        def heard(event: Event) -> None:
            if isinstance(event, BuildStarted):
                self._numbers |= {"reused": event.n_present, "threads": event.n_threads}
            elif isinstance(event, BuildFinished):
                self._numbers |= {
                    "computed": event.n_computed,
                    "seconds": event.seconds,
                    "tile_seconds": event.tile_seconds,
                }
            listener(event)

        return heard

    def result(self) -> dict[str, Any]:
        return dict(self._numbers)


def progress_shown(as_json: bool) -> AbstractContextManager[Listener]:
    """Bar or lines; nothing beside JSON."""

    return shown(not as_json)


def say_built(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(result)
        return
    if result["computed"] == 0:
        were = "its only tile was" if result["n_tiles"] == 1 else f"all {result['n_tiles']:,} tiles were"
        say(f"{were} there already; nothing to compute")
    else:
        reused = f", {count(result['reused'], 'tile')} reused" if result["reused"] else ""
        say(f"{count(result['computed'], 'tile')} computed in {duration(result['seconds'])}{reused}")
    say(f"{result['shape'][0]:,} x {result['shape'][1]:,} matrix, {size(result['stored_bytes'])}: {result['path']}")
