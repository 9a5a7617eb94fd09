"""Every learner with its options: from stored and dense matrices and from corpora, saved and loaded again."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
from snapshot_parts.inputs import LABEL_KERNEL, corpus
from snapshot_parts.recording import Record

from gramline.kernels import Linear, SequenceLabeling, SubsetTree, TabulatedPrior, Tagging, TreeLabeling
from gramline.learners import (
    DenseGram,
    GaussianProcessLabeler,
    HiddenMarkovPerceptron,
    KernelZScoreLabeler,
    LabelingPerceptron,
    RankingPerceptron,
    RankingSVM,
    ZScoreLabeler,
)
from gramline.pipeline import KernelLabeler, build_gram, cross_validate

# What docs and design promise of a fitted learner.
FITTED = ("alpha_", "average_alpha_", "emission_", "transition_", "dual_", "elbo_trace_")
FITTED += ("mistakes_", "z_", "elbo_", "weights_", "average_weights_", "updates_", "counts_")
PLAIN = SequenceLabeling(c=0.6, observation=Linear(normalized=True))
ON_GRAM = {
    "perceptron": LabelingPerceptron(rounds=4, average=False),
    "perceptron averaged": LabelingPerceptron(rounds=4, average=True),
    "perceptron to the end": LabelingPerceptron(rounds=12, early_stop=False, average=False),
    "hidden Markov dual": HiddenMarkovPerceptron(rounds=4, dual=True, average=False, scale=1.0),
    "hidden Markov dual averaged": HiddenMarkovPerceptron(rounds=4, dual=True, average=True, scale=1.0),
    "kernel Z-score": KernelZScoreLabeler(ridge=1e-2, transition_ridge=None),
    "kernel Z-score ridges": KernelZScoreLabeler(ridge=[0.1, 1.0, 10.0], transition_ridge=5.0),
    "kernel Z-score hamming": KernelZScoreLabeler(ridge=0.5, loss="hamming", transition_ridge=None),
    "kernel Z-score nystrom": KernelZScoreLabeler(ridge=0.5, preconditioner="nystrom", width=8, transition_ridge=None),
    "kernel Z-score bare": KernelZScoreLabeler(
        ridge=0.5, preconditioner="none", max_iterations=900, transition_ridge=None
    ),
    "kernel Z-score single": KernelZScoreLabeler(ridge=0.5, precision="single", tolerance=1e-4, transition_ridge=None),
    "Gaussian process": GaussianProcessLabeler(bound="jensen", scale=1.0),
    "Gaussian process GPSL1": GaussianProcessLabeler(offsets="GPSL1", max_sweeps=10, bound="jensen", scale=1.0),
    "Gaussian process GPSL2": GaussianProcessLabeler(offsets="GPSL2", max_sweeps=10, bound="jensen", scale=1.0),
    "Gaussian process GPSL4": GaussianProcessLabeler(offsets="GPSL4", max_sweeps=10, bound="jensen", scale=1.0),
    "Gaussian process expected": GaussianProcessLabeler(bound="expected", max_sweeps=10, scale=1.0),
    "Gaussian process viterbi": GaussianProcessLabeler(offsets=(-1,), decoding="viterbi", bound="jensen", scale=1.0),
    "Gaussian process scale": GaussianProcessLabeler(scale=3.0, jitter=0.01, max_sweeps=10, bound="jensen"),
    "Gaussian process shared scale": GaussianProcessLabeler(
        learn_scale="shared", max_sweeps=6, bound="jensen", scale=1.0
    ),
    "Gaussian process scales": GaussianProcessLabeler(learn_scale="per_label", max_sweeps=6, bound="jensen", scale=1.0),
    "Gaussian process missing": GaussianProcessLabeler(missing=0.4, seed=3, max_sweeps=10, bound="jensen", scale=1.0),
    "Gaussian process nystrom": GaussianProcessLabeler(
        approximation="nystrom", rank=12, max_sweeps=10, bound="jensen", scale=1.0
    ),
    "Gaussian process exact variance": GaussianProcessLabeler(
        variance="exact", max_sweeps=10, bound="jensen", scale=1.0
    ),
    "Gaussian process no variance": GaussianProcessLabeler(
        variance="none", max_sweeps=10, max_refinements=20, bound="jensen", scale=1.0
    ),
}
ON_CORPUS = {
    "hidden Markov": HiddenMarkovPerceptron(rounds=4, average=False),
    "hidden Markov averaged": HiddenMarkovPerceptron(rounds=4, average=True),
    "Z-score": ZScoreLabeler(ridge=1e-3, transition_ridge=None),
    "Z-score ridges": ZScoreLabeler(ridge=0.1, transition_ridge=100.0),
    "Z-score hamming": ZScoreLabeler(ridge=0.1, loss="hamming", transition_ridge=None),
    "Z-score direct": ZScoreLabeler(ridge=0.1, solver="direct", transition_ridge=None),
    "Z-score cg": ZScoreLabeler(ridge=0.1, solver="cg", tolerance=1e-10, transition_ridge=None),
    "Z-score dynamic": ZScoreLabeler(ridge=0.1, moments="dynamic", transition_ridge=None),
    "Z-score dynamic hamming": ZScoreLabeler(ridge=0.1, moments="dynamic", loss="hamming", transition_ridge=None),
    "Z-score sampled": ZScoreLabeler(ridge=0.1, moments="sampled", n_paths=30, seed=4, transition_ridge=None),
    "Z-score sampled hamming": ZScoreLabeler(
        ridge=0.1, moments="sampled", n_paths=30, loss="hamming", transition_ridge=None
    ),
    "Z-score constraints": ZScoreLabeler(ridge=10.0, constraints="iterative", transition_ridge=None),
}
PLACES = {"Z-score constraints": "sequences-spelled"}  # the labels must be separable
UNLABELED = {
    "perceptron": (PLAIN, LabelingPerceptron(rounds=4, average=False)),
    "Gaussian process": (PLAIN, GaussianProcessLabeler(max_sweeps=10, bound="jensen", scale=1.0)),
    "kernel Z-score": (PLAIN, KernelZScoreLabeler(ridge=0.5, unlabeled="drop", transition_ridge=None)),
    "hidden Markov dual": (
        PLAIN,
        HiddenMarkovPerceptron(rounds=4, dual=True, unlabeled="drop", average=False, scale=1.0),
    ),
    "hidden Markov": (None, HiddenMarkovPerceptron(rounds=4, unlabeled="drop", average=False)),
    "Z-score": (None, ZScoreLabeler(ridge=0.1, unlabeled="drop", transition_ridge=None)),
}
RANKERS = {
    "voted": RankingPerceptron(passes=2),
    "averaged": RankingPerceptron(passes=2, average=True),
    "plain": RankingPerceptron(passes=2, vote=False),
    "svm": RankingSVM(C=0.1),
}
# Other kernels for the same learners: priors, label kernels, trees.
OTHER_KERNELS = {
    "prior": (SequenceLabeling(c=0.6, prior=TabulatedPrior()), "letters"),
    "label kernel": (SequenceLabeling(c=0.6, gap=0.3, label_kernel=LABEL_KERNEL), "letters"),
    "trees": (TreeLabeling(c=0.5), "letter-trees"),
}
ON_OTHER_KERNELS = ("perceptron averaged", "hidden Markov dual", "kernel Z-score", "Gaussian process")


def record_fitted(record: Record, name: str, learner: Any) -> None:
    """The documented attributes of a fitted learner."""
    for attribute in FITTED:
        if getattr(learner, attribute, None) is not None:
            record.numbers("learners", f"{name}: {attribute}", getattr(learner, attribute))


def record_predictions(record: Record, name: str, learner: Any, evidence: Any) -> None:
    record.document("learners", f"{name}: predictions", learner.predict(evidence))
    record.numbers("learners", f"{name}: scores", learner.decision_scores(evidence))
    if hasattr(learner, "predict_proba"):
        record.numbers("learners", f"{name}: probabilities", learner.predict_proba(evidence))


def gram_cases() -> Iterator[tuple[str, Any, Any, str]]:
    """Name, learner, kernel and corpus."""
    for name, learner in ON_GRAM.items():
        yield name, learner, PLAIN, "letters"
    for what, (kernel, place) in OTHER_KERNELS.items():
        for name in ON_OTHER_KERNELS[: 3 if what == "label kernel" else 4]:  # Gaussian processes take none
            yield f"{name} with {what}", ON_GRAM[name], kernel, place


def record_learners(record: Record) -> None:
    """Fit from a store (dense for other kernels) or a corpus, then predict new structures."""
    train = corpus("letters")
    stored = build_gram(PLAIN, train, "learners/letters.zarr", block_rows=20)
    for name, learner, kernel, place in gram_cases():
        gram = stored if kernel is PLAIN else DenseGram.of(kernel, corpus(place))
        fitted = deepcopy(learner).fit(gram, corpus(place).labels)
        record_fitted(record, name, fitted)
        record_predictions(record, name, fitted, DenseGram.of(kernel, corpus(place), corpus(f"{place}-new")))
    for number, one in enumerate(
        KernelZScoreLabeler(ridge=[0.1, 1.0], transition_ridge=None).fit(stored, train.labels).path_
    ):
        record.numbers("learners", f"kernel Z-score: ridge {number} of a path", one.dual_)
    for name, learner in ON_CORPUS.items():
        place = PLACES.get(name, "letters")
        fitted = deepcopy(learner).fit(corpus(place))
        record_fitted(record, name, fitted)
        record_predictions(record, name, fitted, corpus(f"{place}-new"))


def record_unlabeled(record: Record) -> None:
    """The same where some labels are missing."""
    train, new = corpus("letters-unlabeled"), corpus("letters-unlabeled-new")
    for name, (kernel, learner) in UNLABELED.items():
        labeler = KernelLabeler(kernel, learner).fit(train)
        record.document("learners", f"{name} unlabeled: predictions", labeler.predict(new))
        record.numbers("learners", f"{name} unlabeled: scores", np.concatenate(labeler.predict_scores(new)))


def record_rankers(record: Record) -> None:
    """Rankers of parses and of tagged sentences."""
    for place, kernel in (("candidates", SubsetTree(0.4)), ("tagged", Tagging(0.5))):
        train, new = corpus(place), corpus(f"{place}-new")
        gram = DenseGram.of(kernel, train)
        cross = DenseGram.of(kernel, train, new)
        for what, learner in RANKERS.items():
            name = f"ranker {what} of {place}"
            fitted = deepcopy(learner).fit(gram, [3] * (len(train) // 3))
            groups = [3] * (len(new) // 3)
            record_fitted(record, name, fitted)
            record.document("learners", f"{name}: choices", fitted.predict(cross, groups))
            record.numbers("learners", f"{name}: scores", fitted.decision_scores(cross))
            record.numbers("learners", f"{name}: shares", fitted.decision_scores(cross, groups))


def record_labelers(record: Record) -> None:
    """KernelLabeler: from lists, saved and loaded again, in blocks."""
    words = [["time", "flies"], ["fruit", "flies", "like", "bananas"], ["time", "flies", "like", "fruit"]]
    labels = [["N", "V"], ["N", "N", "V", "N"], ["N", "V", "P", None]]
    labeler = KernelLabeler(SequenceLabeling(c=0.8), LabelingPerceptron(rounds=5, average=False)).fit(words, labels)
    record.document(
        "labelers", "lists", [labeler.predict([["fruit", "flies"], ["like"]]), labeler.score(words[:2], labels[:2])]
    )
    for name, learner in (ON_GRAM | ON_CORPUS).items():
        kernel, place = PLAIN if name in ON_GRAM else None, PLACES.get(name, "letters")
        train, new = corpus(place), corpus(f"{place}-new")
        path = f"labelers/{name.replace(' ', '-')}.zarr"
        KernelLabeler(kernel, learner, block_rows=20).fit(train).save(path)
        loaded = KernelLabeler.load(path)
        record.document("labelers", f"{name}: loaded", [loaded.predict(new), list(loaded.classes_)])
        record.numbers("labelers", f"{name}: loaded scores", np.concatenate(loaded.predict_scores(new)))


def record_crossval(record: Record) -> None:
    """cross_validate with settings, shuffled and with folds of one's own."""
    train = corpus("letters")
    gram = DenseGram.of(PLAIN, train)
    cases: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "perceptron": (
            LabelingPerceptron(average=False),
            gram,
            {"settings": {"rounds": [1, 3], "average": [True, False]}},
        ),
        "hidden Markov": (HiddenMarkovPerceptron(rounds=3, average=False), train, {"seed": 3}),
        "kernel Z-score": (
            KernelZScoreLabeler(ridge=1e-2, transition_ridge=None),
            gram,
            {"settings": {"ridge": [0.1, 1.0]}, "seed": 2},
        ),
        "Z-score": (
            ZScoreLabeler(ridge=1e-3, transition_ridge=None),
            train,
            {"settings": [{"ridge": 0.1}, {"loss": "hamming"}], "seed": 2},
        ),
        "Gaussian process": (
            GaussianProcessLabeler(max_sweeps=5, bound="jensen", scale=1.0),
            gram,
            {"settings": {"missing": [0.0, 0.3]}},
        ),
        "own folds": (
            LabelingPerceptron(rounds=2, average=False),
            gram,
            {"folds": [[0, 1, 5], [2, 3, 15]], "dummy": None},
        ),
    }
    for name, (learner, evidence, options) in cases.items():
        found = cross_validate(learner, evidence, train.labels, **({"folds": 3} | options))
        record.document("crossval", name, [found.summary(), found.predictions, found.best("f1")])
        record.numbers("crossval", f"{name}: accuracy", found.table("accuracy"))
