from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gramline.kernels import Identity
from gramline.kernels.positions import PositionKernel
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.models.demand import Demand, _CountingGram, extrapolated, measure_demand

KERNEL = PositionKernel(Identity())
CORPUS = generate_saleslog(12)
SMALL = Demand(passes=10, columns=100, values=2.0, stored_seconds=1.0, computed_seconds=1.0)


def test_amounts_go_on_by_the_power_they_grew_with() -> None:
    large = replace(SMALL, passes=10, columns=200, values=1.0, stored_seconds=4.0, computed_seconds=1.0)
    grown = extrapolated(SMALL, large, [100, 400, 1600])
    assert grown.passes == pytest.approx(10)
    assert grown.columns == pytest.approx(400)  # at most by the root
    assert grown.values == pytest.approx(0.5)
    assert grown.stored_seconds == pytest.approx(16)
    assert grown.computed_seconds == pytest.approx(2)  # at least by the root


def test_iterations_that_began_to_grow_grow_faster_but_not_than_the_root() -> None:
    large = replace(SMALL, passes=10 * 4**0.25)
    grown = extrapolated(SMALL, large, [100, 400, 1600])
    assert large.passes * 4**0.25 < grown.passes < large.passes * 4**0.5


def test_a_corpus_as_small_as_the_sample_is_told_as_measured() -> None:
    assert extrapolated(SMALL, replace(SMALL, passes=20), [100, 400, 400]).passes == 20


def test_a_solve_reads_all_tiles_in_every_iteration() -> None:
    learner = KernelZScoreLabeler(ridge=0.1, transition_ridge=1.0)
    solved = learner.fresh().fit(DenseGram.of(KERNEL, CORPUS), CORPUS.labels)
    demand = measure_demand(learner, KERNEL, CORPUS)
    assert demand.passes == solved.iterations_ + 1  # and one for the true residual
    assert demand.values == demand.passes / 2
    assert demand.precision == "float64"
    assert demand.stored_seconds == demand.computed_seconds


def test_products_in_single_precision_are_told() -> None:
    learner = KernelZScoreLabeler(ridge=0.1, precision="single", tolerance=1e-3)
    assert measure_demand(learner, KERNEL, CORPUS).precision == "float32"


def test_a_lazy_learner_computes_fewer_values_than_it_reads() -> None:
    demand = measure_demand(HiddenMarkovPerceptron(2, dual=True), KERNEL, CORPUS)
    assert demand.columns == 0
    assert 0 < demand.values < demand.passes


def test_a_tile_serves_both_of_its_sides() -> None:
    gram = _CountingGram(np.eye(4), [1, 1, 1, 1], block_rows=1)
    gram.select(np.arange(4), np.arange(2))
    assert gram.n_reads == 7  # of 10: three of them hold only G[2:, 2:]
