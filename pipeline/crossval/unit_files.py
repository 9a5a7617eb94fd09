"""Finished problems as files: those that were solved together are one file, a part of it for each, read one by one.

Whoever solved them writes the file, whole or not at all. Its name follows from its problems, so that one which is
solved twice, because a worker was thought lost, is there once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.files import write_then_rename

DETAILS = b"gramline.unit"
SCHEMA = pa.schema(
    [
        ("problem", pa.dictionary(pa.int32(), pa.string())),
        ("predicted", pa.list_(pa.string())),
        ("confidence", pa.list_(pa.float64())),
    ]
)


def unit_name(problems: Sequence[str]) -> str:
    """Of problems by their digests; one alone has its own."""
    if len(problems) == 1:
        return problems[0]
    return hashlib.blake2b("\n".join(problems).encode(), digest_size=16).hexdigest()


def write_unit_file(folder: Path, outcomes: Mapping[str, HeldOut], details: Mapping[str, Any]) -> None:
    """Outcomes by problem digest that one pass, or one task, gave."""
    content = dict(details) | {
        "traces": {digest: dict(held.traces) for digest, held in outcomes.items()},
        "notes": {digest: list(held.notes) for digest, held in outcomes.items() if held.notes},
        "chosen": {digest: dict(held.chosen) for digest, held in outcomes.items() if held.chosen},
    }
    schema = SCHEMA.with_metadata({DETAILS: json.dumps(content).encode()})
    target = folder / f"{unit_name(list(outcomes))}.parquet"
    with (
        write_then_rename(target, synced=True) as partial,
        pq.ParquetWriter(partial, schema, compression="zstd") as writer,
    ):
        for digest, held in outcomes.items():
            writer.write_table(_table(digest, held).cast(schema))


def _table(digest: str, held: HeldOut) -> pa.Table:
    n = len(held.predicted)
    confidence: list[Any] = held.confidence or [None] * n
    return pa.table(
        {
            "problem": pa.array([digest] * n, pa.string()).dictionary_encode(),
            "predicted": pa.array(held.predicted, pa.list_(pa.string())),
            "confidence": pa.array(confidence, pa.list_(pa.float64())),
        }
    )


def unit_details(folder: Path) -> list[dict[str, Any]]:
    """What every unit of a folder says of itself, without its predictions."""
    return [_details(pq.read_schema(path)) for path in sorted(folder.glob("*.parquet"))]


def _details(schema: pa.Schema) -> dict[str, Any]:
    details: dict[str, Any] = json.loads((schema.metadata or {})[DETAILS])
    return details


class _Place(NamedTuple):
    """Where a problem is."""

    path: Path
    part: int | None  # its row group; None: units of earlier versions have all problems in one


class StoredOutcomes(Mapping[str, HeldOut]):
    """Every finished problem by its digest, read when it is asked for and not kept."""

    def __init__(self, folder: Path) -> None:
        self._places: dict[str, _Place] = {}
        for path in sorted(folder.glob("*.parquet")):
            metadata = pq.read_metadata(path)
            problems = list(_details(metadata.schema.to_arrow_schema())["traces"])
            has_parts = metadata.num_row_groups == len(problems)
            self._places |= {one: _Place(path, k if has_parts else None) for k, one in enumerate(problems)}

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __getitem__(self, digest: str) -> HeldOut:
        path, part = self._places[digest]
        with pq.ParquetFile(path) as file:
            details = _details(file.schema_arrow)
            table = file.read() if part is None else file.read_row_group(part)
        rows = [row for row in table.to_pylist() if row["problem"] == digest]
        confidence = [row["confidence"] for row in rows]
        known = None if None in confidence else confidence
        notes = details.get("notes", {}).get(digest, [])
        chosen = details.get("chosen", {}).get(digest, {})
        return HeldOut([row["predicted"] for row in rows], known, details["traces"][digest], notes, chosen)


class StoredRow(Sequence[HeldOut]):
    """The outcomes of some problems, in their order, read when they are asked for."""

    def __init__(self, outcomes: StoredOutcomes, digests: Sequence[str]) -> None:
        self._outcomes, self._digests = outcomes, tuple(digests)

    def __len__(self) -> int:
        return len(self._digests)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return StoredRow(self._outcomes, self._digests[place])
        return self._outcomes[self._digests[place]]
