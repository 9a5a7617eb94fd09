"""The arrays that learners pass around, named by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Floats as Floats
from gramline.kernels.packing import Offsets as Offsets

Matrix = NDArray[np.float64]  # shape (n_rows, n_columns)
Indices = NDArray[np.int64]
Counts = NDArray[np.int64]
SmallCounts = NDArray[np.int32]  # of which there are as many as rows times labels
Codes = NDArray[np.int32]  # labels of chains, as packed corpora have them
WideCodes = NDArray[np.int64]  # labels of positions, -1 where missing
Mask = NDArray[np.bool_]
Tile = NDArray[np.floating[Any]]  # float64 or float32, as stored
