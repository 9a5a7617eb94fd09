"""The job that all faults befall, the store it makes when nothing disturbs it, and how a disturbed one is compared."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from chaos.reliability import Ledger

from gramline.kernels import SequenceLabeling
from gramline.learners import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.events import Event, Listener, TileDone, silent
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.strays import sweep_partial

KERNEL = SequenceLabeling(c=0.7, gap=0.3)
BLOCK_ROWS = 64


def sentences(n: int, seed: int) -> Corpus:
    draw = random.Random(seed)
    X = [draw.choices("abcdefgh", k=draw.randint(1, 30)) for _ in range(n)]
    return Corpus.from_sequences(X, [[draw.choice(("O", "B")) for _ in tokens] for tokens in X])


def tiles(store: Path) -> dict[str, bytes]:
    """Every finished tile by name; temporary files are none."""
    folder = store / "tiles" / "c"
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".partial")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def learned(store: Path, corpus: Corpus) -> np.ndarray:
    """What a learner makes of the stored matrix."""
    return LabelingPerceptron(rounds=2).fit(StoredGram.open(store), corpus.labels).alpha_


@dataclass
class Calm:
    """A corpus, its store, and what a learner found in it."""

    corpus: Corpus
    store: Path
    tiles: dict[str, bytes] = field(default_factory=dict)
    alpha: np.ndarray | None = None

    @classmethod
    def of(cls, folder: Path, n_structures: int, seed: int) -> Calm:
        corpus, store = sentences(n_structures, seed), folder / "calm.zarr"
        corpus.save(folder / "corpus.parquet")
        build_gram(KERNEL, corpus, store, block_rows=BLOCK_ROWS)
        return cls(corpus, store, tiles(store), learned(store, corpus))

    @property
    def corpus_path(self) -> Path:
        return self.store.with_name("corpus.parquet")

    def damage(self, store: Path) -> tuple[int, int]:
        """(tiles lost, tiles wrong) of a store that should be the same."""
        found = tiles(store)
        lost = len(self.tiles.keys() - found.keys())
        return lost, sum(found.get(name, content) != content for name, content in self.tiles.items()) + len(
            found.keys() - self.tiles.keys()
        )

    def build(self, store: Path, executor: Executor | None = None, progress: Listener = silent) -> None:
        """The same job into another store, or further on in it."""
        build_gram(KERNEL, self.corpus, store, block_rows=BLOCK_ROWS, executor=executor, progress=progress)

    def settle(self, store: Path, ledger: Ledger, fault: str, *, times: int = 1, seconds: float | None = None) -> None:
        """Note what a fault did; then the store must be the same, byte for byte, and so must what a learner finds."""
        sweep_partial(str(store), older_than=0.0)  # of killed writers: ignored by everybody, removed once they are old
        lost, wrong = self.damage(store)
        ledger.note(fault, times=times, lost=lost, wrong=wrong, seconds=seconds)
        assert times > 0
        assert (lost, wrong) == (0, 0)
        np.testing.assert_array_equal(learned(store, self.corpus), self.alpha)


class Disturber:
    """A listener that calls `fault` at given tiles, and times how long it takes until the next tile is finished."""

    def __init__(self, at: set[int], fault: Callable[[TileDone], bool]) -> None:
        self.at, self._fault = at, fault
        self.times = 0
        self.recovered: list[float] = []
        self._struck: float | None = None

    def __call__(self, event: Event) -> None:
        if not isinstance(event, TileDone):
            return
        if self._struck is not None:
            self.recovered.append(time.monotonic() - self._struck)
            self._struck = None
        if event.n_done in self.at and self._fault(event):
            self.times += 1
            self._struck = time.monotonic()

    @property
    def slowest(self) -> float | None:
        return max(self.recovered, default=None)


def worker_process(event: TileDone) -> int:
    """The process that computed a tile; TileReport.worker is host:process."""
    return int(event.report.worker.rpartition(":")[2])
