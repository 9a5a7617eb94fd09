"""The parameters of the Gaussian-process labeler, checked before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramline.learners.errors import LearnerParameterError
from gramline.learners.parameters import is_number, is_whole_number, require_whole_number

NAMED_OFFSETS: dict[str, tuple[int, ...]] = {"GPSL1": (-1,), "GPSL2": (-1, 1), "GPSL4": (-2, -1, 1, 2)}
LARGEST = float(np.finfo(float).max)  # a whole number of Python may be beyond it

CHOICES: dict[str, tuple[str | None, ...]] = {
    "bound": ("expected", "jensen"),
    "learn_scale": (None, "shared", "per_label"),
    "approximation": (None, "nystrom"),
    "variance": ("auto", "exact", "none"),
    "decoding": ("refined", "viterbi"),
}


@dataclass(frozen=True)
class Stopping:
    """When an iteration ends: after `max_steps`, or after a step that changes at most `tolerance`."""

    max_steps: int
    tolerance: float


def named_offsets(offsets: Sequence[int] | str) -> tuple[int, ...]:
    """The offsets behind a name, or the given ones, checked: whole numbers, not 0, no repeats."""
    if isinstance(offsets, str):
        if offsets.upper() not in NAMED_OFFSETS:
            raise LearnerParameterError(
                f"offsets must be numbers or one of {', '.join(NAMED_OFFSETS)}, got {offsets!r}"
            )
        return NAMED_OFFSETS[offsets.upper()]
    if not isinstance(offsets, Sequence | np.ndarray):
        raise LearnerParameterError(f"offsets must be a list of whole numbers, got {offsets!r}")
    found: tuple[Any, ...] = tuple(offsets)
    if not all(map(is_whole_number, found)):
        raise LearnerParameterError(f"offsets must be whole numbers, got {found}")
    if 0 in found:
        raise LearnerParameterError(f"offsets must not contain 0, a position is no neighbour of itself; got {found}")
    if len(set(found)) != len(found):
        raise LearnerParameterError(f"offsets must not repeat, got {found}")
    return tuple(int(offset) for offset in found)


def check_parameters(params: Mapping[str, Any]) -> tuple[int, ...]:
    """The offsets, after checking every parameter of the labeler."""
    offsets = named_offsets(params["offsets"])
    for key in ("scale", "tolerance", "refinement_tolerance"):
        if not (is_number(params[key]) and 0 < params[key] <= LARGEST):
            raise LearnerParameterError(f"{key} must be a positive number, got {params[key]!r}")
    if not (is_number(params["jitter"]) and 0 <= params["jitter"] <= LARGEST):
        raise LearnerParameterError(f"jitter must be a number of at least 0, got {params['jitter']!r}")
    for key, allowed in CHOICES.items():
        if params[key] not in allowed:
            raise LearnerParameterError(f"{key} must be one of {allowed}, got {params[key]!r}")
    for key in ("max_sweeps", "max_refinements") + (("rank",) if params["approximation"] else ()):
        require_whole_number(params[key], key)
    if not isinstance(params["learn_kernel"], bool):
        raise LearnerParameterError(f"learn_kernel must be true or false, got {params['learn_kernel']!r}")
    if params["learn_kernel"] and params["approximation"] is not None:
        raise LearnerParameterError("learn_kernel needs the exact covariance; leave approximation out")
    if not (is_number(params["missing"]) and 0 <= params["missing"] < 1):
        raise LearnerParameterError(f"missing must be a fraction of at least 0 and below 1, got {params['missing']!r}")
    require_whole_number(params["seed"], "seed", least=0)
    if params["rank"] is not None and params["approximation"] is None:
        raise LearnerParameterError(f'rank={params["rank"]!r} means nothing without approximation="nystrom"')
    if params["decoding"] == "viterbi" and offsets != (-1,):
        raise LearnerParameterError(f'decoding="viterbi" needs offsets=(-1,), got {offsets}')
    return offsets
