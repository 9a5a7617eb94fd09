"""The routes of the Z-score on explicit features, timed beside what each of them saves.

`pytest -m benchmark -s tests/benchmarks/test_zscore_routes.py` prints the table of docs/design-notes.md; a small
untimed version runs by default.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

from gramline.learners.arrays import Floats
from gramline.learners.linear_algebra import cholesky
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule, block_conjugate_gradient
from gramline.learners.zscore import emissions
from gramline.learners.zscore.emissions import EmissionSystem, Solver
from gramline.learners.zscore.labeler import _Training
from gramline.pipeline import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.experiments.zscore_ner import FEATURES

DATA = Path(os.environ.get("GRAMLINE_DATA", Path(__file__).parents[3] / "shared" / "data"))
STOPPING = StoppingRule(1e-6, 5000)
TIMES = 2
EVER = 10**9


def training_sets(sizes: list[int]) -> dict[str, _Training]:
    """The first sentences of the named entities with spelling features where the data is there, else sales logs."""
    path = DATA / "conll2002_es" / "esp.train.first300"
    if path.exists():
        words, spelling = (read_conll(path, features=features).packed() for features in FEATURES.values())
        sets = {"S1, 300 sentences": words} if len(sizes) > 1 else {}
        sets |= {f"S2, {size} sentences": spelling.structures(0, size) for size in sizes}
        return {name: _Training(packed) for name, packed in sets.items()}
    corpus = generate_saleslog(max(sizes))
    packed = Corpus.from_sequences([[[str(token)] for token in tokens] for tokens in corpus.tokens], corpus.labels)
    return {f"sales log, {size} sentences": _Training(packed.packed().structures(0, size)) for size in sizes}


def routes(training: _Training, ridge: float) -> dict[str, Callable[[], Floats]]:
    """Every route from the features to the weights, and what is left when its idea is taken out."""
    system = training.system

    def solve(solver: Solver, **constants: Any) -> Floats:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in constants.items():
                patch.setattr(cholesky if name == "SMALL" else emissions, name, value)
            return EmissionSystem(system.features, system.sides, system.n_labels).solve(ridge, solver, STOPPING)

    return {
        "auto": lambda: solve("auto"),
        "dense": lambda: solve("direct"),
        "local": lambda: solve("auto", FACTOR_SMALLEST=0, FACTOR_LIMIT=EVER, FACTOR_LARGEST=EVER),
        "local, double": lambda: solve("auto", FACTOR_SMALLEST=0, FACTOR_LIMIT=EVER, FACTOR_LARGEST=EVER, SMALL=EVER),
        "cg": lambda: solve("cg"),
        "cg, no heads": lambda: solve("cg", HEAD=0),
        "cg, all features": lambda: plain_gradients(system, ridge),
    }


def plain_gradients(system: EmissionSystem, ridge: float) -> Floats:
    """Conjugate gradients with F as it is, scaled to a unit diagonal."""
    features, n = system.features, system.n_labels
    rows = features.T.tocsr()
    scales = 1.0 / np.sqrt(np.asarray(features.power(2).sum(axis=0)).ravel() / n + ridge)[:, None]

    def apply(block: Floats) -> Floats:
        weights = scales * block
        return np.asarray(scales * (np.asarray(rows @ (features @ weights)) / n + ridge * weights))

    (solution,) = block_conjugate_gradient(apply, scales * np.asarray(rows @ system.sides), stopping=STOPPING)
    return np.asarray(scales * solution.trusted("the plain system"))


def test_all_routes_give_the_same_weights() -> None:
    (training,) = training_sets([8]).values()
    weights = {name: route() for name, route in routes(training, 0.1).items()}
    for name, value in weights.items():
        np.testing.assert_allclose(value, weights["dense"], atol=1e-4 * np.abs(weights["dense"]).max(), err_msg=name)


@pytest.mark.benchmark
@pytest.mark.timeout(1200)
def test_times_of_the_routes(capsys: pytest.CaptureFixture[str]) -> None:
    """Processor seconds, the least of two, in turns, with one BLAS thread."""
    lines: list[str] = []
    worst = 0.0
    for name, training in training_sets([30, 100, 300]).items():
        is_large = training.features.shape[1] > 5000 and len(training.statistics.codes) > 5000
        for ridge in (1e-3, 0.1, 1.0) if is_large else (1e-3, 1.0):
            chosen = routes(training, ridge)
            if is_large:
                del chosen["dense"]  # 20 s
            if is_large and ridge < 0.1:
                del chosen["cg, all features"]  # 30 s
            taken: dict[str, float] = dict.fromkeys(chosen, np.inf)
            with one_blas_thread():
                for _ in range(TIMES):
                    for route, solve in chosen.items():
                        begin = process_time()
                        solve()
                        taken[route] = min(taken[route], process_time() - begin)
            if not lines:
                lines += [f"| features | ridge | {' | '.join(chosen)} |", "|---" * (len(chosen) + 2) + "|"]
            figures = [f"{taken[route]:.3f}" if route in taken else "" for route in routes(training, ridge)]
            lines.append(f"| {name} | {ridge:g} | {' | '.join(figures)} |")
            worst = max(worst, taken["auto"] / min(taken.values()))
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert worst < 2.0, "the route that is chosen is near the best one"
