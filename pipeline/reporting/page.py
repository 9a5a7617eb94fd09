"""A report as one HTML page: sections in the order a reader asks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gramline.pipeline.reporting.charts import calibration, curves, histogram, spread
from gramline.pipeline.reporting.content import Report, Sentence, TileTimes
from gramline.pipeline.reporting.heatmap import heatmap
from gramline.pipeline.reporting.markup import Markup, element, figure, joined, section, table
from gramline.pipeline.reporting.style import STYLE

CURVES_SHOWN = 8
LABELS_SHOWN = 20
SENTENCES_SHOWN = 12
BINS = 10
SHOWN = {"accuracy": "accuracy", "f1": "F1", "span_f1": "span F1", "exact_match": "exact"}
TRACES = {"mistakes": ("round", "mistakes in training"), "bound": ("sweep", "variational bound")}


def page(report: Report) -> str:
    """The whole page; opens from a file, loads nothing."""
    sections = [part for part in _sections(report) if part]
    links = element("nav", *(element("a", title, href=f"#{name}") for name, title, _ in sections))
    head = joined(
        [
            Markup('<meta charset="utf-8">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            element("title", report.title),
            Markup(f"<style>{STYLE}</style>"),
        ]
    )
    cards = element(
        "div",
        *(
            element("div", element("span", name, class_="soft"), element("b", value), class_="card")
            for name, value in report.cards.items()
        ),
        class_="cards",
        id="summary",
    )
    body = element(
        "body",
        element("h1", report.title),
        element("p", report.subtitle, class_="soft"),
        links,
        cards,
        *(section(name, title, content) for name, title, content in sections),
    )
    return f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}{body}</html>\n'


def _sections(report: Report) -> Iterator[tuple[str, str, Markup]]:
    yield "settings", "Settings", _settings(report)
    if report.nested is not None:
        yield "nested", "Nested selection", _nested(report)
    if report.curves:
        yield "curves", "Learning curves", _curves(report)
    if report.confusion is not None:
        yield "confusion", "Confusion matrix", _confusion(report)
    if report.sentences:
        yield "sentences", "Worst sentences", _sentences(report.sentences)
    if report.confidences:
        yield "calibration", "Calibration", _calibration(report)
    if report.gram is not None:
        yield "gram", "Gram matrix", figure(heatmap(report.gram), report.gram_caption)
    if report.tiles is not None or report.passes:
        yield "tiles", "Tiles", _tiles(report)
    yield "repeat", "To repeat this", _repeat(report)


def _settings(report: Report) -> Markup:
    metric = report.metric
    columns = {metric: SHOWN.get(metric, metric)} | SHOWN
    values = [value for row in report.settings for value in row.scores[metric]]
    low, high = min(values), max(values)
    sign = 1 if metric == "hamming_loss" else -1
    order = sorted(range(len(report.settings)), key=lambda k: (sign * np.mean(report.settings[k].scores[metric]), k))
    # Of equal means the best is the one that the run says it is.
    order.sort(key=lambda k: k != report.best)
    kernels = list(dict.fromkeys(row.kernel for row in report.settings if row.kernel))
    rows = []
    for number in order:
        row = report.settings[number]
        name = f"★ {row.name}" if number == report.best else row.name
        cells: list[Any] = [name, *(_mean(row.scores[key]) for key in columns)]
        cells.append(spread(row.scores[metric], low, high))
        cells.append("" if number == report.best or row.p is None else f"{row.p:.3f}")
        rows.append(cells)
    header = ["setting", *columns.values(), f"{columns[metric]}: {report.fold_word}s from {low:.3f} to {high:.3f}", "p"]
    n_folds = len(report.settings[0].scores[metric])
    note = (
        f"Mean and standard deviation over {n_folds} {report.fold_word}s; ★ has the best {columns[metric]}. "
        "p: paired t-test against it, two-sided."
    )
    if n_folds == 1:
        header, rows = header[:-2], [cells[:-2] for cells in rows]
        note = f"Scores on one {report.fold_word}; ★ has the best {columns[metric]}."
    listed = [element("div", f"kernel {k}: {kernel}", class_="soft") for k, kernel in enumerate(kernels)]
    return joined([element("p", note, class_="soft"), table(header, rows, marked=0), *listed])


def _mean(values: Sequence[float]) -> str:
    if len(values) < 2:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f}\u00a0±\u00a0{np.std(values, ddof=1):.4f}"


def _nested(report: Report) -> Markup:
    assert report.nested is not None
    metric, nested = report.metric, report.nested
    told = (
        f"On every outer fold the setting that was best on inner folds, which never saw what the outer fold holds out: "
        f"{SHOWN.get(metric, metric)} {nested['mean'][metric]:.4f} ± {nested['deviation'][metric]:.4f}."
    )
    rows = [
        (f"fold {fold}", report.settings[chosen].name, f"{inner:.4f}", f"{outer:.4f}")
        for fold, (chosen, inner, outer) in enumerate(
            zip(nested["chosen"], nested["inner"], nested["outer"][metric], strict=True)
        )
    ]
    header = ("outer fold", "chosen setting", "inner mean", "outer value")
    return joined([element("p", told), table(header, rows, kind="words")])


def _curves(report: Report) -> Markup:
    best = report.settings[report.best].name
    parts = []
    for trace, lines in report.curves.items():
        x_title, y_title = TRACES.get(trace, ("step", trace))
        names = sorted(lines, key=lambda name: name != best)[:CURVES_SHOWN]
        drawing = curves({name: lines[name] for name in names}, x_title=x_title, y_title=y_title, marked=best)
        rest = f" {len(lines) - len(names)} more settings are not drawn." if len(lines) > len(names) else ""
        parts.append(figure(drawing, f"Per {x_title}, mean over the {report.fold_word}s.{rest}"))
    return joined(parts)


def _confusion(report: Report) -> Markup:
    assert report.confusion is not None
    labels, counts = list(report.labels), report.confusion
    if len(labels) > LABELS_SHOWN:
        weight = counts.sum(axis=1) + counts.sum(axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[: LABELS_SHOWN - 1])
        rest = np.setdiff1d(np.arange(len(labels)), kept)
        folded = np.concatenate([counts[kept], counts[rest].sum(axis=0, keepdims=True)])
        counts = np.concatenate([folded[:, kept], folded[:, rest].sum(axis=1, keepdims=True)], axis=1)
        labels = [*(labels[k] for k in kept), f"{len(rest)} others"]
    head = element(
        "thead", element("tr", element("th", "gold ↓ predicted →"), *(element("th", label) for label in labels))
    )
    rows = []
    for k, label in enumerate(labels):
        total = max(1, int(counts[k].sum()))
        cells = [element("td", label)]
        for other, count in enumerate(counts[k].tolist()):
            share = count / total
            colour = "22, 96, 168" if k == other else "179, 38, 30"
            ink = "#fff" if share > 0.55 else "inherit"
            style = f"background:rgba({colour},{share:.2f});color:{ink}" if count else "color:#b8c2cc"
            cells.append(
                element("td", f"{count:,}", style=style, title=f"{label} read as {labels[other]}: {share:.1%}")
            )
        rows.append(element("tr", *cells))
    best = report.settings[report.best].name
    note = f"{best}, all {report.fold_word}s together; colours are shares of a row, blue right and red wrong."
    grid = element("div", element("table", head, element("tbody", *rows), class_="confusion"), class_="wide")
    return joined([element("p", note, class_="soft"), grid])


def _sentences(sentences: Sequence[Sentence]) -> Markup:
    worst = sorted(sentences, key=lambda sentence: -sentence.n_wrong)[:SENTENCES_SHOWN]
    worst = [sentence for sentence in worst if sentence.n_wrong]
    if not worst:
        return element("p", "Every label is right.")
    parts = [
        element("p", "Under every word the gold label, then the predicted one; wrong ones are red.", class_="soft")
    ]
    for sentence in worst:
        tokens = []
        for word, right, guess in zip(sentence.tokens, sentence.gold, sentence.predicted, strict=True):
            wrong = right is not None and right != guess
            tokens.append(
                element(
                    "div",
                    element("b", "·" if word is None else word),
                    element("span", "–" if right is None else right, class_="gold"),
                    element("span", f"✗ {guess}" if wrong else guess, class_="guess"),
                    class_="token wrong" if wrong else "token",
                )
            )
        title = f"{sentence.name}: {sentence.n_wrong} of {len(sentence.tokens)} wrong"
        parts.append(joined([element("h3", title), element("div", *tokens, class_="sentence")]))
    return joined(parts)


def _calibration(report: Report) -> Markup:
    confidence = np.array([value for value, _ in report.confidences])
    right = np.array([was for _, was in report.confidences], float)
    place = np.minimum(BINS - 1, (confidence * BINS).astype(int))
    bins = [
        (float(confidence[place == k].mean()), float(right[place == k].mean()), int((place == k).sum()))
        for k in range(BINS)
        if (place == k).any()
    ]
    error = sum(count * abs(sure - was) for sure, was, count in bins) / len(confidence)
    rows = [(f"{sure:.3f}", f"{was:.3f}", f"{count:,}") for sure, was, count in bins]
    drawing = figure(calibration(bins), "On the dashed line, a confidence of 0.8 is right 8 times out of 10.")
    numbers = table(("mean confidence", "share that was right", "positions"), rows)
    note = f"{report.confident}: mean distance from the line, weighted by positions, {error:.4f}."
    return joined([element("p", note), element("div", drawing, numbers, class_="pair")])


def _tiles(report: Report) -> Markup:
    parts = []
    if report.tiles is not None:
        parts.append(_tile_times(report.tiles))
    else:
        parts.append(element("p", "Every tile was there already; none was computed in this run."))
    if report.passes:
        rows = [
            (
                str(unit["learner"]),
                f"{unit['problems']:,}",
                f"{unit['tile_reads']:,}",
                f"{unit['stored_tiles']:,}",
                f"{unit['tile_reads'] / unit['stored_tiles']:.1f}",
                f"{unit['seconds']:.1f} s",
            )
            for unit in report.passes
        ]
        header = ("training", "problems", "tiles read", "tiles stored", "passes", "time")
        parts += [element("h3", "Tiles read in training"), table(header, rows)]
    return joined(parts)


def _tile_times(tiles: TileTimes) -> Markup:
    seconds = np.add(np.add(tiles.read, tiles.compute), tiles.write)
    busy = float(seconds.sum())
    rows = [
        ("tiles computed", f"{len(seconds):,} on {tiles.n_workers} worker process{'es' * (tiles.n_workers != 1)}"),
        ("per tile", f"median {np.median(seconds) * 1e3:.1f} ms, slowest {seconds.max() * 1e3:.1f} ms"),
        (
            "reading / computing / writing",
            " / ".join(f"{sum(p) / busy:.0%}" for p in (tiles.read, tiles.compute, tiles.write)),
        ),
        ("kernel values", f"{tiles.cells / busy / 1e6:,.1f} million per second and thread"),
        ("written", f"{tiles.written_bytes / 1e6:,.1f} MB, {tiles.written_bytes / busy / 1e6:,.0f} MB/s per thread"),
    ]
    drawing = histogram([float(value) * 1e3 for value in seconds], x_title="milliseconds per tile", y_title="tiles")
    return element(
        "div", figure(drawing, "How long the tiles took."), table(("tiles", ""), rows, kind="words"), class_="pair"
    )


def _repeat(report: Report) -> Markup:
    parts = [table(("parameter", "value"), list(report.parameters.items()), kind="words")]
    if report.job_file:
        parts += [element("h3", "Job file"), element("pre", report.job_file)]
    parts += [element("h3", "Versions"), table(("program", "version"), list(report.versions.items()), kind="words")]
    return joined(parts)
