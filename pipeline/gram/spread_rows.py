"""Entries and digests of rows of a stored Gram matrix, taken from its tiles by the workers of a cluster.

What is chosen of a tile travels as a letter beside the store, the tile itself nowhere.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np

from gramline.learners.arrays import Indices, Tile
from gramline.learners.operators.layout import Key, by_block, chosen_of
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.gram.product import squares
from gramline.pipeline.gram.spread_product import shared_reader
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.storage.letters import Arrays, Letters

CHOSEN = "chosen"
DIGEST_BYTES = 16
LETTERS_KEPT = 2


@dataclass(frozen=True)
class SelectTask:
    """Some tiles to take chosen entries from."""

    store: str
    identity: str
    letters: str
    number: int
    keys: tuple[Key, ...]

    may_run_twice: ClassVar[bool] = True
    may_be_bundled: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, Key]:
        return self.identity, self.keys[0]


def spread_select(store: TileStore, keys: list[Key], rows: Indices, cols: Indices, executor: Executor) -> Tile:
    """G[rows][:, cols]; `keys` are the tiles that hold some of it."""
    letters = Letters.beside(store.url, "rows")
    result = np.empty((len(rows), len(cols)), store.tiles.dtype)
    try:
        letters.write(CHOSEN, {"rows": rows, "cols": cols})
        tasks = [
            SelectTask(store.url, store.identity, letters.url, number, part)
            for number, part in enumerate(squares(store.layout, keys))
        ]
        with closing(executor.run(select_entries, tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
                parts = letters.read(_answer(outcome.task.number))
                for place in range(len(parts) // 3):
                    to_rows, to_cols, values = (parts[f"{place}-{what}"] for what in ("rows", "cols", "values"))
                    result[np.ix_(to_rows, to_cols)] = values
                letters.remove(_answer(outcome.task.number))
        return result
    finally:
        letters.remove_all()


def select_entries(task: SelectTask) -> int:
    """On a worker: leave what its tiles hold of the chosen rows and columns as a letter; how many tiles it was."""
    (store, reader), letters = shared_reader(task.store, task.identity), Letters(task.letters)
    chosen = _chosen.get(task.letters, partial(letters.read, CHOSEN))
    parts: Arrays = {}
    for key, tile in reader.stream(task.keys):
        for to_rows, to_cols, values in chosen_of(store.layout, key, tile, chosen["rows"], chosen["cols"]):
            place = len(parts) // 3
            parts |= {f"{place}-rows": to_rows, f"{place}-cols": to_cols, f"{place}-values": values}
    if letters.has(CHOSEN):  # else it is over: somebody else was sooner
        letters.write(_answer(task.number), parts)
    return len(task.keys)


@dataclass(frozen=True)
class DigestTask:
    """The digests of some rows of one block."""

    store: str
    identity: str
    block: int
    rows: tuple[int, ...]  # counted in the block

    may_run_twice: ClassVar[bool] = True

    @property
    def place(self) -> tuple[str, int]:
        return self.identity, self.block


def spread_digests(store: TileStore, rows: Indices, executor: Executor) -> list[bytes]:
    """16 bytes for each of these rows, from all of its values."""
    starts = store.layout.rows.block_starts
    places = by_block(starts, rows)
    tasks = [
        DigestTask(store.url, store.identity, block, tuple((rows[own] - starts[block]).tolist()))
        for block, own in places.items()
    ]
    digests = [b""] * len(rows)
    with closing(executor.run(digest_rows, tasks)) as outcomes:
        for outcome in outcomes:
            if outcome.error is not None:
                raise outcome.error
            assert outcome.result is not None
            for place, digest in zip(places[outcome.task.block].tolist(), outcome.result, strict=True):
                digests[place] = digest
    return digests


def digest_rows(task: DigestTask) -> list[bytes]:
    """On a worker: digests of the rows of one block, value by value in order."""
    store, reader = shared_reader(task.store, task.identity)
    layout, rows = store.layout, np.array(task.rows, np.int64)
    digests = [blake2b(digest_size=DIGEST_BYTES) for _ in task.rows]
    mirrored = [layout.is_symmetric and task.block > j for j in range(layout.cols.n_blocks)]
    keys = [(j, task.block) if turned else (task.block, j) for j, turned in enumerate(mirrored)]
    for turned, (_, tile) in zip(mirrored, reader.stream(keys), strict=True):
        side: Any = tile.T if turned else tile
        for digest, line in zip(digests, np.ascontiguousarray(side[rows]), strict=True):
            digest.update(line.data)
    return [digest.digest() for digest in digests]


def _answer(number: int) -> str:
    return f"entries-{number}"


_chosen: Cache[Arrays] = Cache(LETTERS_KEPT)
