"""Jobs with folds inside folds: the choice is the one made by hand, and nothing held out has a say in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import KERNEL, corpus
from job_samples import FOLDS, ROUNDS, data_of, run

from gramline.learners.metrics import evaluate
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.crossval.job import Job
from gramline.pipeline.crossval.training import hide


def test_nested_selection_is_the_choice_made_by_hand(tmp_path: Path) -> None:
    found = corpus(18, seed=3)
    job = Job((KERNEL,), ROUNDS, FOLDS, inner_folds=2, metric="accuracy")
    result = run(job, data_of(found), tmp_path)
    assert result.nested is not None
    gram = DenseGram.of(KERNEL, found)
    for fold, held in enumerate(result.result.folds.held_out):
        training = result.result.folds.training(fold)
        inside = FOLDS.inner(result.result.folds, 2, found.labels).held_out[2 * fold : 2 * fold + 2]
        assert sorted(k for part in inside for k in part) == training.tolist()
        means = []
        for variant in ROUNDS:
            scores = []
            for part in inside:
                learner: Any = variant.make()
                learner.fit(gram, hide(found.labels, np.union1d(held, part)))
                predicted = learner.predict(gram)
                scores.append(evaluate([found.labels[k] for k in part], [predicted[k] for k in part]).accuracy)
            means.append(np.mean(scores))
        assert result.nested.chosen[fold] == int(np.argmax(means))
        assert result.nested.inner[fold] == pytest.approx(max(means))
        outer = result.result.table("accuracy")[result.nested.chosen[fold], fold]
        assert result.nested.values["accuracy"][fold] == outer


def test_what_an_outer_fold_holds_out_has_no_say_in_its_choice(tmp_path: Path) -> None:
    found = corpus(18, seed=3)
    job = Job((KERNEL,), ROUNDS, FOLDS, inner_folds=2)
    before = run(job, data_of(found), tmp_path).nested
    held = set(FOLDS.make(found.labels).held_out[1].tolist())
    flipped = [
        ["O" if label == "B" else "B" for label in row] if k in held else row for k, row in enumerate(found.labels)
    ]
    after = run(job, data_of(found.with_labels(flipped)), tmp_path / "flipped").nested
    assert before is not None
    assert after is not None
    assert (after.chosen[1], after.inner[1]) == (before.chosen[1], before.inner[1])
    assert after.values["accuracy"][1] != before.values["accuracy"][1]
