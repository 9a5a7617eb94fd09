"""The scale run: a matrix that no memory holds, on two workers of 1 GB, at four sizes each twice the last one.

Every size runs in processes of its own, so that each peak of memory belongs to one size.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import isqrt, log2
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.experiments.base import Cell, ResultTable, Row, Run
from gramline.pipeline.experiments.scale_size import CHECKED_TILES, FOLDS, KERNEL, ROUNDS, SizeResult, SizeSettings
from gramline.pipeline.files import available_cores
from gramline.pipeline.reporting.charts import Axis, Plane, named_lines

LARGEST = 100_000
SIZES = 4
QUICK_POSITIONS = 3_000
LEFT_FREE = 5 * 10**9  # bytes of the disk that others shall keep
STORED_PER_CELL = 4 / 2 * 1.08  # float32, half of the matrix, diagonal tiles whole, padding
STAGES = ("plan", "build", "verify", "perceptron", "Z-score", "folds", "report")
GROWING = ("build", "perceptron", "Z-score", "folds")


def scale(run: Run) -> Sequence[ResultTable]:
    """Time, memory and tile reads of every stage at every size, and how time grows."""
    if run.quick:
        largest, sizes, remark = QUICK_POSITIONS, [QUICK_POSITIONS // 2, QUICK_POSITIONS], "a small version"
    else:
        free = shutil.disk_usage(run.scratch).free
        largest = fitting(free)
        sizes = [largest >> halved for halved in range(SIZES - 1, -1, -1)]
        remark = f"{free / 1e9:.0f} GB of disk were free, so the largest size is {largest:,} positions"
    run.say(f"{remark}: {STORED_PER_CELL * largest**2 / 1e9:.1f} GB of tiles, in {run.scratch}")
    results = []
    for n_positions in sizes:
        run.say(f"{n_positions:,} positions")
        with TemporaryDirectory(prefix="gramline-scale-", dir=run.scratch) as folder:
            results.append(measured(SizeSettings(n_positions, folder, run.seed), run.say))
    return [_table(results, remark), _growth(results)]


def fitting(free_bytes: int) -> int:
    """The largest number of positions whose tiles fit into a free disk, up to LARGEST; a round one."""
    n_positions = min(LARGEST, isqrt(max(0, int((free_bytes - LEFT_FREE) / STORED_PER_CELL))))
    if n_positions < 1000:
        raise InputError(
            f"{free_bytes / 1e9:.1f} GB of disk are free; name a folder with at least {LEFT_FREE / 1e9 + 1:.0f} GB"
        )
    return n_positions - n_positions % 1000


def measured(settings: SizeSettings, say: Callable[[str], None]) -> SizeResult:
    """One size in a process of its own."""
    return SizeResult(**measured_by("gramline.pipeline.experiments.scale_size", asdict(settings), say))


def measured_by(module: str, settings: Mapping[str, Any], say: Callable[[str], None]) -> dict[str, Any]:
    """What a module measures in a process of its own; its lines of progress are passed on."""
    command = [sys.executable, "-m", module, json.dumps(settings)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        last = "no word of why"
        for line in process.stderr:
            last = line.rstrip("\n")
            say(last)
        answer = process.stdout.read()
    if process.returncode:
        raise RunError(f"the run of {settings['n_positions']:,} positions failed: {last}")
    found: dict[str, Any] = json.loads(answer)
    return found


def _table(results: Sequence[SizeResult], remark: str) -> ResultTable:
    """One column per size."""
    rows: dict[str, list[Cell]] = {
        "positions": [size.n_positions for size in results],
        "full matrix, float32, GB": [4 * size.n_positions**2 / 1e9 for size in results],
        "tiles": [size.n_tiles for size in results],
        "stored, GB": [size.stored_bytes / 1e9 for size in results],
        "million kernel values per second": [size.cells / size.seconds["build"] / 1e6 for size in results],
    }
    for part in results[0].peaks:
        rows[f"peak of the {part}, MB"] = [round(size.peaks[part] / 1e6) for size in results]
    for stage in STAGES:
        rows[f"{stage}, s"] = [size.seconds[stage] for size in results]
    rows["all stages, s"] = [sum(size.seconds[stage] for stage in STAGES) for size in results]
    for stage in results[0].tile_reads:
        rows[f"tiles read: {stage}"] = [size.tile_reads[stage] for size in results]
    rows["iterations of the Z-score"] = [size.iterations for size in results]
    rows["accuracy over the folds"] = [size.accuracy for size in results]
    cores = available_cores()
    return ResultTable(
        f"A matrix larger than memory, {cores} cores, 2 workers of 1 GB",
        ("measure", *(f"{size.n_positions:,}" for size in results)),
        tuple((name, *values) for name, values in rows.items()),
        (
            f"sales-log sentences; SequenceLabeling with {KERNEL.observation!r}, stored in float32, {remark}",
            f"verify: cells of {CHECKED_TILES} tiles drawn at random are computed anew; perceptron: averaged, "
            f"{ROUNDS} rounds; folds: {FOLDS} of the same perceptron, every tile read once a round for all of them",
            "times are by the clock; programs are loaded before",
            "training streams in the client, whose memory grows with the positions (scores, folds, the report), not "
            "with the matrix; a worker is at "
            f"{round(results[-1].at_rest['worker'] / 1e6)} MB before its first tile",
        ),
    )


def _growth(results: Sequence[SizeResult]) -> ResultTable:
    """Processor time and memory from size to size, and the power of N that fits them."""
    sizes = [size.n_positions for size in results]
    measures = {f"{stage}, processor s": [size.busy[stage] for size in results] for stage in GROWING}
    measures["million kernel values computed"] = [size.cells / 1e6 for size in results]
    for part in results[0].peaks:
        measures[f"peak of the {part}, MB"] = [size.peaks[part] / 1e6 for size in results]
    rows: list[Row] = [(name, *values, power(sizes, values)) for name, values in measures.items()]
    return ResultTable(
        "How time and memory grow",
        ("measure", *(f"{size:,}" for size in sizes), "power of N"),
        tuple(rows),
        (
            "processor time of all workers and the client, which other work on the machine hardly changes",
            "power of N: slope of the measure over the positions, both as logarithms; the matrix has 2",
        ),
        picture=growth_picture(sizes, measures),
    )


def power(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The slope of a measure over the positions, both as logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def growth_picture(sizes: Sequence[int], measures: Mapping[str, Sequence[float]]) -> str:
    """An SVG of log2 of every measure over log2 of the positions, both against the first size."""
    across = [log2(size / sizes[0]) for size in sizes]
    up = {
        name: [log2(max(value, 1e-9) / max(values[0], 1e-9)) for value in values] for name, values in measures.items()
    }
    lowest, highest = min(map(min, up.values())), max(map(max, up.values()))
    plane = Plane(
        Axis("doublings of the positions", 0, across[-1] * 1.6, is_whole=True),  # room for the names
        Axis("doublings of the measure", min(0.0, lowest), max(2 * across[-1], highest)),
    )
    lines = {name: list(zip(across, values, strict=True)) for name, values in up.items()}
    return str(named_lines(lines, plane, "growth of time and memory with the number of positions"))
