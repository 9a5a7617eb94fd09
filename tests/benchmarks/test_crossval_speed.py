"""Five folds times eight settings from one stream of tiles, against forty separate fits from the same store.

A small untimed version runs by default; `pytest -m benchmark -s tests/benchmarks/test_crossval_speed.py` prints times.
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import pytest

from gramline.kernels import Polynomial, SequenceLabeling
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.folds import k_fold
from gramline.pipeline.crossval.training import hide
from gramline.pipeline.crossval.validate import cross_validate, grid
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram

SETTINGS = grid({"rounds": [3, 5, 8, 10], "average": [False, True]})
SHARE = 0.35  # of the time of separate fits


def compared(path: Path, n_sentences: int) -> tuple[float, float, int, int]:
    """Seconds together and one after another, tiles read together and one after another; the same predictions."""
    corpus = generate_saleslog(n_sentences, seed=1)
    kernel = SequenceLabeling(c=0.8, gap=0.5, observation=Polynomial(degree=2, normalized=True))
    store = build_gram(kernel, corpus, path, block_rows=512).store
    folds = k_fold(len(corpus), 5, seed=1)
    gram = StoredGram(store)
    begin = perf_counter()
    result = cross_validate(LabelingPerceptron(), gram, corpus.labels, folds, SETTINGS)
    together = perf_counter() - begin
    alone = StoredGram(store)
    separate = 0.0
    for number, setting in enumerate(SETTINGS):
        for fold, held in enumerate(folds.held_out):
            labels = hide(corpus.labels, held)
            begin = perf_counter()
            predicted = LabelingPerceptron(**setting).fit(alone, labels).predict(alone)
            separate += perf_counter() - begin
            assert result.predictions[number][fold] == [predicted[k] for k in held]
    return together, separate, gram.tile_reads, alone.tile_reads


def test_forty_problems_find_what_forty_fits_find(tmp_path: Path) -> None:
    _, _, shared_reads, separate_reads = compared(tmp_path / "g.zarr", 20)
    assert shared_reads < separate_reads / 5


@pytest.mark.benchmark
def test_forty_problems_take_a_fraction_of_forty_fits(tmp_path: Path) -> None:
    together, separate, shared_reads, separate_reads = compared(tmp_path / "g.zarr", 150)
    sys.stdout.write(
        f"\n5 folds x 8 settings: together {together:.1f} s and {shared_reads:,} tile reads, separately "
        f"{separate:.1f} s and {separate_reads:,}: {together / separate:.3f} of the time (at most {SHARE})\n"
    )
    assert together <= SHARE * separate
