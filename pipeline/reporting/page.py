"""What a report shows, put into words, numbers and drawings: sections in the order a reader asks for them.

Pages come from the templates beside this module; what comes from data is escaped, nothing outside the page is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from gramline.pipeline.events import TileReport
from gramline.pipeline.reporting.charts import calibration, curves, histogram, spread
from gramline.pipeline.reporting.content import Report, calibration_error
from gramline.pipeline.reporting.heatmap import heatmap

CURVES_SHOWN = 8
LABELS_SHOWN = 20
SENTENCES_SHOWN = 12
METRIC_NAMES = {"accuracy": "accuracy", "f1": "F1", "span_f1": "span F1", "exact_match": "exact"}
TRACES = {"mistakes": ("round", "mistakes in training"), "bound": ("sweep", "variational bound")}

SECTIONS = {  # headings in the order a reader asks for them
    "settings": "Settings",
    "nested": "Nested selection",
    "curves": "Learning curves",
    "confusion": "Confusion matrix",
    "sentences": "Worst sentences",
    "calibration": "Calibration",
    "gram": "Gram matrix",
    "tiles": "Tiles",
    "repeat": "To repeat this",
}


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("gramline.pipeline.reporting"),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(template: str, **content: Any) -> str:
    """A whole page; every page of HTML has a `title`, a `subtitle` and `sections`, headings by the names of links."""
    return _environment().get_template(template).render(**content)


def page(report: Report) -> str:
    """The whole page; opens from a file, loads nothing."""
    content = {
        "settings": _settings(report),
        "nested": _nested(report),
        "curves": _curves(report),
        "confusion": _confusion(report),
        "sentences": sorted(report.sentences, key=lambda sentence: -sentence.n_wrong)[:SENTENCES_SHOWN],
        "calibration": _calibration(report),
        "gram": None if report.gram is None else heatmap(report.gram),
        "tiles": _tiles(report),
        "repeat": True,
    }
    return render(
        "report.html",
        title=report.title,
        subtitle=report.subtitle,
        sections={name: heading for name, heading in SECTIONS.items() if content[name]},
        report=report,
        best=report.settings[report.best].name,
        **content,
    )


def _settings(report: Report) -> dict[str, Any]:
    metric = report.metric
    columns = {metric: METRIC_NAMES.get(metric, metric)} | METRIC_NAMES
    shown = [*report.settings, *([] if report.majority is None else [report.majority])]
    values = [value for row in shown for value in row.scores[metric]]
    low, high = min(values), max(values)
    sign = 1 if metric == "hamming_loss" else -1
    order = sorted(range(len(report.settings)), key=lambda k: (sign * np.mean(report.settings[k].scores[metric]), k))
    # Of equal means the best is the one that the run says it is.
    order.sort(key=lambda k: k != report.best)
    rows = []
    for number in order:
        row = report.settings[number]
        name = f"★ {row.name}" if number == report.best else row.name
        cells: list[Any] = [name, *(_mean(row.scores[key]) for key in columns)]
        cells.append(spread(row.scores[metric], low, high))
        cells.append("" if number == report.best or row.p is None else f"{row.p:.3f}")
        rows.append(cells)
    if report.majority is not None:
        row = report.majority
        rows.append([row.name, *(_mean(row.scores[key]) for key in columns), spread(row.scores[metric], low, high), ""])
    header = ["setting", *columns.values(), f"{columns[metric]}: {report.fold_word}s from {low:.3f} to {high:.3f}", "p"]
    n_folds = len(report.settings[0].scores[metric])
    note = (
        f"Mean and standard deviation over {n_folds} {report.fold_word}s; ★ has the best {columns[metric]}. "
        "p: paired t-test against it, two-sided."
    )
    if n_folds == 1:
        header, rows = header[:-2], [cells[:-2] for cells in rows]
        note = f"Scores on one {report.fold_word}; ★ has the best {columns[metric]}."
    kernels = list(dict.fromkeys(row.kernel for row in report.settings if row.kernel))
    return {"header": header, "rows": rows, "note": note, "kernels": kernels}


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f}\u00a0±\u00a0{np.std(values, ddof=1):.4f}"


def _nested(report: Report) -> dict[str, Any] | None:
    metric, nested = report.metric, report.nested
    if nested is None:
        return None
    mean, deviation = nested["mean"][metric], nested["deviation"][metric]
    folds = zip(nested["chosen"], nested["inner"], nested["outer"][metric], strict=True)
    return {
        "score": f"{METRIC_NAMES.get(metric, metric)} {mean:.4f} ± {deviation:.4f}",
        "rows": [
            (f"fold {fold}", report.settings[chosen].name, f"{inner:.4f}", f"{outer:.4f}")
            for fold, (chosen, inner, outer) in enumerate(folds)
        ],
    }


def _curves(report: Report) -> list[tuple[Markup, str]]:
    best = report.settings[report.best].name
    drawings = []
    for trace, lines in report.curves.items():
        x_title, y_title = TRACES.get(trace, ("step", trace))
        names = sorted(lines, key=lambda name: name != best)[:CURVES_SHOWN]
        drawing = curves({name: lines[name] for name in names}, x_title=x_title, y_title=y_title, marked=best)
        rest = f" {len(lines) - len(names)} more settings are not drawn." if len(lines) > len(names) else ""
        drawings.append((drawing, f"Per {x_title}, mean over the {report.fold_word}s.{rest}"))
    return drawings


def _confusion(report: Report) -> dict[str, Any] | None:
    if report.confusion is None:
        return None
    labels, counts = list(report.labels), report.confusion
    if len(labels) > LABELS_SHOWN:
        weight = counts.sum(axis=1) + counts.sum(axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[: LABELS_SHOWN - 1])
        rest = np.setdiff1d(np.arange(len(labels)), kept)
        folded = np.concatenate([counts[kept], counts[rest].sum(axis=0, keepdims=True)])
        counts = np.concatenate([folded[:, kept], folded[:, rest].sum(axis=1, keepdims=True)], axis=1)
        labels = [*(labels[k] for k in kept), f"{len(rest)} others"]
    rows = []
    for k, label in enumerate(labels):
        total = max(1, int(counts[k].sum()))
        cells = []
        for other, count in enumerate(counts[k].tolist()):
            share = count / total
            colour = "22, 96, 168" if k == other else "179, 38, 30"
            ink = "#fff" if share > 0.55 else "inherit"
            style = f"background:rgba({colour},{share:.2f});color:{ink}" if count else "color:#b8c2cc"
            title = f"{label} read as {labels[other]}: {share:.1%}"
            cells.append({"count": f"{count:,}", "style": style, "title": title})
        rows.append((label, cells))
    return {"labels": labels, "rows": rows}


def _calibration(report: Report) -> dict[str, Any] | None:
    if report.calibration is None:
        return None
    bins = report.calibration.bins()
    return {
        "error": calibration_error(report.calibration.confidence, report.calibration.right),
        "drawing": calibration(bins),
        "rows": [(f"{confidence:.3f}", f"{right:.3f}", f"{count:,}") for confidence, right, count in bins],
    }


def _tiles(report: Report) -> dict[str, Any] | None:
    """Tiles computed, and tiles read in training; a part that is not there is empty."""
    if not (report.tiles or report.passes):
        return None
    passes = []
    for unit in report.passes:
        reads, stored = unit["tile_reads"], unit["stored_tiles"]
        counts = f"{unit['problems']:,}", f"{reads:,}", f"{stored:,}", f"{reads / stored:.1f}"
        passes.append((unit["learner"], *counts, f"{unit['seconds']:.1f} s"))
    return {"passes": passes, "rows": []} | (_tile_times(report.tiles, report.itemsize) if report.tiles else {})


def _tile_times(tiles: Sequence[TileReport], itemsize: int) -> dict[str, Any]:
    parts = np.array([(tile.read_seconds, tile.compute_seconds, tile.write_seconds) for tile in tiles])
    milliseconds, busy = 1e3 * parts.sum(axis=1), float(parts.sum())
    n_workers, written = len({tile.worker for tile in tiles}), sum(tile.written_bytes for tile in tiles)
    rows = [
        ("tiles computed", f"{len(tiles):,} on {n_workers} worker process{'es' * (n_workers != 1)}"),
        ("per tile", f"median {np.median(milliseconds):,.1f} ms, slowest {milliseconds.max():,.1f} ms"),
        ("reading / computing / writing", " / ".join(f"{part / busy:.0%}" for part in parts.sum(axis=0))),
        ("kernel values", f"{written / itemsize / busy / 1e6:,.1f} million per second and thread"),
        ("written", f"{written / 1e6:,.1f} MB, {written / 1e6 / busy:,.0f} MB/s per thread"),
    ]
    return {"drawing": histogram(milliseconds, x_title="milliseconds per tile", y_title="tiles"), "rows": rows}
