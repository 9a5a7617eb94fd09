"""Types of parameters that several learners declare, beside those of `gramline.kernels.parameters`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

Unlabeled = Annotated[Literal["error", "drop"], '`"drop"` leaves structures with an unlabeled position out']
Loss = Annotated[Literal["none", "hamming"], '`"hamming"` counts wrong positions']


def is_listed(value: Any) -> bool:
    """Several values one after another: a list, an array, a generator.

    Text would fall into characters, bytes into numbers and a mapping into its keys: they are none.
    """
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)
