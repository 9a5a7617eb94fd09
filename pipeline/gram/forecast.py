"""What is said of a build before anything runs: tiles, bytes, memory and time, and what its kernel is not good for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.substitution import Substitution
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.pack import FEATURE_SET_MARK
from gramline.pipeline.gram.build import GramBuild
from gramline.pipeline.gram.plan import Plan, time_sample_tiles


@dataclass(frozen=True)
class Forecast:
    """A plan, and the seconds one kernel value takes here."""

    plan: Plan
    shape: tuple[int, int]
    block_rows: int
    seconds_per_cell: float

    @classmethod
    def of(cls, build: GramBuild) -> Forecast:
        """The plan of a build and its pace, from a few sample tiles."""
        layout, plan = build.layout, build.plan

        def read_block(number: int, of_columns: bool) -> Any:
            return build.read_block(number, of_columns=of_columns)

        per_cell = time_sample_tiles(build.kernel, layout, build.dtype, read_block)
        return cls(plan, layout.shape, layout.rows.block_rows, per_cell)

    def to_dict(self, n_threads: int) -> dict[str, Any]:
        plan = self.plan
        return {
            "shape": list(self.shape),
            "block_rows": self.block_rows,
            "tiles": plan.n_tiles,
            "present": plan.n_present,
            "to_compute": len(plan.tasks),
            "tile_bytes": plan.tile_bytes,
            "stored_bytes": plan.stored_bytes,
            "peak_bytes": plan.peak_bytes,
            "cells": plan.cells,
            "threads": n_threads,
            "seconds": plan.seconds(self.seconds_per_cell, n_threads),
        }


def kernel_notes(kernel: Kernel, corpus: Corpus) -> Iterator[str]:
    """What a user should know of a kernel on a corpus: values that are right and of little use, and what to do."""
    observation = kernel.observation if isinstance(kernel, PositionLabeling) else None
    if isinstance(observation, Substitution) and not observation.is_positive_semidefinite:
        smallest = observation.smallest_eigenvalue
        yield (
            f"the substitution matrix is not positive semidefinite (smallest eigenvalue {smallest:.3g}), as published "
            "ones are not: learners that solve with the Gram matrix may refuse it, and perceptrons learn badly from "
            f"it; take exp(0.15 (s_ab - (s_aa + s_bb) / 2)) of its entries s, or add {-smallest:.3g} to its diagonal"
        )
    if isinstance(observation, Identity):
        packed = corpus.packed()
        is_set = np.array([name.startswith(FEATURE_SET_MARK) for name in packed.vocabulary.symbols], dtype=bool)
        alone = int(np.count_nonzero(is_set & (np.bincount(packed.observed, minlength=len(is_set)) == 1)))
        if alone > packed.n_positions / 2:
            yield (
                f"identity compares feature sets as a whole, and {alone:,} of {packed.n_positions:,} positions have "
                "one that is nowhere else: nothing can be learned for new ones; the observation kernels linear and "
                "polynomial:degree=2,normalized=true compare them feature by feature (--observation, or [kernel] of "
                "a job file)"
            )
