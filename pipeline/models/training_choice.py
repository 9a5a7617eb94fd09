"""Store the tiles or compute them: the ways to train on a planned matrix, priced with the speeds of this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from tempfile import gettempdir
from typing import Self

from gramline.kernels.base import Kernel
from gramline.learners.estimator import Learner
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.executors.base import Executor, InlineExecutor
from gramline.pipeline.gram.alternatives import Alternative, Machines, alternatives
from gramline.pipeline.gram.build import GramBuild
from gramline.pipeline.gram.forecast import Product, measure_speeds
from gramline.pipeline.gram.room import free_bytes
from gramline.pipeline.models.demand import Demand, measure_demand, seconds_per_value

WORTH_MEASURING = 10.0  # seconds of all kernel values; comparing ways takes two or three
# A store must be cheaper by more than a plan may be wrong: the same training, run again, then goes the same way, and
# finds its checkpoint.
CLEARLY = 1.5


@dataclass(frozen=True)
class Choice:
    """Whether tiles are stored for a training that nobody wants a store of, and why."""

    stores: bool
    why: str

    def __str__(self) -> str:
        what = "tiles are stored for this training" if self.stores else "no tile is stored, values are computed"
        return f"{what}: {self.why}"

    @classmethod
    def among(cls, ways: Sequence[Alternative]) -> Self:
        """Of all tiles and none."""
        seconds = {way.keep: way.seconds for way in ways if way.keep == "none" or way.fits}
        if "all" not in seconds:
            return cls(False, "the disk has no room for the tiles")
        stored, computed = seconds["all"], seconds["none"]
        return cls(CLEARLY * stored < computed, f"about {stored:,.0f} s with a store, {computed:,.0f} s without")


def choose_way(kernel: Kernel, corpus: Corpus, learner: Learner) -> Choice:
    """For a temporary store on this machine; measured on samples where that is little beside the training."""
    if learner.is_lazy:  # asks for about as many values as a build
        n_rows = corpus.n_positions if kernel.per_position else len(corpus)
        seconds = n_rows**2 * seconds_per_value(kernel, corpus)
        if seconds < WORTH_MEASURING:
            return Choice(False, f"all of them take about {seconds:.1f} s")
    demand = measure_demand(learner, kernel, corpus, merges=True)
    build = GramBuild(kernel, corpus, None)
    return Choice.among(training_alternatives(build, InlineExecutor(), demand, Machines(), free_bytes(gettempdir())))


def training_alternatives(
    build: GramBuild, executor: Executor, demand: Demand, machines: Machines, free_bytes: int | None
) -> list[Alternative]:
    """Side by side, the quickest of those that fit marked; a few tiles are computed, written and read to measure."""
    layout = build.layout
    whole = replace(build.plan, n_tiles=layout.n_tiles)
    n_columns = max(1, round(demand.columns / max(1.0, demand.passes)))
    speeds = measure_speeds(build, executor, build.place, Product(n_columns, demand.precision))
    return alternatives(whole, layout.shape[0], speeds, demand, machines, free_bytes)
