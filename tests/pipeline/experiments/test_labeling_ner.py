"""The named-entity experiment of the labeling kernel end to end on small data of our own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gramline.kernels.observations.features import Polynomial
from gramline.pipeline.crossval import crf
from gramline.pipeline.crossval.crf import DECODINGS, MISSING_NOTE, has_crf
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.experiments import labeling_ner
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import find_experiment
from gramline.pipeline.experiments.fold_trial import Trial

needs_crf = pytest.mark.skipif(not has_crf(), reason="python-crfsuite is not installed")


def test_paper_and_measured_stand_side_by_side(spanish_data: Path) -> None:
    told: list[str] = []
    tables = find_experiment("labeling-ner").run(Run(spanish_data, quick=True, say=told.append))
    first, further = tables[:2]
    assert first.title.startswith("Table 1, 2 folds: 18 sentences, 90 tokens")
    papers = {row[0]: row[5:] for row in first.rows if row[5] is not None}
    assert papers == labeling_ner.PAPER[3]
    errors = {str(row[0]): row[1] for row in further.rows}
    for name in (
        *("normalized observations", "kernel Z-score, Polynomial(2)", "dual HM perceptron, Polynomial(2)"),
        *("structured SVM, features", "kernel CRF, features", "kernel CRF, Polynomial(2)"),
    ):
        error = errors[name]
        assert isinstance(error, float)
        assert error < 15, name  # two names in five words; every one was seen or looks like one
    chosen = {row[0]: row[-1] for row in further.rows}
    assert "x" in str(chosen[labeling_ner.BEST])
    assert "2 folds: normalized, gaps" in told
    if has_crf():
        assert [row[0] for row in tables[2].rows] == [
            f"best - {labeling_ner.CRF}{window}, {decoding}" for window in ("", ", window 5") for decoding in DECODINGS
        ]


def test_without_the_crf_its_rows_are_left_out(spanish_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crf, "pycrfsuite", None)
    kept = labeling_ner._kernel_methods
    few = ("sequence kernel, averaged", "normalized observations")
    monkeypatch.setattr(labeling_ner, "_kernel_methods", lambda s, t: {name: kept(s, t)[name] for name in few})
    tables = labeling_ner.labeling_ner(Run(spanish_data, quick=True))
    assert len(tables) == 2
    assert MISSING_NOTE in tables[1].notes
    assert [row[0] for row in tables[1].rows] == [*few, labeling_ner.BEST]
    # bit for bit but for the clock
    again = labeling_ner.labeling_ner(Run(spanish_data, quick=True))
    assert again[0] == tables[0]
    assert [row[:6] for row in again[1].rows] == [row[:6] for row in tables[1].rows]


def test_positions_alone_have_no_neighbours(spanish_data: Path) -> None:
    spanish = labeling_ner.Spanish(Run(spanish_data, quick=True))
    gram = spanish.position_gram(10.0)()
    packed = spanish.windows[1].packed()
    values = np.empty((packed.n_positions, packed.n_positions))
    Polynomial(2, normalized=True).strips(packed, packed).fill(0, packed.n_positions, values)
    np.testing.assert_allclose(gram.matrix, 10 * values, rtol=1e-12)
    assert gram.layout.rows.lengths.tolist() == packed.lengths.tolist()


@needs_crf
def test_no_sentence_gets_a_prior_from_its_own_labels(spanish_data: Path) -> None:
    corpus = labeling_ner.Spanish(Run(spanish_data, quick=True)).windows[1]
    folds = Trial(corpus.labels, FoldSpec(2), 2, "accuracy").folds
    before = labeling_ner._marginals(corpus, folds, 0)
    np.testing.assert_allclose(before.sum(axis=1), 1.0)
    held = folds.held_out[0]
    changed = [["O"] * len(row) if k in held else row for k, row in enumerate(corpus.labels)]
    after = labeling_ner._marginals(corpus.with_labels(changed, corpus.label_names), folds, 0)
    np.testing.assert_array_equal(before, after)
