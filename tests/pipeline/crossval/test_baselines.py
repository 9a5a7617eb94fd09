"""Baselines: the same structures, folds and features as a run; left out where they would take long; never twice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramline.kernels.packing import PackedSequences
from gramline.learners.metrics import evaluate
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.token_features import chosen_sequences
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval import baselines, crf
from gramline.pipeline.crossval.baselines import (
    CRF,
    NO_CORPUS,
    PERCEPTRON,
    baseline_scores,
    baseline_work,
    left_out_sentences,
    planned_baselines,
)
from gramline.pipeline.crossval.folds import Folds, k_fold
from gramline.pipeline.crossval.job import JobData
from gramline.pipeline.crossval.validate import cross_validate

FOLDS = k_fold(12, 3, seed=1)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    draw = np.random.default_rng(3)
    X = [[str(word) for word in draw.choice(["a", "b", "c"], draw.integers(2, 6))] for _ in range(12)]
    y = [[{"a": "X", "b": "Y", "c": "O"}[word] if draw.random() < 0.9 else "O" for word in own] for own in X]
    return Corpus.from_sequences(X, y)


def scores_of(corpus: Corpus, folds: Folds = FOLDS, **options: Any) -> dict[str, Any]:
    scores = baseline_scores(JobData.of_corpus(corpus, "c"), folds, dummy="O", **options)
    assert scores is not None
    return scores


def test_the_perceptron_is_the_one_that_cross_validation_trains(corpus: Corpus) -> None:
    expected = cross_validate(HiddenMarkovPerceptron(), corpus, corpus.labels, FOLDS)
    row = next(row for row in scores_of(corpus)["rows"] if row["name"] == PERCEPTRON.name)
    for metric in ("accuracy", "f1", "exact_match"):
        assert row["scores"][metric]["folds"] == pytest.approx(expected.table(metric)[0].tolist())
    assert row["seconds"] > 0


@pytest.mark.skipif(not crf.has_crf(), reason="python-crfsuite is not installed")
def test_the_crf_sees_the_training_part_only(corpus: Corpus) -> None:
    row = next(row for row in scores_of(corpus)["rows"] if row["name"] == CRF.name)
    for fold, value in enumerate(row["scores"]["accuracy"]["folds"]):
        train, test = (corpus.select(part) for part in (FOLDS.training(fold), FOLDS.held_out[fold]))
        predicted = crf.best_crf_predictions(train.packed(), test.packed(like=train.packed()))
        assert value == pytest.approx(evaluate(test.labels, predicted).accuracy)


def test_trees_are_read_as_chains_and_structures_without_a_label_are_dropped(corpus: Corpus) -> None:
    children = [[[*range(1, len(own))], *([] for _ in own[1:])] for own in corpus.tokens]
    trees = Corpus.from_trees(corpus.tokens, children, corpus.labels)
    chains = chosen_sequences(trees.packed(), np.arange(len(trees)))
    assert type(chains) is PackedSequences
    assert [row["scores"] for row in scores_of(trees)["rows"]] == [row["scores"] for row in scores_of(corpus)["rows"]]
    gaps = [[None, *own[1:]] if number % 4 == 0 else own for number, own in enumerate(corpus.labels)]
    assert scores_of(corpus.with_labels(gaps))["rows"]


def test_work_counts_every_training_position_of_every_fold(corpus: Corpus) -> None:
    packed = corpus.packed()
    n_positions = sum(int(corpus.lengths[FOLDS.training(fold)].sum()) for fold in range(3))
    assert baseline_work(packed, FOLDS) == n_positions * (1 + 3) * 3  # one feature, three labels


def test_what_would_take_long_is_left_out_and_said(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "BASELINES", (PERCEPTRON, replace(CRF, name="slow", largest_work=1.0)))
    known = scores_of(corpus)
    assert [row["name"] for row in known["rows"]] == [PERCEPTRON.name]
    assert known["left_out"][0]["name"] == "slow"
    assert "it would take long" in left_out_sentences(known)[0]
    fast, slow = planned_baselines(JobData.of_corpus(corpus, "c"), FOLDS)
    assert (fast["name"], fast["reason"], slow["seconds"]) == (PERCEPTRON.name, None, None)
    assert fast["seconds"] > 0
    assert slow["reason"] == known["left_out"][0]["reason"]


def test_a_plan_without_labels_says_why_nothing_is_compared(corpus: Corpus) -> None:
    unlabeled = JobData.of_corpus(corpus.with_labels([[None] * len(own) for own in corpus.labels]), "c")
    assert [(row["seconds"], row["reason"] is None) for row in planned_baselines(unlabeled, FOLDS)] == [
        (None, False)
    ] * 2


def test_a_crf_that_is_not_installed_and_a_run_without_a_corpus(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crf, "pycrfsuite", None)
    assert scores_of(corpus)["left_out"] == [{"name": "CRF", "reason": crf.NOT_INSTALLED}]
    without = baseline_scores(replace(JobData.of_corpus(corpus, "c"), corpus=None), FOLDS, dummy="O")
    assert without is not None
    assert (without["rows"], len(without["left_out"])) == ([], 2)
    assert left_out_sentences(without) == [f"no hidden Markov perceptron and no CRF to compare with: {NO_CORPUS}"]


def test_what_is_known_is_not_computed_again(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    known = scores_of(corpus)
    monkeypatch.setattr(baselines, "_outcomes", lambda *_: pytest.fail("trained again"))
    assert scores_of(corpus, before=known) == known
    assert scores_of(corpus, before=known, computes=False) == known
    assert (
        baseline_scores(JobData.of_corpus(corpus, "c"), k_fold(12, 2), dummy="O", before=known, computes=False) is None
    )
