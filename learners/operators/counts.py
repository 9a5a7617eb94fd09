"""How many kernel values this process has computed. Learners know no pipeline; whoever tells costs reads it here.

Tested in tests/pipeline/test_cost.py.
"""

from __future__ import annotations

from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Values = TypeVar("Values", bound=NDArray[np.generic])


class ComputedCount:
    """Tiles and kernel values computed since the process began; safe from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._tiles, self._values = 0, 0

    def add(self, values: int) -> None:
        """One more tile, of so many values."""
        with self._lock:
            self._tiles, self._values = self._tiles + 1, self._values + values

    def now(self) -> tuple[int, int]:
        """Tiles and values so far."""
        with self._lock:
            return self._tiles, self._values


computed = ComputedCount()


def counted(tile: Values) -> Values:
    """The tile itself; rows x columns are counted as computed."""
    computed.add(tile.size)
    return tile
