"""From the folder of a run to its report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import describe, from_dict
from gramline.kernels.marginalized import ReachingLabeling
from gramline.kernels.reach import context_share
from gramline.learners.metrics import evaluate
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.setting_names import describe_with_files, setting_names
from gramline.pipeline.crossval.summary import chosen_words, sign_of
from gramline.pipeline.errors import RunError, StoreError
from gramline.pipeline.events import TileReport
from gramline.pipeline.files import write_whole
from gramline.pipeline.reporting.advice import Facts, advice
from gramline.pipeline.reporting.content import Calibration, FailedSetting, Report, Sentence, SettingRow
from gramline.pipeline.reporting.heatmap import Thumbnail, thumbnail
from gramline.pipeline.reporting.page import page
from gramline.pipeline.reporting.run_numbers import baseline_notes, baseline_rows, fold_values, training_curves
from gramline.pipeline.reporting.sections import metric_name, strongest

NAME = "report.html"


def write_run_report(run: str | os.PathLike[str], output: str | os.PathLike[str] | None = None) -> Path:
    """Write the page of a finished run; into its folder unless `output` names another place."""
    folder = RunFolder.existing(run)
    target = folder.path / NAME if output is None else Path(output)
    write_whole(target, page(run_report(folder)))
    return target


def run_report(folder: RunFolder) -> Report:
    """Everything the page shows, read from the run (and, for the picture, from its first Gram matrix)."""
    summary = folder.read_json("results.json")
    best, metric = summary["best"], summary["metric"]
    files = summary.get("files", {})  # runs of earlier versions have none of these keys
    failed = summary.get("failed", [])
    names = setting_names([*summary["settings"], *failed], files)
    rows = [
        SettingRow(
            name=names[number],
            kernel=describe_with_files(setting["kernel"], files),
            scores=fold_values(setting["scores"]),
            p=setting["behind_best"]["p"],
            chosen=chosen_words(setting),
        )
        for number, setting in enumerate(summary["settings"])
    ]
    corpus = Corpus.load(folder.corpus_path) if folder.corpus_path.is_file() else None
    sentences = _sentences(folder, best, corpus)
    compared = evaluate([s.gold for s in sentences], [s.predicted for s in sentences], dummy=summary["dummy"])
    used = {store["path"] for store in summary["stores"]}
    tiles = [
        TileReport(**{key: cell for key, cell in row.items() if key != "store"})
        for row in folder.tiles()
        if row["store"] in used  # what an edited job no longer has is left out
    ]
    report = Report(
        title=f"Cross-validation of {Path(summary['source']).name}",
        subtitle=(
            f"{summary['structures']:,} structures, {summary['positions']:,} positions, {len(summary['labels'])} "
            f"labels; {len(rows)} setting{'s' * (len(rows) != 1)} on {len(summary['folds']['held_out'])} folds"
        ),
        commands={
            "Train the best setting on everything": f"gramline fit --from-run {folder.path}",
            "Label new text with it": f"gramline predict {folder.path.name.partition('.')[0]}.model.zarr NEW_FILE",
        },
        cards={
            "problems": f"{summary['problems']['total']:,} (settings times folds)",
            "Gram matrices": f"{len(summary['stores'])}",
            "tiles computed": f"{len(tiles):,}",
            "last run took": f"{summary['seconds']:,.1f} s",
            **_cost(folder),
        },
        metric=metric,
        settings=rows,
        best=best,
        baselines=baseline_rows(summary),
        baseline_notes=baseline_notes(summary),
        curves=training_curves(folder, summary, names[: len(rows)], sentences),
        labels=compared.labels,
        by_label=compared.by_label,
        confusion=compared.confusion,
        sentences=sentences,
        calibration=_calibration(folder, summary, names),
        gram=_picture(summary, best),
        tiles=tiles,
        itemsize=np.dtype(summary["dtype"]).itemsize,
        passes=[unit for unit in summary["units"] if unit.get("tile_reads")],
        nested=summary["nested"],
        failed=[
            FailedSetting(name, setting["reason"]) for name, setting in zip(names[len(rows) :], failed, strict=True)
        ],
        parameters=_parameters(summary),
        versions=summary["versions"],
        job_file=folder.read_json("run.json").get("job_file"),
    )
    return replace(report, advice=advice(_facts(report, summary, corpus)))


def _cost(folder: RunFolder) -> dict[str, str]:
    """What all sessions of the run took; nothing in runs of earlier versions."""
    cost = folder.cost()
    if cost is None:
        return {}
    parts = [
        f"{cost.processor_seconds:,.1f} s of processor",
        f"{cost.kernel_values:,} kernel values",
        f"tiles: {cost.tiles_kept:,} kept, {cost.tiles_read:,} read, {cost.tiles_not_kept:,} computed and not kept",
        f"{cost.bytes_written / 1e6:,.1f} MB written, {cost.bytes_read / 1e6:,.1f} MB read",
        *([f"{cost.peak_bytes / 1e6:,.1f} MB of memory"] if cost.peak_bytes else []),
    ]
    return {"cost of all sessions": "; ".join(parts)}


def _facts(report: Report, summary: Mapping[str, Any], corpus: Corpus | None) -> Facts:
    """The numbers of the best setting that advice is computed from."""
    setting, name = summary["settings"][report.best], report.settings[report.best].name
    mine = [curve for curve in report.curves if name in curve.lines and curve.level is not None]
    kernel = setting["kernel"] or {}
    return Facts(
        metric=metric_name(report.metric),
        learner=setting["learner"],
        strongest=strongest(report),
        training=mine[0].lines[name] if mine else (),
        training_unit="structures" if mine and "structures" in mine[0].measure else "positions",
        held_out_error=mine[0].level if mine else None,
        context_share=None if corpus is None else _context_share(setting["kernel"], corpus),
        kernel=kernel.get("name", ""),
        observation=kernel.get("observation", {}).get("name", ""),
        by_label=report.by_label,
        n_structures=summary["structures"],
        n_duplicates=summary["folds"].get("duplicates"),
    )


def _context_share(description: Mapping[str, Any] | None, corpus: Corpus) -> float | None:
    """What neighbours make of the Gram matrix, on a sample; None for kernels without a reach."""
    if description is None:
        return None
    kernel = from_dict(description, Kernel)  # type: ignore[type-abstract]
    return context_share(kernel, corpus) if isinstance(kernel, ReachingLabeling) else None


def _sentences(folder: RunFolder, setting: int, corpus: Corpus | None) -> list[Sentence]:
    """Held-out structures of one setting; a structure that several folds hold out comes several times."""
    structures = pq.read_table(folder.structures_path).to_pylist()
    has_links = corpus is not None and "links" in corpus.table.column_names
    links = corpus.table.column("links").to_pylist() if corpus is not None and has_links else [None] * len(structures)
    table = pq.read_table(folder.path / "predictions.parquet", filters=[("setting", "=", setting)])
    predictions: dict[tuple[int, int], list[str]] = {}
    columns = [table.column(name).to_pylist() for name in ("fold", "structure", "predicted")]
    for fold, structure, predicted in zip(*columns, strict=True):
        predictions.setdefault((fold, structure), []).append(predicted)
    return [
        Sentence(f"structure {own['id']} (fold {fold})", own["tokens"], own["labels"], labels, links[k])
        for (fold, k), labels in predictions.items()
        for own in [structures[k]]
    ]


def _calibration(folder: RunFolder, summary: Mapping[str, Any], names: Sequence[str]) -> Calibration | None:
    """Confidences of the best setting that knows probabilities."""
    rated = (pc.field("confidence") >= 0.0) & pc.field("gold").is_valid()
    table = pq.read_table(folder.path / "predictions.parquet", filters=rated)
    known: set[Any] = set(table.column("setting").to_pylist())
    if not known:
        return None
    metric = summary["metric"]
    sign = sign_of(metric)
    best = max(sorted(known), key=lambda k: sign * summary["settings"][k]["scores"][metric]["mean"])
    table = table.filter(pc.field("setting") == best)
    gold, predicted = (np.array(table.column(name).to_pylist(), str) for name in ("gold", "predicted"))
    return Calibration(names[best], table.column("confidence").to_numpy(), gold == predicted)


def _picture(summary: Mapping[str, Any], best: int) -> Thumbnail | None:
    kernel = summary["settings"][best]["kernel"]
    stores = sorted(summary["stores"], key=lambda store: store["kernel"] != kernel)
    if not stores:
        return None
    try:
        return thumbnail(stored(stores[0]["path"], summary["structures"]), describe(stores[0]["kernel"]))
    except (StoreError, RunError):
        return None  # the store was deleted since; everything else is in the run


def _parameters(summary: Mapping[str, Any]) -> dict[str, str]:
    folds = {key: value for key, value in summary["folds"].items() if key != "held_out" and value not in (None, False)}
    parameters = {
        "source": str(summary["source"]),
        "fingerprint": str(summary["fingerprint"]),
        "folds": ", ".join(f"{key}={value}" for key, value in folds.items()),
        "inner folds": str(summary["inner_folds"] or "none"),
        "metric": str(summary["metric"]),
        "label that carries nothing": str(summary["dummy"]),
        "numbers": str(summary["dtype"]),
    }
    files = summary.get("files", {})
    kernels = dict.fromkeys(
        describe_with_files(setting["kernel"], files) for setting in summary["settings"] if setting["kernel"]
    )
    parameters |= {f"kernel {number}": kernel for number, kernel in enumerate(kernels)}
    return parameters | ({"Gram matrix": summary["stores"][0]["path"]} if summary["stores"] else {})
