"""Parts of a pass that only take their time, and a hundred workers in one process to take it on.

`python sleeping_parts.py ADDRESS COUNT FOLDER` starts so many one-thread workers of the scheduler at that address.
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


def nap(part: Nap) -> int:
    time.sleep(part.seconds)
    return part.number


async def work(address: str, count: int, folder: str) -> None:
    """So many workers, until the scheduler goes."""
    from distributed import Worker

    workers: list[Any] = [
        Worker(address, nthreads=1, memory_limit=0, local_directory=folder, dashboard=False, host="127.0.0.1")
        for _ in range(count)
    ]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
