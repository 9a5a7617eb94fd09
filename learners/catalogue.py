"""The one table of learners by name: what a model, a job file or the command line writes down and reads back."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from gramline.kernels.errors import did_you_mean
from gramline.learners.errors import LearnerError, LearnerParameterError
from gramline.learners.estimator import Learner

LEARNERS = {
    "labeling-perceptron": "gramline.learners.perceptrons.labeling:LabelingPerceptron",
    "hidden-markov-perceptron": "gramline.learners.perceptrons.hidden_markov:HiddenMarkovPerceptron",
    "labeling-svm": "gramline.learners.margins.labeling:LabelingSVM",
    "structured-svm": "gramline.learners.margins.structured:StructuredSVM",
    "kernel-crf": "gramline.learners.random_fields.kernel_crf:KernelCRF",
    "zscore": "gramline.learners.zscore.labeler:ZScoreLabeler",
    "kernel-zscore": "gramline.learners.zscore.kernel_labeler:KernelZScoreLabeler",
    "gaussian-process": "gramline.learners.gaussian_process.labeler:GaussianProcessLabeler",
    "ranking-svm": "gramline.learners.margins.ranking:RankingSVM",
    "ranking-perceptron": "gramline.learners.perceptrons.ranking:RankingPerceptron",
}


def find_learner(name: str) -> type[Learner]:
    """The learner class of that name."""
    if not isinstance(name, str) or name not in LEARNERS:
        advice = did_you_mean(name, LEARNERS)
        raise LearnerParameterError(f"there is no learner called {name!r}", advice=advice, key="name")
    module, _, attribute = LEARNERS[name].partition(":")
    learner: type[Learner] = getattr(import_module(module), attribute)
    return learner


def make_learner(name: str, params: Mapping[str, Any] | None = None) -> Learner:
    """A learner with the given parameters; an unknown parameter is an error that lists the known ones."""
    return find_learner(name)().set_params(**(params or {}))


def learner_from_state(attributes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Learner:
    """The fitted learner whose `to_state` gave these attributes and arrays."""
    try:
        return find_learner(attributes["name"]).from_state(attributes, arrays)
    except KeyError as error:
        raise LearnerError(f"a learner's state needs {error.args[0]!r}, which is missing") from None
