"""Parts of a pass that only take their time, and a hundred workers in one process to take it on.

`python sleeping_parts.py ADDRESS COUNT FOLDER` starts so many one-thread workers of the scheduler at that address.
What every worker does for itself, whether it has tasks or not, would be done a hundred times by one interpreter here:
samples of its stack, ten times a second, and of the machine, twice a second. It is switched off.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Nap:
    """One part."""

    number: int
    seconds: float
    place: Any = None

    may_run_twice: ClassVar[bool] = True
    may_be_bundled: ClassVar[bool] = True


@dataclass(frozen=True)
class SingleNap(Nap):
    """One that travels alone."""

    may_be_bundled: ClassVar[bool] = False


def tile_nap(part: Nap) -> int:
    time.sleep(part.seconds)
    return part.number


def square_nap(part: Nap) -> int:
    """Under a name of its own: how long tasks take is known by the names of their functions."""
    return tile_nap(part)


def order_nap(part: Nap) -> int:
    """As above."""
    return tile_nap(part)


async def work(address: str, count: int, folder: str) -> None:
    """So many workers, until the scheduler goes."""
    import dask
    from distributed import Worker

    dask.config.set(
        {"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "1 hour"}
    )
    workers: list[Any] = [
        Worker(address, nthreads=1, memory_limit=0, local_directory=folder, dashboard=False, host="127.0.0.1")
        for _ in range(count)
    ]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
