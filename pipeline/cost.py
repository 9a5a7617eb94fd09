"""What work costs: time, processor seconds, kernel values, tiles, bytes and memory, of this process and its workers.

One line counts where a tile is read, written or computed, and `measured` tells the difference. A worker hands what its
process spent back with the result of a task; the executor adds that to the meter of its own process.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from threading import Lock
from time import perf_counter, process_time
from typing import Any, TypeVar

from gramline.kernels.parameters import plain_value
from gramline.kernels.value_kinds import Number
from gramline.learners.operators.counts import computed
from gramline.pipeline.errors import InputError

Result = TypeVar("Result")
STATUS = Path("/proc/self/status")
AMOUNT, WHOLE = Number(least=0), Number(least=0, whole=True)


@dataclass(frozen=True)
class Cost:
    """What something took. Costs add up; of two peaks the higher one counts.

    >>> from gramline.pipeline.cost import Cost
    >>> both = Cost(processor_seconds=1800.0, peak_bytes=5) + Cost(processor_seconds=5400.0, peak_bytes=3)
    >>> both.peak_bytes, both.money(0.05)
    (5, 0.1)
    """

    wall_seconds: float = 0.0
    processor_seconds: float = 0.0  # of this process, and of workers while they ran its tasks
    kernel_values: int = 0  # computed, rows x columns of every tile
    tiles_computed: int = 0
    tiles_kept: int = 0  # written to a store
    tiles_read: int = 0
    bytes_read: int = 0  # of tiles, before compression
    bytes_written: int = 0
    peak_bytes: int = 0  # memory of the largest process since it began; 0 where the system does not tell

    def __add__(self, other: Cost) -> Cost:
        sums = {name: value + vars(other)[name] for name, value in vars(self).items()}
        return Cost(**sums | {"peak_bytes": max(self.peak_bytes, other.peak_bytes)})

    def since(self, before: Cost) -> Cost:
        """What came to `before`; the peak is that of the whole."""
        rest = {name: value - vars(before)[name] for name, value in vars(self).items()}
        return Cost(**rest | {"peak_bytes": self.peak_bytes})

    @property
    def tiles_not_kept(self) -> int:
        """Tiles that were computed, used and dropped."""
        return max(0, self.tiles_computed - self.tiles_kept)

    def money(self, price: float) -> float:
        """Of all processor hours, where one costs `price`."""
        return self.processor_seconds / 3600 * price

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, numbers: Mapping[str, Any]) -> Cost:
        """What `to_dict` gave; keys of later versions are ignored, a value that is no amount is refused."""
        if not isinstance(numbers, Mapping):
            raise InputError(f"a cost must be a table of numbers, got {numbers!r}")
        kinds = {one.name: AMOUNT if isinstance(one.default, float) else WHOLE for one in fields(cls)}
        return cls(
            **{
                name: plain_value(name, kind, numbers[name], InputError)
                for name, kind in kinds.items()
                if name in numbers
            }
        )


def peak_bytes() -> int:
    """The largest resident size of this process so far; of the program it is now, not of the one that started it."""
    if STATUS.is_file():
        for line in STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    try:
        import resource  # not on Windows
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def this_process() -> str:
    """host:process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class Meter:
    """What this process has counted since it began, and what workers have told it; safe from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted = Cost()

    def add(self, **counts: int) -> None:
        """Count something, by the names of a cost."""
        self.add_cost(Cost(**counts))

    def add_cost(self, cost: Cost) -> None:
        with self._lock:
            self._counted += cost

    def add_share(self, share: Cost, process: str) -> None:
        """What a worker told; one that lives in this very process has been counted already."""
        if process != this_process():
            self.add_cost(share)

    def total(self) -> Cost:
        """Everything until now; the clocks begin anywhere."""
        tiles, values = computed.now()
        own = Cost(perf_counter(), process_time(), values, tiles, peak_bytes=peak_bytes())
        with self._lock:
            return self._counted + own


meter = Meter()  # of this process


class Spent:
    """What is spent since this was made, until it is stopped."""

    def __init__(self) -> None:
        self._begin = meter.total()
        self._end: Cost | None = None

    @property
    def cost(self) -> Cost:
        return (self._end or meter.total()).since(self._begin)

    def stop(self) -> None:
        self._end = self._end or meter.total()


@contextmanager
def measured() -> Iterator[Spent]:
    """What is spent in the block: `cost` tells it, inside so far and afterwards in all.

    >>> from gramline.pipeline.cost import measured, meter
    >>> with measured() as spent:
    ...     meter.add(tiles_read=1, bytes_read=800)
    >>> spent.cost.tiles_read, spent.cost.bytes_read
    (1, 800)
    """
    spent = Spent()
    try:
        yield spent
    finally:
        spent.stop()


class Shares:
    """What a worker process spends while it runs tasks, told by the tasks that end: everything once.

    A task may have its tiles read by other threads, so the times and counts of its own thread are not all of its cost.
    Tasks side by side tell what they spent together: whichever ends first tells all until then, the next one the rest.
    A task that raises tells nothing.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_running = 0
        self._told = Cost()

    def run(self, action: Callable[[], Result]) -> tuple[Result, Cost]:
        """The result of a task, and what this process spent since it was told last, or since it had nothing to do."""
        with self._lock:
            if not self._n_running:
                self._told = meter.total()
            self._n_running += 1
        try:
            result = action()
        finally:
            with self._lock:
                self._n_running -= 1
                now = meter.total()
                share, self._told = now.since(self._told), now
        return result, replace(share, wall_seconds=0.0)


shares = Shares()  # of this process
