"""The majority label beside the settings, and the order of a table."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.learners.metrics import evaluate
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds, FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.summary import by_score, chosen_words, majority_labels, n_duplicates, summarize
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.crossval.validate import assembled

LABELS = [["B", "O"], ["O"], ["B", "B", None], ["B"]]
FOLDS = Folds(4, (np.array([2, 3]), np.array([0, 1])))


def test_the_majority_label_is_that_of_the_training_part() -> None:
    assert majority_labels(LABELS, FOLDS) == ["O", "B"]
    assert majority_labels([["B"], ["A"], ["C"]], Folds(3, (np.array([2]),))) == ["A"]  # of equals the first by name


@pytest.mark.parametrize(("predicted", "is_beaten"), [("majority", False), ("right", True)])
def test_what_the_majority_label_scores_is_beside_the_settings(predicted: str, is_beaten: bool) -> None:
    corpus = Corpus.from_sequences([["a", "b"], ["c"], ["a", "b", "c"], ["d"]], LABELS)
    right = [[[label or "O" for label in LABELS[k]] for k in held] for held in FOLDS.held_out]
    same = [[[label] * len(LABELS[k]) for k in held] for held, label in zip(FOLDS.held_out, "OB", strict=True)]
    job = Job((), (Variant(None, "zscore", {}),), FoldSpec(2))
    rows = [[HeldOut(fold) for fold in (right if predicted == "right" else same)]]
    result = assembled(job.settings(), FOLDS, LABELS, rows)
    summary = summarize(job, JobData.of_corpus(corpus, "x"), result, None)
    expected = [
        evaluate([LABELS[k] for k in held], [[label] * len(LABELS[k]) for k in held]).accuracy
        for held, label in zip(FOLDS.held_out, ["O", "B"], strict=True)
    ]
    assert summary["majority"]["scores"]["accuracy"]["folds"] == expected == [0.0, pytest.approx(1 / 3)]
    assert summary["majority"]["labels"] == ["O", "B"]
    own = summary["settings"][0]["scores"]["accuracy"]["mean"]
    assert summary["majority"]["is_beaten"] == is_beaten == (own > np.mean(expected))


@pytest.mark.parametrize(("metric", "order"), [("accuracy", [1, 0, 2]), ("hamming_loss", [0, 2, 1])])
def test_the_best_comes_first_and_the_first_of_equals(metric: str, order: list[int]) -> None:
    settings = [{"scores": {metric: {"mean": mean}}} for mean in (0.5, 0.7, 0.5)]
    assert by_score({"metric": metric, "settings": settings}) == order


def test_structures_that_stand_in_more_than_one_fold() -> None:
    corpus = Corpus.from_sequences([["a"], ["b"], ["a"], ["c"], ["c"]], [["X"]] * 5)
    data = JobData.of_corpus(corpus, "x")
    across = Folds(5, (np.array([0, 1]), np.array([2, 3, 4])))
    assert n_duplicates(data, across) == 2  # both a; the two c stand in one fold
    together = data.grouped_by("duplicates")
    assert n_duplicates(data, FoldSpec(3, group="duplicates").make(data.labels, together.groups)) == 0
    gone = JobData("f", data.ids, data.tokens, data.labels, "x")
    assert n_duplicates(gone, across) is None


def test_the_constants_that_folds_chose_are_counted() -> None:
    assert chosen_words({"chosen": {"C": [3.0, 0.1, 3.0]}}) == "C 1 x 0.1, 2 x 3"
    assert chosen_words({}) == ""
