"""How close is equal, one number per dtype."""

import numpy as np

RELATIVE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 2e-6}


def assert_close(actual: object, expected: object) -> None:
    """Equal to the rounding of the coarser dtype, relative to the largest entry."""
    a, b = np.asarray(actual), np.asarray(expected)
    dtype = np.float32 if np.float32 in (a.dtype, b.dtype) else np.float64
    scale = float(np.max(np.abs(b), initial=0.0)) or 1.0
    np.testing.assert_allclose(a, b, rtol=RELATIVE[np.dtype(dtype)], atol=RELATIVE[np.dtype(dtype)] * scale)
