"""The parts of a report as plain values for the templates: texts, rows of tables, drawings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from gramline.pipeline.crossval.summary import sign_of
from gramline.pipeline.events import TileReport
from gramline.pipeline.reporting.advice import Rival, verdict
from gramline.pipeline.reporting.arcs import arcs
from gramline.pipeline.reporting.charts import calibration, curves, histogram, spread
from gramline.pipeline.reporting.content import Report, Sentence, SettingRow, calibration_error
from gramline.pipeline.reporting.markup import soft_breaks

CURVES_SHOWN = 8
LABELS_SHOWN = 20
SENTENCES_SHOWN = 10
DRAWN_POSITIONS = 80  # a larger tree is a thicket
NO_MISTAKE = 0.995  # of F1, which is shown with two decimals
METRIC_NAMES = {"accuracy": "accuracy", "f1": "F1", "span_f1": "span F1", "exact_match": "exact match"}


def comparison(report: Report) -> dict[str, Any]:
    """The best setting beside the baselines: its score, a sentence, and a row for each."""
    metric, best = report.metric, report.settings[report.best]
    rows = [best, *sorted(report.baselines, key=lambda row: -sign_of(metric) * np.mean(row.scores[metric]))]
    low, high = _range(rows, metric)
    cells = []
    for number, row in enumerate(rows):
        behind = "" if number == 0 else f"{np.mean(row.scores[metric]) - np.mean(best.scores[metric]):+.4f}"
        name = f"★\u00a0{row.name}" if number == 0 else row.name
        shown = [soft_breaks(name), f"{np.mean(row.scores[metric]):.4f}", behind, spread(row.scores[metric], low, high)]
        cells.append([*shown, "" if row.p is None or number == 0 else f"{row.p:.3f}"])
    folds = len(best.scores[metric])
    header = ["", metric_name(metric), "difference", f"{report.fold_word}s, {low:.3f} to {high:.3f}", "p"]
    if folds == 1:
        header, cells = header[:3], [row[:3] for row in cells]
    return {
        "metric": metric_name(metric),
        "value": f"{np.mean(best.scores[metric]):.4f}",
        "deviation": f"± {np.std(best.scores[metric], ddof=1):.4f}" if folds > 1 else "",
        "folds": f"mean and deviation over {folds} {report.fold_word}s" if folds > 1 else f"on one {report.fold_word}",
        "together": f"all {report.fold_word}s together" if folds > 1 else f"on the {report.fold_word}",
        "verdict": verdict(strongest(report), metric_name(metric)),
        "header": header,
        "rows": cells,
        "note": "p: paired t-test against the best setting, two-sided." if folds > 1 and report.baselines else "",
    }


def strongest(report: Report) -> Rival | None:
    """The best of the baselines, beside the best setting."""
    metric, sign = report.metric, sign_of(report.metric)
    if not report.baselines:
        return None
    rival = max(report.baselines, key=lambda row: sign * np.mean(row.scores[metric]))
    own = np.mean(report.settings[report.best].scores[metric])
    return Rival(rival.name, float(sign * (own - np.mean(rival.scores[metric]))), rival.p)


def settings(report: Report) -> dict[str, Any]:
    """Every setting with all metrics, the best first."""
    metric = report.metric
    columns = {metric: metric_name(metric)} | METRIC_NAMES
    low, high = _range(report.settings, metric)
    sign = -sign_of(metric)
    order = sorted(range(len(report.settings)), key=lambda k: (sign * np.mean(report.settings[k].scores[metric]), k))
    # Of equal means the best is the one that the run says it is.
    order.sort(key=lambda k: k != report.best)
    rows = []
    for number in order:
        row = report.settings[number]
        name = f"★\u00a0{row.name}" if number == report.best else row.name
        cells: list[Any] = [soft_breaks(name), *(_mean(row.scores[key]) for key in columns)]
        cells.append(spread(row.scores[metric], low, high))
        cells.append("" if number == report.best or row.p is None else f"{row.p:.3f}")
        rows.append(cells)
    header = ["setting", *columns.values(), f"{report.fold_word}s, {low:.3f} to {high:.3f}", "p"]
    n_folds = len(report.settings[0].scores[metric])
    note = (
        f"Mean and standard deviation over {n_folds} {report.fold_word}s; ★ has the best {columns[metric]}. "
        "p: paired t-test against it, two-sided."
    )
    if n_folds == 1:
        header, rows = header[:-2], [cells[:-2] for cells in rows]
        note = f"Scores on one {report.fold_word}; ★ has the best {columns[metric]}."
    if any(row.chosen for row in report.settings):
        header = [*header, "chosen"]
        rows = [[*cells, report.settings[number].chosen] for number, cells in zip(order, rows, strict=True)]
    kernels = list(dict.fromkeys(row.kernel for row in report.settings if row.kernel))
    return {"header": header, "rows": rows, "note": note, "kernels": kernels}


def metric_name(metric: str) -> str:
    """As people say it."""
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def _range(rows: Sequence[SettingRow], metric: str) -> tuple[float, float]:
    values = [value for row in rows for value in row.scores[metric]]
    return min(values), max(values)


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f}\u00a0±\u00a0{np.std(values, ddof=1):.4f}"


def nested(report: Report) -> dict[str, Any] | None:
    metric, nested = report.metric, report.nested
    if nested is None:
        return None
    mean, deviation = nested["mean"][metric], nested["deviation"][metric]
    folds = zip(nested["chosen"], nested["inner"], nested["outer"][metric], strict=True)
    return {
        "score": f"{metric_name(metric)} {mean:.4f} ± {deviation:.4f}",
        "rows": [
            (f"fold {fold}", report.settings[chosen].name, f"{inner:.4f}", f"{outer:.4f}")
            for fold, (chosen, inner, outer) in enumerate(folds)
        ],
    }


def learning_curves(report: Report) -> list[tuple[Markup, str]]:
    """Drawings with their captions: of which set they are, and what the dashed line is."""
    best = report.settings[report.best].name
    drawings = []
    for curve in report.curves:
        names = sorted(curve.lines, key=lambda name: name != best)[:CURVES_SHOWN]
        level = None if curve.level is None else (f"{best}, held out", curve.level)
        drawing = curves(
            {name: curve.lines[name] for name in names},
            x_title=curve.step,
            y_title=curve.measure,
            marked=best,
            level=level,
        )
        n_more = len(curve.lines) - len(names)
        rest = "" if n_more == 0 else f" {n_more} more setting{'s are' if n_more > 1 else ' is'} not drawn."
        drawings.append((drawing, curve.described + rest))
    return drawings


def errors(report: Report) -> dict[str, Any] | None:
    """What is wrong: in a few sentences, per label, as a confusion matrix, and the worst structures."""
    if not report.sentences:
        return None
    n_wrong, n_gold = (sum(getattr(one, name) for one in report.sentences) for name in ("n_wrong", "n_gold"))
    n_hit = sum(one.n_wrong > 0 for one in report.sentences)
    short = [
        f"{n_wrong:,} of {n_gold:,} positions are wrong ({n_wrong / max(1, n_gold):.1%}), in {n_hit:,} of "
        f"{len(report.sentences):,} structures."
    ]
    if report.confusion is not None and n_wrong:
        off = report.confusion - np.diag(np.diag(report.confusion))
        gold, guess = divmod(int(off.argmax()), len(off))
        times = int(off[gold, guess])
        pair = f"{report.labels[gold]} read as {report.labels[guess]}"
        short.append(f"Most often: {pair}, {times:,} times ({times / n_wrong:.0%} of the errors).")
    known = (item for item in report.by_label.items() if item[1].gold and item[1].f1 < NO_MISTAKE)
    weak = sorted(known, key=lambda item: item[1].f1)[:3]
    if n_wrong and weak:
        short.append("Weakest labels: " + ", ".join(f"{label} (F1 {score.f1:.2f})" for label, score in weak) + ".")
    worst = sorted(report.sentences, key=lambda one: (-one.share_wrong, -one.n_wrong))
    return {
        "short": short,
        "labels": [
            (
                label,
                *(f"{count:,}" for count in (score.gold, score.predicted, score.correct)),
                *(f"{value:.4f}" for value in (score.precision, score.recall, score.f1)),
            )
            for label, score in sorted(report.by_label.items(), key=lambda item: -item[1].gold)
        ],
        "confusion": confusion(report),
        "worst": [_worst(one) for one in worst[:SENTENCES_SHOWN] if one.n_wrong],
    }


def _worst(sentence: Sentence) -> dict[str, Any]:
    is_drawn = sentence.links is not None and len(sentence.tokens) <= DRAWN_POSITIONS
    return {
        "name": sentence.name,
        "count": f"{sentence.n_wrong} of {sentence.n_gold} wrong ({sentence.share_wrong:.0%})",
        "positions": list(sentence.positions()),
        "drawing": arcs(sentence) if is_drawn else None,
    }


def confusion(report: Report) -> dict[str, Any] | None:
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
            style = f"background:rgba({colour},{share:.2f})" + (";color:#fff" if share > 0.55 else "")
            title = f"{label} read as {labels[other]}: {share:.1%}"
            cells.append({"count": f"{count:,}", "style": style if count else None, "title": title})
        rows.append((label, cells))
    return {"labels": labels, "rows": rows}


def calibration_table(report: Report) -> dict[str, Any] | None:
    if report.calibration is None:
        return None
    bins = report.calibration.bins()
    return {
        "error": calibration_error(report.calibration.confidence, report.calibration.right),
        "drawing": calibration(bins),
        "rows": [(f"{confidence:.3f}", f"{right:.3f}", f"{count:,}") for confidence, right, count in bins],
    }


def tiles(report: Report) -> dict[str, Any] | None:
    """Tiles computed, and tiles read in training; a part that is not there is empty."""
    if not (report.tiles or report.passes):
        return None
    passes = []
    for unit in report.passes:
        reads, stored = unit["tile_reads"], unit["stored_tiles"]
        counts = f"{unit['problems']:,}", f"{reads:,}", f"{stored:,}", f"{reads / stored:.1f}"
        passes.append((unit["learner"], *counts, f"{unit['seconds']:.1f}"))
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
