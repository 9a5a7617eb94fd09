"""A run folder: finished problems as small files, each written whole or not at all, and the results made of them.

RUN/run.json   structures.parquet   units/*.parquet   tiles/*.parquet   states/*.checkpoint   cost.json   and at the end
    results.parquet (problem x metric)   predictions.parquet (problem x position)   results.json
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gramline.pipeline.cost import Cost, measured
from gramline.pipeline.crossval.folds import Held
from gramline.pipeline.crossval.job import JobData
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.unit_files import StoredOutcomes, unit_details, unit_name, write_unit_file
from gramline.pipeline.crossval.validate import METRICS, CrossValidation
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.events import TileReport
from gramline.pipeline.files import write_then_rename
from gramline.pipeline.locks import DEAD_SECONDS, FileLock, describe_holders

COST = "cost.json"
STATES = "states"
FORMAT = 1  # of run.json, results.json and the files beside them


class RunFolder:
    """Where one job keeps what it has done."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> RunFolder:
        """A folder that a job has written results to."""
        folder = cls(path)
        if not (folder.path / "results.json").is_file():
            what = (
                "has no results yet; run `gramline cv` to the end"
                if (folder.path / "run.json").is_file()
                else ("is not a run; give the folder that `gramline cv` wrote")
            )
            raise InputError(f"{folder.path} {what}")
        written = folder.read_json("results.json").get("format", 1)  # the first ones had no number
        if written != FORMAT:
            raise InputError(
                f"{folder.path} holds results of format {written!r}, but this version of gramline reads format "
                f"{FORMAT}",
                advice="use the version that wrote them, or run the job again",
            )
        return folder

    @property
    def structures_path(self) -> Path:
        return self.path / "structures.parquet"

    @property
    def corpus_path(self) -> Path:
        return self.path / "corpus.parquet"

    @contextmanager
    def begun(self, data: JobData, description: Mapping[str, Any]) -> Iterator[str]:
        """Nobody else writes here meanwhile; yields who had it and died with its host, or nothing."""
        if self.path.is_file() or (self.path.is_dir() and any(self.path.iterdir()) and not self._is_run()):
            raise InputError(f"{self.path} is something else than a run; choose another folder")
        (self.path / "units").mkdir(parents=True, exist_ok=True)
        (self.path / "tiles").mkdir(exist_ok=True)
        lock = FileLock.acquire(self.path / "lock", wait=False)
        if lock is None:
            who = describe_holders(self.path / "lock")
            raise InputError(
                f"{self.path} belongs to a job that is running{f' ({who})' if who else ''}",
                advice="wait for it, or stop it; a host that is not heard of for "
                f"{DEAD_SECONDS / 60:.0f} minutes loses it to the next command",
            )
        with lock:
            self._sweep()
            self.write_json("run.json", {"gramline": "run", "format": FORMAT, **description})
            if data.corpus is not None:
                data.corpus.save(self.corpus_path)
            self.write_parquet(
                self.structures_path,
                pa.table(
                    {
                        "id": pa.array(data.ids, pa.string()),
                        "tokens": pa.array(data.tokens, pa.list_(pa.string())),
                        "labels": pa.array(data.labels, pa.list_(pa.string())),
                    }
                ),
            )
            yield lock.taken_from

    @contextmanager
    def spending(self) -> Iterator[None]:
        """What is spent inside is added to what was spent before, also where the job is stopped or fails."""
        before = self.cost() or Cost()
        with measured() as spent:
            try:
                yield
            finally:
                with suppress(OSError):  # whatever ended the job is what people should hear of
                    self.write_json(COST, (before + spent.cost).to_dict())

    def cost(self) -> Cost | None:
        """Of all sessions of the job together; None in runs of earlier versions."""
        if not (self.path / COST).is_file():
            return None
        try:
            return Cost.from_dict(json.loads((self.path / COST).read_text("utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{self.path / COST} does not tell a cost ({error})", advice="remove it") from None

    def _is_run(self) -> bool:
        return (self.path / "run.json").is_file() or (self.path / "lock").is_file()

    # ---- finished problems

    def write_unit(self, outcomes: Mapping[str, HeldOut], details: Mapping[str, Any]) -> None:
        """Outcomes by problem digest that one pass, or one task, gave; by whoever solved them."""
        write_unit_file(self.path / "units", outcomes, details)

    def finished(self) -> set[str]:
        """Digests of all finished problems."""
        return {digest for details in self.unit_details() for digest in details["traces"]}

    def unit_details(self) -> list[dict[str, Any]]:
        """What every unit says of itself, without its predictions."""
        return unit_details(self.path / "units")

    def outcomes(self) -> StoredOutcomes:
        """Every finished problem by its digest."""
        return StoredOutcomes(self.path / "units")

    # ---- trainings that are not finished

    def state_path(self, problems: Sequence[str]) -> Path:
        """Where the training of these problems keeps its state: see `TrainingCheckpoint`."""
        return self.path / STATES / unit_name(problems)

    def states(self) -> list[Path]:
        """Of all trainings that were interrupted."""
        return sorted((self.path / STATES).glob("*.checkpoint"))

    def forget_states(self) -> None:
        """Once all problems are solved."""
        shutil.rmtree(self.path / STATES, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what killed jobs left half-written; whoever still writes there belongs to one that is gone."""
        for folder in (self.path, self.path / "units", self.path / "tiles", self.path / STATES):
            for stray in folder.glob(".*.partial"):
                stray.unlink(missing_ok=True)

    # ---- how tiles went

    def write_tiles(self, store: str, reports: Sequence[TileReport]) -> None:
        """The timings of the tiles that a build computed."""
        if not reports:
            return
        rows = [asdict(report) | {"store": store} for report in reports]
        self.write_parquet(self.path / "tiles" / f"{uuid.uuid4().hex}.parquet", pa.Table.from_pylist(rows))

    def tiles(self) -> list[dict[str, Any]]:
        """Timings of all tiles that this run computed."""
        paths = sorted((self.path / "tiles").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
        return [row for path in paths for row in pq.read_table(path).to_pylist()]

    # ---- results

    def write_results(self, result: CrossValidation, data: JobData, summary: Mapping[str, Any]) -> None:
        """Parquet and JSON of a finished job."""
        rows = [
            {"setting": score.setting, "fold": score.fold, "metric": metric, "value": score.metric(metric)}
            for score in result.results
            for metric in METRICS
        ]
        self.write_parquet(self.path / "results.parquet", pa.Table.from_pylist(rows))
        with write_then_rename(self.path / "predictions.parquet", synced=True) as partial:
            write_predictions(result, data, partial)
        self.write_json("results.json", {"format": FORMAT, **summary})

    def results_before(self) -> dict[str, Any]:
        """The results of the last run to the end; empty where there is none."""
        return self.read_json("results.json") if (self.path / "results.json").is_file() else {}

    def read_json(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{self.path / name} cannot be read ({error}); run `gramline cv` again") from None
        if not isinstance(content, dict):
            raise StoreError(f"{self.path / name} holds no JSON object; run `gramline cv` again")
        return content

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        with write_then_rename(self.path / name, synced=True) as partial:
            partial.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")

    def write_parquet(self, path: Path, table: pa.Table) -> None:
        with write_then_rename(path, synced=True) as partial:
            pq.write_table(table, partial, compression="zstd")


def write_predictions(result: CrossValidation, data: JobData, path: Path) -> None:
    """One row per held-out position of every setting and fold, written fold by fold."""
    labels = pa.dictionary(pa.int32(), pa.string())
    names = ("setting", "fold", "structure", "position")
    schema = pa.schema(
        [(name, pa.int32()) for name in names] + [("gold", labels), ("predicted", labels), ("confidence", pa.float64())]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for setting, row in enumerate(result.outcomes):
            for fold, held in enumerate(row):
                writer.write_table(_predictions(setting, fold, result.folds.held_out[fold], held, data).cast(schema))


def _predictions(setting: int, fold: int, structures: Held, held: HeldOut, data: JobData) -> pa.Table:
    lengths = np.array([len(labels) for labels in held.predicted], np.int64)
    n_positions = int(lengths.sum())
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    numbers = {
        "setting": np.full(n_positions, setting),
        "fold": np.full(n_positions, fold),
        "structure": np.repeat(structures, lengths),
        "position": np.arange(n_positions) - np.repeat(starts, lengths),
    }
    gold = [label for structure in structures.tolist() for label in data.labels[structure]]
    predicted = [label for labels in held.predicted for label in labels]
    confidence = None if held.confidence is None else np.concatenate([np.array(row, float) for row in held.confidence])
    return pa.table(
        {name: pa.array(values, pa.int32()) for name, values in numbers.items()}
        | {"gold": pa.array(gold, pa.string()).dictionary_encode()}
        | {"predicted": pa.array(predicted, pa.string()).dictionary_encode()}
        | {"confidence": pa.nulls(n_positions, pa.float64()) if confidence is None else pa.array(confidence)}
    )
