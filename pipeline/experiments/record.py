"""What a run of an experiment leaves: its tables as Parquet, pictures as SVG, and everything in one JSON file.

The JSON file carries a digest of its content, so that reading it detects a number that was changed by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Experiment, ResultTable, Run, Say
from gramline.pipeline.files import available_cores

IDLE = 0.5  # a load that a machine has a minute after it did something
PATIENCE, PAUSE = 180.0, 1.0  # seconds until others are to blame, and between looks
PROGRAMS = ("numpy", "scipy", "numba", "zarr", "dask", "python-crfsuite")


@dataclass(frozen=True)
class ExperimentRecord:
    """One run of one experiment."""

    name: str
    title: str
    command: str
    seconds: float
    machine: Mapping[str, str]  # date and load (not in runs of version 0.1), cores, processor, versions of programs
    tables: tuple[ResultTable, ...]
    skipped: str | None = None  # why there are no tables

    @property
    def machine_line(self) -> str:
        """How long it took, when, on what, and what else the machine had to do."""
        return f"Took {self.seconds:,.0f} s; {self._machine_text}."

    @property
    def _machine_text(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.machine.items())

    @property
    def was_alone(self) -> bool:
        """Whether the machine had nothing else to do when it began; a run of version 0.1 does not say."""
        return "load" in self.machine and float(self.machine["load"].split()[0]) <= IDLE

    @property
    def published_line(self) -> str:
        """What a page of the project says of the machine."""
        if self.was_alone:
            return self.machine_line
        left_out = "Times are left out, because the machine had other work to do; "
        return f"{'' if tuple(self.published.values()) == self.tables else left_out}{self._machine_text}."

    @property
    def published(self) -> dict[int, ResultTable]:
        """The tables that a page of the project shows, by their numbers, from 1: no times of a busy machine."""
        tables = dict(enumerate(self.tables, 1))
        if self.was_alone:
            return tables
        return {number: kept for number, table in tables.items() if (kept := table.without_times()) is not None}

    def to_dict(self) -> dict[str, Any]:
        return {
            "experiment": self.name,
            "title": self.title,
            "command": self.command,
            "seconds": round(self.seconds, 1),
            "machine": dict(self.machine),
            "skipped": self.skipped,
            "tables": [table.to_dict() | {"drawing": _hash(table.picture)} for table in self.tables],
        }


def command_line(name: str, run: Run) -> str:
    """What repeats a run, with the folders left for the reader to name."""
    parts = ["gramline reproduce", name]
    parts += ["--data data"] if run.data != Path() else []
    parts += ["--quick"] if run.quick else []
    parts += [f"--seed {run.seed}"] if run.seed else []
    return " ".join(parts)


def this_machine() -> dict[str, str]:
    """Cores, processor and the versions that decide numbers."""
    cores = available_cores()
    machine = {"cores": str(cores), "processor": platform.machine(), "python": platform.python_version()}
    for program in PROGRAMS:
        with suppress(PackageNotFoundError):
            machine[program] = version(program)
    return machine


def load() -> float:
    """Processes that ran or waited for a core, on average over the last minute."""
    return os.getloadavg()[0]


def quiet_load(say: Say) -> float:
    """The load once what ran before is forgotten; after PATIENCE seconds it is the work of others."""
    end, now = monotonic() + PATIENCE, load()
    if now > IDLE:
        say(f"  waiting for the machine, whose load is {now:.1f}")
    while now > IDLE and monotonic() < end:
        sleep(PAUSE)
        now = load()
    return now


def record_experiment(experiment: Experiment, run: Run, folder: Path | None, *, strict: bool) -> ExperimentRecord:
    """Run an experiment. Missing files are an error when it was asked for by name (`strict`), else it is skipped."""
    missing = experiment.missing(folder)
    if missing and strict and folder is None:
        raise InputError(f"--data is missing; name the folder that holds {', '.join(missing)}")
    skipped = None
    if missing and not strict:
        where = "the folder that --data names" if folder is None else str(folder)
        skipped = f"Skipped: put {' and '.join(missing)} into {where} to run it."
    begin, before = perf_counter(), load()
    tables: tuple[ResultTable, ...] = ()
    try:
        tables = tuple(experiment.run(run)) if skipped is None else ()
    except InputError as error:  # an experiment that takes whatever data there is, and there is none
        if strict:
            raise
        skipped = f"Skipped: {error}."
    seconds = perf_counter() - begin
    command = command_line(experiment.name, run)
    busiest = max(run.loads, default=before)  # parts that are kept were measured whenever the machine was free
    when = {"date": date.today().isoformat(), "load": f"{busiest:.1f} before and {load():.1f} at the end"}
    return ExperimentRecord(experiment.name, experiment.title, command, seconds, when | this_machine(), tables, skipped)


def save_record(record: ExperimentRecord, folder: Path) -> list[Path]:
    """Each table as Parquet, pictures as SVG, everything as one JSON file; returns what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, table in enumerate(record.tables, 1):
        columns = [pa.array(_one_type([row[k] for row in table.rows])) for k in range(len(table.columns))]
        path = folder / f"{record.name}-{number}.parquet"
        pq.write_table(pa.Table.from_arrays(columns, names=_distinct(table.columns)), path)
        written.append(path)
        picture = folder / f"{record.name}-{number}.svg"
        if table.picture is None:
            picture.unlink(missing_ok=True)
        else:
            picture.write_text(table.picture, "utf-8")
            written.append(picture)
    content = record.to_dict()
    path = folder / f"{record.name}.json"
    path.write_text(json.dumps(content | {"digest": _digest(content)}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return [*written, path]


def load_record(folder: Path, name: str) -> ExperimentRecord | None:
    """A run that was saved, None when there is none; one that was changed since is refused."""
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if content.pop("digest", None) != _digest(content):
        raise InputError(f"{path} was changed after it was written; run `gramline reproduce {name}` again")
    tables = []
    for number, table in enumerate(content["tables"], 1):
        path = folder / f"{name}-{number}.svg"
        picture = path.read_text("utf-8") if path.is_file() else None
        if _hash(picture) != table.get("drawing"):
            raise InputError(f"{path} is not the picture that was written; run `gramline reproduce {name}` again")
        tables.append(ResultTable.from_dict(table, picture))
    content["name"] = content.pop("experiment")
    return ExperimentRecord(**content | {"tables": tuple(tables)})


def load_records(folder: Path, names: Sequence[str]) -> list[ExperimentRecord]:
    """The saved runs of these experiments, in their order."""
    return [record for name in names if (record := load_record(folder, name)) is not None]


def _digest(content: Mapping[str, Any]) -> str:
    return str(_hash(json.dumps(content, sort_keys=True, ensure_ascii=False)))


def _hash(text: str | None) -> str | None:
    return None if text is None else hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _distinct(names: Sequence[str]) -> list[str]:
    """A name that comes again gets a number: readers of Parquet want each only once."""
    return [name if name not in names[:k] else f"{name} {names[: k + 1].count(name)}" for k, name in enumerate(names)]


def _one_type(values: list[Any]) -> list[Any]:
    """A column that mixes words and numbers is written as words."""
    kinds = {type(value) for value in values if value is not None}
    return [None if value is None else str(value) for value in values] if str in kinds else values
