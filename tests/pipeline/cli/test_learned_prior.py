"""A prior that a learner makes, on the command line and in job files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.kernels import LearnedPrior
from gramline.pipeline.models.model import Model

PRIOR = "learned:learner=kernel-crf,dual=false,folds=2"


def test_fit_keeps_what_makes_the_prior_and_predict_uses_it(gramline: Any, corpus: Path) -> None:
    trained = gramline("fit", corpus, "-o", "m.zarr", "--prior", PRIOR, "--learner", "labeling-perceptron", "--json")
    assert trained.code == 0, trained.err
    model = Model.load("m.zarr")
    assert model.kernel is not None
    assert model.kernel.get_params()["prior"] == LearnedPrior(folds=2, settings={"dual": False})
    assert model.prior is not None
    assert model.prior.learner.name == "kernel-crf"
    assert gramline("predict", "m.zarr", corpus, "--json").code == 0


def test_cv_tries_its_settings_and_fit_trains_the_winner(gramline: Any, corpus: Path) -> None:
    Path("job.toml").write_text(
        f"""
        [corpus]
        path = "{corpus}"
        [kernel]
        prior = {{ name = "learned", dual = false, penalty = [0.3, 1], folds = 2 }}
        [learner]
        name = "labeling-perceptron"
        [folds]
        count = 2
        """
    )
    assert gramline("cv", "job.toml", "--plan", "--inline").code == 0
    done = gramline("cv", "job.toml", "--inline", "--json")
    assert done.code == 0, done.err
    penalties = [setting["kernel"]["prior"]["penalty"] for setting in done.json["settings"]]
    assert penalties == [0.3, 1]
    assert gramline("fit", "--from-run", "job.run", "-o", "best.zarr").code == 0
    assert Model.load("best.zarr").prior is not None


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        ("learned:learner=zscore", "of the learned prior, ZScoreLabeler cannot tell probabilities, which a prior is"),
        (
            "learned:penalties=1",
            "of the learned prior, KernelCRF has no parameter 'penalties'; did you mean 'penalty'?",
        ),
    ],
)
def test_mistakes(gramline: Any, corpus: Path, prior: str, sentence: str) -> None:
    assert gramline("fit", corpus, "--prior", prior).error.startswith(sentence)


def test_a_stored_matrix_has_no_learner_of_a_prior(gramline: Any, corpus: Path) -> None:
    answer = gramline("gram", "build", corpus, "-o", "g.zarr", "--prior", PRIOR, "--inline")
    assert answer.error.startswith(
        "learned is made by a learner before its kernel is computed, and here nobody made it"
    )
