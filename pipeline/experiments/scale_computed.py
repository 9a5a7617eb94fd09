"""Training without a stored matrix on two workers of 1 GB, up to a million positions, and what lies beyond.

Every size runs in processes of its own and is kept in the scratch folder as soon as it is measured, with the load that
the machine had before: a run that was stopped goes on with the next size, and the tables are of all that are there.
GRAMLINE_SCALE_SIZES names other sizes.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from tempfile import TemporaryDirectory

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Cell, ResultTable, Row, Run
from gramline.pipeline.experiments.kept_parts import KeptParts, load, save
from gramline.pipeline.experiments.record import quiet_load
from gramline.pipeline.experiments.scale import growth_picture, measured_by, power
from gramline.pipeline.experiments.scale_computed_size import HELD_OUT, ROUNDS, ComputedSize
from gramline.pipeline.experiments.scale_model import ScaleModel
from gramline.pipeline.experiments.scale_size import KERNEL, SizeSettings
from gramline.pipeline.files import available_cores

SIZES = (100_000, 250_000, 500_000, 1_000_000)
QUICK_SIZES, QUICK_HELD_OUT, QUICK_BLOCK = (2_000, 4_000), 300, 256
CHOSEN = "GRAMLINE_SCALE_SIZES"  # numbers of positions with commas between
KEPT = "gramline-scale-computed"  # a folder of the scratch folder
SIZE_MODULE = "gramline.pipeline.experiments.scale_computed_size"
BEYOND = ((10_000_000, 100), (10_000_000, 1_000), (100_000_000, 100), (100_000_000, 1_000))  # positions, cores


def scale_computed(run: Run) -> Sequence[ResultTable]:
    """Time, memory and accuracy at every size, how they grow, and the model extrapolated."""
    sizes = QUICK_SIZES if run.quick else chosen_sizes(os.environ.get(CHOSEN))
    if run.quick:
        results = [_measured(run, size, QUICK_HELD_OUT, QUICK_BLOCK) for size in sizes]
    else:
        kept = KeptParts(run.scratch / KEPT)
        for size in sizes:
            _measure_once(run, kept, size)
        results = _all_kept(run, kept)
    return [_table(results), _growth(results), _beyond(ScaleModel.of(results))]


def chosen_sizes(text: str | None) -> tuple[int, ...]:
    """Numbers of positions, smallest first."""
    if not text:
        return SIZES
    try:
        sizes = sorted({int(part.replace("_", "")) for part in text.split(",")})
    except ValueError:
        sizes = [0]
    if sizes[0] < 1:
        raise InputError(f"{CHOSEN} must list numbers of positions such as 100000,250000, got {text!r}")
    return tuple(sizes)


def _measure_once(run: Run, kept: KeptParts, size: int) -> None:
    """Unless it was measured before."""
    part = size, run.seed
    if load(kept.path(part)) is None:
        before = quiet_load(run.say)
        measured = asdict(_measured(run, size, HELD_OUT, None))
        save(kept.path(part), {"part": part, "day": date.today().isoformat(), "load": before, "measured": measured})


def _all_kept(run: Run, kept: KeptParts) -> list[ComputedSize]:
    """All sizes that this version has measured, smallest first."""
    found = []
    for path, content in kept.every():
        part = content.get("part")
        if part is None or path != kept.path(part) or part[1] != run.seed:
            continue
        size = ComputedSize(**content["measured"])
        run.say(f"{size.n_positions:,} positions, measured on {content['day']}, load {content['load']:.1f} before")
        run.loads.append(content["load"])
        found.append(size)
    return sorted(found, key=lambda size: size.n_positions)


def _measured(run: Run, size: int, n_held_out: int, block_rows: int | None) -> ComputedSize:
    run.say(f"{size:,} positions")
    with TemporaryDirectory(prefix="gramline-scale-", dir=run.scratch) as folder:
        settings = SizeSettings(size, folder, run.seed, block_rows=block_rows)
        return ComputedSize(**measured_by(SIZE_MODULE, asdict(settings) | {"n_held_out": n_held_out}, run.say))


def _table(results: Sequence[ComputedSize]) -> ResultTable:
    """One column per size."""
    rows: dict[str, list[Cell]] = {
        "positions": [size.n_positions for size in results],
        "full matrix, float32, GB": [4 * size.n_positions**2 / 1e9 for size in results],
        "kernel values computed, billions": [size.values / 1e9 for size in results],
        "kernel values computed, N^2": [size.values / size.n_positions**2 for size in results],
    }
    for number in range(ROUNDS):
        rows[f"mistakes in round {number + 1}"] = [size.mistakes[number] for size in results]
    rows["training, s"] = [size.seconds["training"] for size in results]
    rows["training, processor s"] = [size.busy["training"] for size in results]
    rows["of it the client, processor s"] = [size.client_seconds for size in results]
    rows["million kernel values per processor second"] = [size.values / size.busy["training"] / 1e6 for size in results]
    rows["held-out positions"] = [size.n_held_out for size in results]
    rows["prediction, s"] = [size.seconds["prediction"] for size in results]
    rows["accuracy on them"] = [size.accuracy for size in results]
    for part in results[0].peaks:
        rows[f"peak of the {part}, MB"] = [round(size.peaks[part] / 1e6) for size in results]
    return ResultTable(
        f"Exact training without a stored matrix, {available_cores()} cores, 2 workers of 1 GB",
        ("measure", *(f"{size.n_positions:,}" for size in results)),
        tuple((name, *values) for name, values in rows.items()),
        (
            f"sales-log sentences; SequenceLabeling with {KERNEL.observation!r}, computed in float32; averaged "
            f"perceptron, {ROUNDS} rounds; kernel values are computed between structures that changed and all others",
            "times are by the clock; programs are loaded before",
        ),
    )


def _growth(results: Sequence[ComputedSize]) -> ResultTable:
    """Processor time and memory from size to size, and the power of N that fits them."""
    sizes = [size.n_positions for size in results]
    measures = {
        "training, processor s": [size.busy["training"] for size in results],
        "kernel values, billions": [size.values / 1e9 for size in results],
        "client, processor s": [size.client_seconds for size in results],
        "prediction, processor s": [size.busy["prediction"] for size in results],
    }
    measures |= {f"peak of the {part}, MB": [size.peaks[part] / 1e6 for size in results] for part in results[0].peaks}
    rows: list[Row] = [
        (name, *values, power(sizes, values) if len(sizes) > 1 else None) for name, values in measures.items()
    ]
    return ResultTable(
        "How training without a stored matrix grows",
        ("measure", *(f"{size:,}" for size in sizes), "power of N"),
        tuple(rows),
        ("power of N: slope of the measure over the positions, both as logarithms",),
        picture=growth_picture(sizes, measures) if len(sizes) > 1 else None,
    )


def _beyond(model: ScaleModel) -> ResultTable:
    """The measured model at sizes and on clusters that are not here."""
    rows: list[Row] = []
    for n_positions, cores in BEYOND:
        told = model.at(n_positions, cores)
        rows.append(
            (
                f"{n_positions:,}",
                f"{cores:,}",
                told.core_hours,
                told.hours,
                told.client_hours,
                told.scheduler_hours,
                told.client_gigabytes,
                told.worker_gigabytes,
                told.breaks_first,
            )
        )
    return ResultTable(
        "The measured model, extrapolated",
        (
            "positions",
            "cores",
            "core hours",
            "hours of the workers",
            "hours of the client",
            "hours of the scheduler",
            "client, GB",
            "worker, GB",
            "what breaks first",
        ),
        tuple(rows),
        model.notes,
    )
