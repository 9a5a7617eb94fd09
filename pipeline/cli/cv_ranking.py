"""What `gramline cv` says of rankers: a table of settings, best first, with the first and the best candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from gramline.learners.candidates.log_probability import below_first
from gramline.pipeline.cli.cv_job import Prepared
from gramline.pipeline.cli.terminal.bill import Bill
from gramline.pipeline.cli.terminal.failures import FAILED
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    say,
    say_folded,
    say_json,
    say_next,
    say_notes,
    say_table,
    short_path,
)
from gramline.pipeline.crossval.setting_names import setting_names
from gramline.pipeline.crossval.validate import compare_values


def say_rankers(ready: Prepared, summary: Mapping[str, Any], bill: Bill, as_json: bool) -> None:
    """The results of a run of rankers; exit code 1 where a setting failed."""
    total = summary["problems"]["total"]
    say_notes(f"in {n:,} of {count(total, 'problem')}: {note}" for note, n in summary["notes"].items())
    best, first = summary["settings"][summary["best"]]["scores"]["score"], summary["first"]["score"]
    if best["mean"] < first["mean"]:
        advice = "try log_probability=auto, "
        say_notes([below_first(best["mean"], first["mean"], "held-out groups by the best setting", advice)])
    if as_json:
        say_json({**summary, "run": ready.output} | bill.result())
    else:
        _say_table(summary)
        for store in summary["stores"]:
            say_folded("matrix  ", f"{short_path(store['path'])} ({count(store['tiles'], 'tile')})")
        say_folded("results ", short_path(ready.output))
        say_next(f"gramline fit --from-run {short_path(ready.output)} -o RANKER")
        bill.say()
    if summary["failed"]:
        raise click.exceptions.Exit(FAILED)


def _say_table(summary: Mapping[str, Any]) -> None:
    n_folds = len(summary["folds"]["held_out"])
    say(f"{count(summary['groups'], 'group')}, {count(summary['structures'], 'candidate')}, {count(n_folds, 'fold')}")
    if summary["problems"]["total"] == summary["problems"]["solved_before"]:
        say("this run was finished before; nothing was trained, these are its results")
    names = setting_names([*summary["settings"], *summary["failed"]], summary["files"])
    order = sorted(range(len(summary["settings"])), key=lambda k: -summary["settings"][k]["scores"]["score"]["mean"])
    best = summary["settings"][summary["best"]]["scores"]["score"]["folds"]
    rows = []
    for number in order:
        setting, is_best = summary["settings"][number], number == summary["best"]
        scores = setting["scores"]
        cells = (_cell(scores["score"]), _cell(scores["best_chosen"]))
        rows.append(
            (
                _in_column(names[number], "*" if is_best else "\u00a0"),
                *cells,
                _p(None if is_best else setting["behind_best"]["p"]),
            )
        )
    against = compare_values(best, summary["first"]["score"]["folds"]).p
    rows.append((_in_column("first candidates", "="), _cell(summary["first"]["score"]), "", _p(against)))
    rows.append((_in_column("best candidates", "="), _cell(summary["oracle"]["score"]), "", ""))
    rows.extend((_in_column(name), "failed", "", "") for name in names[len(summary["settings"]) :])
    say_table(("setting", "score", "best chosen", "p"), rows)
    say(f"*: best score; p: paired t-test against it over the folds; took {duration(summary['seconds'])}")
    for setting in summary["failed"]:
        say_folded("", f"failed: {setting['reason']}")


def _in_column(name: str, mark: str = "\u00a0") -> str:
    return f"{mark}\u00a0{name.replace('(', ' (', 1)}"


def _cell(values: Mapping[str, Any]) -> str:
    return f"{values['mean']:.4f}\u00a0±\u00a0{values['deviation']:.4f}"


def _p(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3f}"
