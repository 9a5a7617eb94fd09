"""A prior that a learner makes, from a kernel's description to a saved model, and on the folds of a job."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gram_samples import corpus
from tolerances import assert_close

from gramline.kernels import EmpiricalPrior, LearnedPrior, SequenceLabeling, TabulatedPrior, UniformPrior
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelParameterError, PackingError
from gramline.learners import CrossFittedPrior, DenseGram, GaussianProcessLabeler, KernelCRF, LabelingPerceptron
from gramline.learners.errors import LearnerError
from gramline.pipeline import Corpus, KernelLabeler, Model, build_gram, cross_validate
from gramline.pipeline.crossval.first_fit import first_fit
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.training import hide
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.kernel_choice import choose_kernel

ON_FEATURES = LearnedPrior(folds=3, settings={"dual": False, "penalty": 0.5})
ON_THE_KERNEL = LearnedPrior("gaussian-process", folds=2, settings={"offsets": "GPSL1"})
FOUND, NEW = corpus(12), corpus(4, seed=9).without_labels()
pytestmark = pytest.mark.filterwarnings("ignore:.*of its own training structures are right")
every_prior = pytest.mark.parametrize("prior", [ON_FEATURES, ON_THE_KERNEL], ids=["features", "kernel"])


def kernel_with(prior: Any) -> SequenceLabeling:
    return SequenceLabeling(c=0.8, prior=prior)


def cross_fitted(prior: LearnedPrior) -> CrossFittedPrior:
    """The same by hand."""
    if prior is ON_FEATURES:
        return CrossFittedPrior(KernelCRF(0.5, dual=False), 3)
    return CrossFittedPrior(GaussianProcessLabeler(offsets="GPSL1"), 2, kernel_with(UniformPrior()))


@every_prior
def test_a_labeler_learns_the_prior_and_keeps_its_learner(prior: LearnedPrior, tmp_path: Path) -> None:
    labeler = KernelLabeler(kernel_with(prior), LabelingPerceptron()).fit(FOUND)
    by_hand = cross_fitted(prior).fit(FOUND)
    train, kernel = by_hand.transform(FOUND), kernel_with(TabulatedPrior())
    learner = LabelingPerceptron().fit(DenseGram.of(kernel, train), train.labels)
    new = FOUND.select([2, 5]).with_labels([None, None]) if prior is ON_FEATURES else NEW
    by_model = Model.of(learner, train, kernel, prior=by_hand)
    labeler.save(tmp_path / "model.zarr")
    loaded = KernelLabeler.load(tmp_path / "model.zarr")
    table = by_hand.learner_.predict_proba(
        NEW.packed(like=FOUND.packed()) if by_hand.kernel is None else DenseGram.of(by_hand.kernel, FOUND, NEW)
    )
    expected = learner.decision_scores(DenseGram.of(kernel, train, NEW.with_prior(table, FOUND.label_names)))
    for model in (labeler.model_, by_model, loaded.model_):
        assert_close(model.decision_scores(NEW), expected)
        assert_close(model.decision_scores(NEW, block_rows=8), expected)
    assert loaded.predict(NEW.tokens) == labeler.predict(NEW)  # raw words
    assert loaded.model_.prior is not None
    assert_close(loaded.model_.prior.predict_proba(new), labeler.model_.prior.predict_proba(new))  # type: ignore[union-attr]


@every_prior
def test_every_fold_of_a_job_trains_the_prior_without_what_it_hides(prior: LearnedPrior, tmp_path: Path) -> None:
    def run(found: Corpus, name: str) -> Any:
        job = Job((kernel_with(prior),), (Variant(0, "labeling-perceptron", {}),), FoldSpec(3, seed=5))
        data = JobData(found.fingerprint, found.ids, found.tokens, found.labels, "sample", found)
        settings = JobSettings(GramCache(tmp_path / f"{name}-cache"))
        return run_job(
            job, data, RunFolder(tmp_path / name), settings, executor=lambda: nullcontext(InlineExecutor())
        ).result

    result = run(FOUND, "run")
    for fold, held in enumerate(result.folds.held_out):
        train = cross_fitted(prior).fit_transform(FOUND.with_labels(hide(FOUND.labels, held)))
        gram = DenseGram.of(kernel_with(TabulatedPrior()), train)
        expected = LabelingPerceptron().fit(gram, train.labels).predict(gram)
        assert result.predictions[0][fold] == [expected[k] for k in held]
    # labels of what is held out cannot matter: the same predictions with other labels there
    held = result.folds.held_out[0]
    other = [[("B" if label == "O" else "O") for label in row] for row in FOUND.labels]
    swapped = FOUND.with_labels([other[k] if k in held else row for k, row in enumerate(FOUND.labels)])
    assert run(swapped, "swapped").predictions[0][0] == result.predictions[0][0]


@pytest.mark.parametrize("prior", [ON_FEATURES, EmpiricalPrior()], ids=["learned", "empirical"])
def test_the_short_cross_validation_of_a_fit_hides_labels_from_the_prior(prior: Any) -> None:
    def right(found: Corpus) -> Any:
        fit = first_fit(found, LabelingPerceptron(), kernel_with(prior))
        assert fit.score is not None
        return fit.score.learned.n_wrong

    from gramline.pipeline.crossval.quick import quick_folds

    n_wrong = 0
    for held in quick_folds(FOUND.labels).held_out:
        known = FOUND.with_labels(hide(FOUND.labels, held))
        labeler = KernelLabeler(kernel_with(prior), LabelingPerceptron()).fit(known)
        predicted = labeler.learner_.predict(_gram_of(prior, known))  # type: ignore[attr-defined]
        n_wrong += sum(
            a != b for k in held.tolist() for a, b in zip(predicted[k], FOUND.labels[k], strict=True) if b is not None
        )
    assert right(FOUND) == n_wrong


def _gram_of(prior: Any, known: Corpus) -> DenseGram:
    if isinstance(prior, LearnedPrior):
        return DenseGram.of(kernel_with(TabulatedPrior()), cross_fitted(prior).fit_transform(known))
    return DenseGram.of(kernel_with(prior), known)


def test_matrices_that_know_the_labels_of_all_structures_are_refused(tmp_path: Path) -> None:
    kernel = kernel_with(ON_FEATURES)
    train = cross_fitted(ON_FEATURES).fit_transform(FOUND)
    gram = DenseGram.of(kernel, train)
    with pytest.raises(InputError, match="a learned prior was trained on the labels of all structures, so held-out"):
        cross_validate(LabelingPerceptron(), gram, FOUND.labels, 3)
    learner = LabelingPerceptron().fit(gram, FOUND.labels)
    with pytest.raises(LearnerError, match="whose learner a Gram matrix does not keep; train on the corpus, or give"):
        Model.of(learner, train, kernel)
    with pytest.raises(PackingError, match="LearnedPrior is made by a learner before its kernel is computed, and here"):
        build_gram(kernel, FOUND, tmp_path / "g.zarr")


def test_a_description_has_the_settings_of_the_learner_beside_its_name() -> None:
    description = {"name": "learned", "learner": "gaussian-process", "folds": 2, "offsets": "GPSL1"}
    prior = from_dict(description, LearnedPrior)
    assert prior == ON_THE_KERNEL
    assert hash(prior) == hash(ON_THE_KERNEL)
    assert prior.to_dict() == description
    assert replace(prior, folds=3).settings == prior.settings


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        ({"learner": "kernel-crv"}, "of the learned prior, there is no learner called 'kernel-crv'; did you mean"),
        ({"penalties": 1}, "of the learned prior, KernelCRF has no parameter 'penalties'; "),
        ({"penalty": -1}, "of the learned prior, penalty must be a number above 0, or auto, got -1"),
        ({"learner": "zscore"}, "of the learned prior, ZScoreLabeler cannot tell probabilities, which a prior is made"),
        ({"folds": 1}, "LearnedPrior.folds must be a whole number of at least 2, got 1"),
    ],
)
def test_mistakes_in_a_description(prior: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KernelParameterError) as caught:
        choose_kernel({"prior": {"name": "learned", **prior}}, FOUND)
    assert sentence in str(caught.value)
    assert (caught.value.key or "").startswith("prior")


def test_too_few_structures_for_its_folds() -> None:
    with pytest.raises(LearnerError, match="there are 2 different structures with labels, too few for 3 folds"):
        KernelLabeler(kernel_with(ON_FEATURES), LabelingPerceptron()).fit(FOUND.select([0, 1]))


def test_new_structures_of_a_model_need_no_table() -> None:
    model = KernelLabeler(kernel_with(ON_FEATURES), LabelingPerceptron()).fit(FOUND).model_
    even = NEW.with_prior(np.full((NEW.n_positions, 2), 1 / 2), FOUND.label_names)
    assert_close(model.decision_scores(even), model.decision_scores(NEW))
