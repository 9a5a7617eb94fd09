"""What a build did, gathered from its events and said in a line or two."""

from __future__ import annotations

from typing import Any

from gramline.kernels.catalogue import describe
from gramline.pipeline.cli.terminal.output import count, duration, say, say_json, short_path, size
from gramline.pipeline.events import BuildFinished, BuildPlanned, BuildStarted, Event, Listener
from gramline.pipeline.gram.status import GramStatus
from gramline.pipeline.gram.verify import VerifyReport


class Tally:
    """The numbers of a build, for its last line."""

    def __init__(self) -> None:
        self._numbers: dict[str, Any] = {"computed": 0, "reused": 0, "seconds": 0.0, "tile_seconds": 0.0, "threads": 0}
        self._numbers["planned_seconds"] = None

    def and_then(self, listener: Listener) -> Listener:
        def hear(event: Event) -> None:
            if isinstance(event, BuildStarted):
                self._numbers |= {"reused": event.n_present, "threads": event.n_threads}
            elif isinstance(event, BuildPlanned):
                self._numbers["planned_seconds"] = event.seconds
            elif isinstance(event, BuildFinished):
                self._numbers |= {
                    "computed": event.n_computed,
                    "seconds": event.seconds,
                    "tile_seconds": event.tile_seconds,
                }
            listener(event)

        return hear

    def result(self) -> dict[str, Any]:
        return dict(self._numbers)


def status_pairs(status: GramStatus) -> dict[str, str]:
    """What a store of a Gram matrix holds, for `say_pairs`."""
    form = "symmetric" if status.is_symmetric else "between two corpora"
    return {
        "matrix": f"{status.shape[0]:,} x {status.shape[1]:,}, {form}",
        "structures": " x ".join(f"{number:,}" for number in dict.fromkeys(status.n_structures)),
        "tiles": _tiles_said(status),
        "stored": f"{size(status.stored_bytes)}, {status.dtype}, compression {status.compression}",
        "kernel": describe(status.kernel),
    }


def _tiles_said(status: GramStatus) -> str:
    left_out = f"; {status.n_left_out:,} are computed when asked for" if status.n_left_out else ""
    if not status.n_tiles:
        return f"none kept{left_out}, {status.block_rows:,} rows each"
    return f"{status.n_present:,} of {status.n_tiles:,} done, {status.block_rows:,} rows each{left_out}"


def say_verified(name: str, report: VerifyReport | None) -> None:
    """What a check of all tiles has shown: one line for a good or an unreadable store, else one per bad tile."""
    if report is None:
        say(f"{name}: the store cannot be opened")
        return
    if not report.is_good:
        for check in report.bad:
            say(f"{name}: tile ({check.i}, {check.j}): {check.problem}")
        return
    repaired = f", {count(report.n_repaired, 'tile')} computed again" if report.n_repaired else ""
    good = "its only tile is" if report.n_tiles == 1 else f"all {report.n_tiles:,} tiles are"
    if not report.n_tiles:
        good = "it keeps no tiles, and its corpus is"
    swept = f", {count(report.n_strays, 'leftover')} of killed writers removed" if report.n_strays else ""
    say(f"{name}: {good} good{repaired}{swept}")


def say_built(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        say_json(result)
        return
    if not result["n_tiles"]:
        say("no tile is stored: all are computed when they are asked for")
    elif result["computed"] == 0:
        were = "its only tile was" if result["n_tiles"] == 1 else f"all {result['n_tiles']:,} tiles were"
        say(f"{were} there already; nothing to compute")
    else:
        reused = f", {count(result['reused'], 'tile')} reused" if result["reused"] else ""
        planned = result["planned_seconds"]
        beside = "" if planned is None else f" (planned {duration(planned)}, took {duration(result['seconds'])})"
        say(f"{count(result['computed'], 'tile')} computed in {duration(result['seconds'])}{reused}{beside}")
    shape, path = result["shape"], short_path(result["path"])
    say(f"{shape[0]:,} x {shape[1]:,} matrix, {size(result['stored_bytes'])}: {path}")
