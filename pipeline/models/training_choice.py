"""Store the tiles or compute them: the ways to train on a planned matrix, priced with the speeds of this machine."""

from __future__ import annotations

from dataclasses import replace

from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.alternatives import Alternative, Machines, alternatives
from gramline.pipeline.gram.build import GramBuild
from gramline.pipeline.gram.forecast import Product, measure_speeds
from gramline.pipeline.models.demand import Demand


def training_alternatives(
    build: GramBuild, executor: Executor, demand: Demand, machines: Machines, free_bytes: int | None
) -> list[Alternative]:
    """Side by side, the quickest of those that fit marked; a few tiles are computed, written and read to measure."""
    layout = build.layout
    whole = replace(build.plan, n_tiles=layout.n_tiles)
    n_columns = max(1, round(demand.columns / max(1.0, demand.passes)))
    speeds = measure_speeds(build, executor, build.place, Product(n_columns, demand.precision))
    return alternatives(whole, layout.shape[0], speeds, demand, machines, free_bytes)
