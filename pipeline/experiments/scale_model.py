"""What a training without a stored matrix would take on clusters that are not here: from measured sizes, by arithmetic.

Kernel values V, the client's processor time and the memory of every process are taken to go on as they grew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gramline.pipeline.experiments.scale_computed_size import ComputedSize
from gramline.pipeline.gram.updates import MOST_PARTS, PART_VALUES

SCHEDULER_SECONDS = 0.002  # for one task, as Dask says of itself
PARALLEL_LIMIT = 4 * MOST_PARTS  # parts of all coming visits that are under way at a time
MEMORY_LIMIT = 8e9  # bytes of a client's or a worker's process
USUAL_POWERS = (2.0, 1.0)  # of the values and of linear things, where there is only one size


@dataclass(frozen=True)
class Growth:
    """a N^p, from measured sizes; as it is, where only one is there."""

    factor: float
    power: float

    @classmethod
    def of(cls, sizes: Sequence[int], values: Sequence[float], usual: float) -> Growth:
        if len(sizes) < 2:
            return cls(values[0] / sizes[0] ** usual, usual)
        slope, begin = np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)
        return cls(float(np.exp(begin)), float(slope))

    def at(self, n_positions: int) -> float:
        return float(self.factor * n_positions**self.power)


@dataclass(frozen=True)
class Line:
    """a + b N of a memory that has something from the start."""

    begin: float
    slope: float

    @classmethod
    def of(cls, sizes: Sequence[int], values: Sequence[float], begin: float) -> Line:
        """Through what is there before, and the largest size."""
        return cls(begin, max(0.0, (values[-1] - begin) / sizes[-1]))

    def at(self, n_positions: int) -> float:
        return self.begin + self.slope * n_positions


@dataclass(frozen=True)
class Told:
    """Of one training on one cluster."""

    core_hours: float
    hours: float  # of workers that are always busy
    client_hours: float
    scheduler_hours: float
    client_gigabytes: float
    worker_gigabytes: float
    breaks_first: str


@dataclass(frozen=True)
class ScaleModel:
    """Growth of everything that one training needs."""

    values: Growth
    worker_seconds: Growth  # of processors
    client_seconds: Growth
    client: Line
    worker: Line
    rounds: int
    block_rows: float
    largest: int  # measured

    @classmethod
    def of(cls, results: Sequence[ComputedSize]) -> ScaleModel:
        sizes = [size.n_positions for size in results]
        last = results[-1]
        square, linear = USUAL_POWERS
        return cls(
            Growth.of(sizes, [float(size.values) for size in results], square),
            Growth.of(sizes, [size.busy["training"] - size.client_seconds for size in results], square),
            Growth.of(sizes, [size.client_seconds for size in results], linear),
            Line.of(sizes, [float(size.peaks["client"]) for size in results], float(last.at_rest["client"])),
            Line.of(sizes, [float(size.peaks["worker"]) for size in results], float(last.at_rest["worker"])),
            len(last.mistakes),
            last.n_positions / last.n_blocks,
            last.n_positions,
        )

    def n_tasks(self, n_positions: int) -> float:
        """Parts of all orders: two orders for each visit, the first of which has nearly all values."""
        n_visits = self.rounds * n_positions / self.block_rows
        values = self.values.at(n_positions) / n_visits
        return n_visits * (1 + min(MOST_PARTS, max(1.0, values / PART_VALUES)))

    def at(self, n_positions: int, cores: int) -> Told:
        seconds = self.worker_seconds.at(n_positions)
        client, scheduler = self.client_seconds.at(n_positions), self.n_tasks(n_positions) * SCHEDULER_SECONDS
        hours = seconds / min(cores, PARALLEL_LIMIT) / 3600
        client_bytes, worker_bytes = self.client.at(n_positions), self.worker.at(n_positions)
        reasons = {
            "memory of the client": client_bytes / MEMORY_LIMIT,
            "memory of the workers": worker_bytes / MEMORY_LIMIT,
            "time of the client": client / 3600 / hours,
            "time of the scheduler": scheduler / 3600 / hours,
            "parts that are under way": cores / PARALLEL_LIMIT,
        }
        worst = max(reasons, key=lambda reason: reasons[reason])
        return Told(
            seconds / 3600,
            hours,
            client / 3600,
            scheduler / 3600,
            client_bytes / 1e9,
            worker_bytes / 1e9,
            worst if reasons[worst] > 1 else "nothing: the workers are what it waits for",
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            f"from {self.largest:,} positions on: kernel values grow as N^{self.values.power:.2f}, processor time of "
            f"the workers as N^{self.worker_seconds.power:.2f}, of the client as N^{self.client_seconds.power:.2f}; "
            f"memory of the client by {self.client.slope:,.0f} bytes a position, of a worker by "
            f"{self.worker.slope:,.0f}",
            f"hours of the scheduler: {SCHEDULER_SECONDS * 1000:.0f} ms for each task; at most {MOST_PARTS} parts of "
            f"each order, {PARALLEL_LIMIT:,} under way",
            f"what breaks first: the first of these to exceed the hours of the workers, {MEMORY_LIMIT / 1e9:.0f} GB of "
            "memory, or the parts that there are",
        )
