"""What a run says of its baselines and of its training, as rows and curves of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramline.learners.catalogue import find_learner
from gramline.pipeline.crossval.baselines import left_out_sentences
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.validate import compare_values
from gramline.pipeline.reporting.content import Curve, Sentence, SettingRow

WRITTEN_BEFORE = (
    "This run has no other baselines: it was written by an earlier version, or with --no-baselines. The same "
    "`gramline cv` command with --baselines adds them."
)
STRUCTURES = "structures"  # in the measure of learners that count them


def fold_values(scores: Mapping[str, Any]) -> dict[str, list[float]]:
    """Values per fold of every metric."""
    return {metric: values["folds"] for metric, values in scores.items()}


def baseline_rows(summary: Mapping[str, Any]) -> list[SettingRow]:
    """The simple models that the run trained on the same folds, and the most frequent label."""
    own = fold_values(summary["settings"][summary["best"]]["scores"])[summary["metric"]]
    known = [(row["name"], row["scores"]) for row in (summary.get("baselines") or {}).get("rows", [])]
    if majority := summary.get("majority"):
        known.append((f"majority label ({', '.join(dict.fromkeys(majority['labels']))})", majority["scores"]))
    rows = []
    for name, scores in known:
        values = fold_values(scores)
        p = compare_values(own, values[summary["metric"]]).p
        rows.append(SettingRow(name, "", values, p if np.isfinite(p) else None))
    return rows


def baseline_notes(summary: Mapping[str, Any]) -> list[str]:
    """How the baselines were trained, and which are not there and why."""
    known = summary.get("baselines")
    if known is None:
        return [WRITTEN_BEFORE]
    notes = [row["note"] for row in known["rows"] if row.get("note")]  # earlier versions have none
    return notes + [f"{sentence[0].upper()}{sentence[1:]}." for sentence in left_out_sentences(known)]


def training_curves(
    folder: RunFolder, summary: Mapping[str, Any], names: Sequence[str], sentences: Sequence[Sentence]
) -> list[Curve]:
    """Mean over folds of every trace; mistakes as shares of the training part, apart for positions and structures."""
    known = {digest: trace for unit in folder.unit_details() for digest, trace in unit["traces"].items()}
    digests: dict[str, Sequence[str]] = summary.get("digests", {})
    sizes = _training_sizes(summary, sentences)
    lines: dict[tuple[str, str], dict[str, list[float]]] = {}
    for number, name in enumerate(names):
        measure = find_learner(summary["settings"][number]["learner"]).round_measure
        for trace, values in _mean_traces(
            [known[digest] for digest in digests.get(str(number), ()) if digest in known]
        ):
            unit = "" if trace != "mistakes" else STRUCTURES if STRUCTURES in measure else "positions"
            shown = [value / sizes[unit] for value in values] if unit else values
            lines.setdefault((trace, unit), {})[name] = shown
    return [_curve(*key, drawn, names[summary["best"]], sentences) for key, drawn in lines.items()]


def _curve(
    trace: str, unit: str, lines: Mapping[str, Sequence[float]], best: str, sentences: Sequence[Sentence]
) -> Curve:
    if not unit:
        words = {"bound": ("sweep", "variational bound"), "gap": ("pass", "duality gap")}.get(trace, ("step", trace))
        return Curve(*words, f"On the training part of every fold, per {words[0]}, mean over the folds.", lines)
    level = None
    if best in lines:
        n_wrong = sum(one.n_wrong if unit == "positions" else one.n_wrong > 0 for one in sentences)
        level = n_wrong / max(1, sum(one.n_gold if unit == "positions" else one.n_gold > 0 for one in sentences))
    described = (
        f"Solid lines are of the training set: the share of the training {unit} that a round got wrong before it "
        "learned from them, mean over the folds."
    )
    if level is not None:
        described += " The dashed line is of the held-out set: what the best setting, once trained, got wrong there."
    return Curve("round", f"share of {unit} with a mistake", described, lines, level)


def _mean_traces(folds: Sequence[Mapping[str, Sequence[float]]]) -> list[tuple[str, list[float]]]:
    """Every trace over the folds; a training that stopped early stays where it ended."""
    means = []
    for trace in dict.fromkeys(key for fold in folds for key in fold):
        lines = [list(fold[trace]) for fold in folds if fold.get(trace)]
        longest = max(map(len, lines), default=0)
        if longest:
            padded = [line + [line[-1]] * (longest - len(line)) for line in lines]
            means.append((trace, np.mean(padded, axis=0).tolist()))
    return means


def _training_sizes(summary: Mapping[str, Any], sentences: Sequence[Sentence]) -> dict[str, float]:
    """Positions with a label and structures that a fold trains on, on average."""
    held = summary["folds"]["held_out"]
    structures = summary["structures"] - float(np.mean(held))
    per_structure = sum(one.n_gold for one in sentences) / max(1, len(sentences))
    return {"positions": max(1.0, structures * per_structure), STRUCTURES: max(1.0, structures)}
