"""Which columns equal each row, for kernels that visit equal pairs alone."""

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Ints, Offsets


class EqualColumns(NamedTuple):
    """Row i equals columns[starts[codes[i]]:starts[codes[i] + 1]], in ascending order."""

    codes: Ints  # shape (n_rows,)
    starts: Offsets  # shape (n_codes + 1,)
    columns: Ints
    n_equal: int  # number of equal pairs


@jit
def list_equal_columns(rows: Ints, cols: Ints) -> EqualColumns:
    """The columns that each row equals, listed once per code."""
    highest = -1
    for code in rows:
        highest = max(highest, code)
    for code in cols:
        highest = max(highest, code)
    local = np.empty(highest + 1, np.int32)  # only codes that occur are set: the alphabet may be far larger
    for code in rows:
        local[code] = -1
    for code in cols:
        local[code] = -1
    codes = np.empty(len(rows), np.int32)
    n_codes = 0
    for i in range(len(rows)):
        if local[rows[i]] < 0:
            local[rows[i]] = n_codes
            n_codes += 1
        codes[i] = local[rows[i]]
    starts = np.zeros(n_codes + 1, np.int64)
    for code in cols:
        if local[code] >= 0:
            starts[local[code] + 1] += 1
    for code in range(n_codes):
        starts[code + 1] += starts[code]
    free = starts.copy()
    columns = np.empty(starts[n_codes], np.int32)
    for t in range(len(cols)):
        code = local[cols[t]]
        if code >= 0:
            columns[free[code]] = t
            free[code] += 1
    n_equal = 0
    for code in codes:
        n_equal += starts[code + 1] - starts[code]
    return EqualColumns(codes, starts, columns, n_equal)
