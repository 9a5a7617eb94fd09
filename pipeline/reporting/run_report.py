"""From the folder of a run to its report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gramline.kernels.catalogue import describe
from gramline.learners.metrics import evaluate
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.setting_names import describe_with_files, setting_names
from gramline.pipeline.crossval.summary import sign_of
from gramline.pipeline.errors import RunError, StoreError
from gramline.pipeline.events import TileReport
from gramline.pipeline.files import write_whole
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.reporting.content import Calibration, FailedSetting, Report, Sentence, SettingRow
from gramline.pipeline.reporting.heatmap import Thumbnail, thumbnail
from gramline.pipeline.reporting.page import page

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
    failed, majority = summary.get("failed", []), summary.get("majority")
    names = setting_names([*summary["settings"], *failed], files)
    rows = [
        SettingRow(
            name=names[number],
            kernel=describe_with_files(setting["kernel"], files),
            scores=_by_fold(setting["scores"]),
            p=setting["behind_best"]["p"],
        )
        for number, setting in enumerate(summary["settings"])
    ]
    sentences = _sentences(folder, best)
    compared = evaluate([s.gold for s in sentences], [s.predicted for s in sentences], dummy=summary["dummy"])
    tiles = [TileReport(**{key: cell for key, cell in row.items() if key != "store"}) for row in folder.tiles()]
    score = summary["settings"][best]["scores"][metric]
    return Report(
        title=f"Cross-validation of {Path(summary['source']).name}",
        subtitle=(
            f"{summary['structures']:,} structures, {summary['positions']:,} positions, {len(summary['labels'])} "
            f"labels; {len(rows)} setting{'s' * (len(rows) != 1)} on {len(summary['folds']['held_out'])} folds"
        ),
        cards={
            "best setting": names[best],
            metric.replace("_", " "): f"{score['mean']:.4f} ± {score['deviation']:.4f}",
            "problems": f"{summary['problems']['total']:,}",
            "Gram matrices": f"{len(summary['stores'])}",
            "tiles computed": f"{len(tiles):,}",
            "last run": f"{summary['seconds']:.1f} s",
        },
        metric=metric,
        settings=rows,
        best=best,
        curves=_curves(folder, summary, names[: len(rows)]),
        labels=compared.labels,
        confusion=compared.confusion,
        sentences=sentences,
        calibration=_calibration(folder, summary, names),
        gram=_picture(summary, best),
        tiles=tiles,
        itemsize=np.dtype(summary["dtype"]).itemsize,
        passes=[unit for unit in summary["units"] if unit.get("tile_reads")],
        nested=summary["nested"],
        majority=None if majority is None else _majority(majority),
        failed=[
            FailedSetting(name, setting["reason"]) for name, setting in zip(names[len(rows) :], failed, strict=True)
        ],
        parameters=_parameters(summary),
        versions=summary["versions"],
        job_file=folder.read_json("run.json").get("job_file"),
    )


def _by_fold(scores: Mapping[str, Any]) -> dict[str, list[float]]:
    return {metric: values["folds"] for metric, values in scores.items()}


def _majority(majority: Mapping[str, Any]) -> SettingRow:
    labels = ", ".join(dict.fromkeys(majority["labels"]))
    return SettingRow(f"majority label ({labels})", "", _by_fold(majority["scores"]))


def _sentences(folder: RunFolder, setting: int) -> list[Sentence]:
    """Held-out structures of one setting; a structure that several folds hold out comes several times."""
    structures = pq.read_table(folder.structures_path).to_pylist()
    table = pq.read_table(folder.path / "predictions.parquet", filters=[("setting", "=", setting)])
    predictions: dict[tuple[int, int], list[str]] = {}
    columns = [table.column(name).to_pylist() for name in ("fold", "structure", "predicted")]
    for fold, structure, predicted in zip(*columns, strict=True):
        predictions.setdefault((fold, structure), []).append(predicted)
    return [
        Sentence(f"structure {own['id']} (fold {fold})", own["tokens"], own["labels"], labels)
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


def _curves(folder: RunFolder, summary: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[str, list[float]]]:
    """Mean over folds of every trace, as far as every fold has it."""
    digests: dict[str, Sequence[str]] = summary.get("digests", {})
    traces: dict[str, dict[str, list[float]]] = {}
    known = {digest: trace for unit in folder.unit_details() for digest, trace in unit["traces"].items()}
    for number, name in enumerate(names):
        folds = [known[digest] for digest in digests.get(str(number), ()) if digest in known]
        for trace in dict.fromkeys(key for fold in folds for key in fold):
            lines = [fold[trace] for fold in folds if trace in fold]
            longest = max(map(len, lines))
            # A training that stopped early stays where it ended.
            padded = [line + [line[-1]] * (longest - len(line)) for line in lines]
            traces.setdefault(trace, {})[name] = np.mean(padded, axis=0).tolist()
    return traces


def _picture(summary: Mapping[str, Any], best: int) -> Thumbnail | None:
    kernel = summary["settings"][best]["kernel"]
    stores = sorted(summary["stores"], key=lambda store: store["kernel"] != kernel)
    if not stores:
        return None
    try:
        return thumbnail(StoredGram.open(stores[0]["path"]), describe(stores[0]["kernel"]))
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
