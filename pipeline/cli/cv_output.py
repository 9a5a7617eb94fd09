"""What `gramline cv` says: the plan, and the table of a finished run, best setting first."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from gramline.pipeline.cli.cv_job import Prepared
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    say,
    say_folded,
    say_next,
    say_table,
    short_path,
    size,
)
from gramline.pipeline.crossval.baselines import left_out_sentences
from gramline.pipeline.crossval.run import JobResult
from gramline.pipeline.crossval.setting_names import describe_with_files, setting_names
from gramline.pipeline.crossval.summary import by_score, chosen_words
from gramline.pipeline.crossval.validate import compare_values
from gramline.pipeline.reporting.sections import metric_name


def say_plan(ready: Prepared, plan: Mapping[str, Any]) -> None:
    """What the job will take."""
    threads = ready.file.cluster.n_threads
    say(f"{count(plan['structures'], 'structure')}, {count(plan['positions'], 'position')}")
    say(
        f"{count(plan['settings'], 'setting')} x {count(plan['folds'] + plan['inner_folds'], 'fold')} = "
        f"{count(plan['problems'], 'problem')}, {plan['solved']:,} solved before"
    )
    if plan["stores"]:
        say_table(
            ("Gram matrix", "copies", "tiles", "to compute", "new bytes", "time"),
            [
                (
                    f"kernel {store['kernel']}",
                    f"{store['copies']:,}",
                    f"{store['tiles']:,}",
                    f"{store['to_compute']:,}",
                    size(store["new_bytes"]),
                    duration(store["seconds"]),
                )
                for store in plan["stores"]
            ],
        )
        for number, kernel in enumerate(ready.job.kernels):
            say_folded(f"kernel {number}: ", describe_with_files(kernel.to_dict(), ready.settings.files))
        for store in plan["stores"]:
            if "failed" in store:
                say_folded(f"kernel {store['kernel']} fails: ", store["failed"])
    say_table(
        ("training", "problems", "passes over the tiles", "time"),
        [
            (
                row["learner"],
                f"{row['problems']:,}",
                row["passes"],
                "unknown" if row["seconds"] is None else duration(row["seconds"]),
            )
            for row in plan["training"]
        ]
        + [
            (row["name"], f"{plan['folds']:,}", "to compare with, from features", duration(row["seconds"]))
            for row in plan["baselines"]
            if row["seconds"] is not None
        ],
    )
    total = f"{size(plan['bytes'])} to write, about {duration(plan['seconds'])} of building"
    say(f"{total} on {count(threads, 'thread')} like this one")
    known = [row["seconds"] for row in (*plan["training"], *plan["baselines"]) if row["seconds"] is not None]
    if known:
        say(f"about {duration(sum(known))} of training at most, measured on a sample of the structures")
    say_folded("results go to ", ready.output)


def say_results(ready: Prepared, result: JobResult) -> None:
    """The settings with their scores, the best first; what was trained in this session; where everything is."""
    summary, metric = result.summary, ready.job.metric
    is_old = not result.new_units
    if is_old:
        tried = "only what failed was tried again" if summary["failed"] else "nothing was trained"
        say(f"this run was finished before; {tried}, these are its results")
    _say_scores(summary, metric)
    if result.nested is not None:
        say(
            f"nested selection: {metric} {result.nested.mean(metric):.4f} ± {result.nested.deviation(metric):.4f} "
            f"over {count(len(result.nested.chosen), 'outer fold')}"
        )
    if summary["folds"]["file"] is not None and summary["folds"]["held_out_again"]:
        again = count(summary["folds"]["held_out_again"], "structure")
        say_folded(
            "", f"{again} held out by more than one fold of {summary['folds']['file']}: counted once in each of them"
        )
    for unit in result.new_units:
        if unit.get("tile_reads"):
            say_folded(
                "",
                f"{unit['learner']}: {count(unit['problems'], 'problem')} solved with "
                f"{count(unit['tile_reads'], 'tile read')} of {count(unit['stored_tiles'], 'stored tile')}, "
                f"{duration(unit['seconds'])}",
            )
    for store in summary["stores"]:
        computed = "" if is_old else f"{store['computed']:,} computed, " if store["computed"] else "all reused, "
        sizes = f"{count(store['tiles'], 'tile')}, {computed}{size(store['stored_bytes'])}"
        say_folded("matrix  ", f"{short_path(store['path'])} ({sizes})")
    say_folded("results ", short_path(ready.output))
    run = short_path(ready.output)
    if ready.file.output.report:
        say_folded("report  ", f"{run}/report.html")
    say_next(*([] if ready.file.output.report else [f"gramline report {run}"]), f"gramline fit --from-run {run}")


def _in_column(name: str, mark: str = "\u00a0") -> str:
    """A name that may go on below only between words and before its parameters."""
    return f"{mark}\u00a0" + name.replace("(", " (", 1).replace("  (", " (")


def _names(summary: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What the column of settings is called, and its names: parameters alone where all are of one learner."""
    settings = [*summary["settings"], *summary["failed"]]
    names, learner = setting_names(settings, summary["files"]), settings[0]["learner"]
    if all(name.startswith(f"{learner}(") and name.endswith(")") for name in names):
        return learner, [name[len(learner) + 1 : -1] for name in names]
    return "setting", names


def _say_scores(summary: Mapping[str, Any], metric: str) -> None:
    """One row per setting, sorted; the majority label in its place among them, failed settings below."""
    title, names = _names(summary)
    columns = (metric, "f1" if metric == "accuracy" else "accuracy")

    def cells(scores: Mapping[str, Any]) -> list[str]:
        return [f"{scores[name]['mean']:.4f}\u00a0±\u00a0{scores[name]['deviation']:.4f}" for name in columns]

    rows: list[tuple[str, ...]] = []
    chosen: dict[int, str] = {}
    for number in by_score(summary):
        setting = summary["settings"][number]
        is_best, p = number == summary["best"], setting["behind_best"]["p"]
        shown = "" if p is None or is_best else f"{p:.3f}"
        chosen[len(rows)] = chosen_words(setting)
        rows.append((_in_column(names[number], "*" if is_best else "\u00a0"), *cells(setting["scores"]), shown))
    best = summary["settings"][summary["best"]]["scores"][metric]["folds"]
    known = summary["baselines"] or {"rows": [], "left_out": []}
    for row in known["rows"]:
        p = compare_values(best, row["scores"][metric]["folds"]).p
        shown = f"{p:.3f}" if isfinite(p) else ""
        rows.append((_in_column(row["name"], "="), *cells(row["scores"]), shown))
    labels = dict.fromkeys(summary["majority"]["labels"])
    rows.append((_in_column(f"majority label ({', '.join(labels)})", "="), *cells(summary["majority"]["scores"]), ""))
    failed = names[len(summary["settings"]) :]
    rows.extend((_in_column(name), "failed", "", "") for name in failed)
    titles = [metric_name(name) for name in columns]
    if any(chosen.values()):
        wide = [(*row, chosen.get(number, "")) for number, row in enumerate(rows)]
        say_table((title, *titles, "p", "chosen"), wide, texts=[len(titles) + 2])
    else:
        say_table((title, *titles, "p"), rows)
    test = "; p: paired t-test against it over the folds, two-sided" if any(row[-1] for row in rows) else ""
    say(f"*: best {metric_name(metric)}{test}")
    if known["rows"]:
        took = ", ".join(f"{row['name']} {duration(row['seconds'])}" for row in known["rows"])
        say_folded("", f"=: baselines on the same features and folds, took {took} (--no-baselines leaves them out)")
    for sentence in left_out_sentences(known):
        say_folded("", sentence)
    for reason in dict.fromkeys(setting["reason"] for setting in summary["failed"]):
        alike = [name for name, setting in zip(failed, summary["failed"], strict=True) if setting["reason"] == reason]
        say_folded("", f"failed: {', '.join(alike)}: {reason}")
    if not summary["majority"]["is_beaten"]:
        say_folded(
            "",
            "no setting is better than the majority label: try features of spelling and a window, an observation "
            "kernel that compares features, or more data",
        )
