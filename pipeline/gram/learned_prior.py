"""Kernels whose prior a learner makes: the learner is trained, and the corpus gets its table, before any tile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.priors import LearnedPrior, TabulatedPrior, UniformPrior
from gramline.learners.catalogue import make_learner
from gramline.learners.cross_fitted_prior import CrossFittedPrior
from gramline.learners.errors import LearnerError
from gramline.pipeline.corpus.corpus import Corpus


def prior_learner(kernel: Kernel | None) -> CrossFittedPrior | None:
    """What a kernel's learned prior describes, checked and not yet fitted; None for any other prior."""
    if not isinstance(kernel, PositionLabeling) or not isinstance(kernel.prior, LearnedPrior):
        return None
    prior = kernel.prior
    try:
        learner = make_learner(prior.learner, dict(prior.settings))
        own = None if learner.reads_corpus else replace(kernel, prior=UniformPrior())  # type: ignore[type-var]
        made = CrossFittedPrior(learner, prior.folds, own)
        made.check_parameters()
    except LearnerError as error:
        problem = f"of the learned prior, {error.problem}"
        raise KernelParameterError(problem, advice=error.advice, key="prior") from None
    return made


def with_learned_prior(kernel: Kernel | None, corpus: Corpus) -> tuple[Corpus, CrossFittedPrior | None]:
    """The corpus with the table of the kernel's learned prior, trained on its labels; as it is for any other prior."""
    prior = prior_learner(kernel)
    return (corpus, None) if prior is None else (prior.fit(corpus).transform(corpus), prior)


def as_if_learned(kernel: Kernel, corpus: Corpus) -> tuple[Kernel, Corpus]:
    """Both with a table in which every label is equally likely: its tiles take as long as those of a learned prior."""
    if prior_learner(kernel) is None or not corpus.label_names:
        return kernel, corpus
    n_labels = len(corpus.label_names)
    even = corpus.with_prior(np.full((corpus.n_positions, n_labels), 1.0 / n_labels))
    return replace(kernel, prior=TabulatedPrior()), even  # type: ignore[type-var]
