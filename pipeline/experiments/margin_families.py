"""The learners of the margins experiment: what each one chooses, and from which values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gramline.learners.kinds import SharedPassLearner
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.pipeline.experiments.gpsl import MEANS, MODELS, scaled

STEPS = (0.1, 0.3, 1.0, 3.0, 10.0)  # C times the typical k(x, x)
SCALES = (1.0, 3.0, 10.0)  # of the linear kernel, for the Gaussian processes
TRIAL = {"tolerance": 0.05, "passes": 30}  # as C="auto" chooses
KERNELS = {"linear": False, "cosine": True}  # whether it is normalised
Constant = Callable[[float, float], dict[str, Any]]  # (step, typical k(x, x)) -> parameters


@dataclass(frozen=True)
class Family:
    """A learner with one constant, and everything that is trained and tested with what is chosen for it."""

    learner: Any
    constant: Constant
    steps: Sequence[float]  # of equally good ones the first is chosen
    kernels: Sequence[str] = tuple(KERNELS)
    n_folds: int = 5  # of the training sentences, to choose by
    trial: Mapping[str, Any] = field(default_factory=dict)  # while choosing, where a label more or less is all
    printed: str = ""  # the paper's name of the method
    readings: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: {"": {}})  # of one and the same fit
    relatives: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # trained with the same constant

    def fits(self, steps: Sequence[float], gram: DenseGram, labels: Sequence[Sequence[str | None]]) -> list[Any]:
        """A trained learner for every step."""
        size = typical(gram)
        models = [self.learner.fresh().set_params(**self.constant(step, size)) for step in steps]
        if isinstance(self.learner, SharedPassLearner):
            type(self.learner).fit_many(models, gram, [labels] * len(models))
        else:
            for model in models:
                model.fit(gram, labels)
        return models

    def alike(self, name: str) -> dict[str, Family]:
        """The learner and its relatives by name, each as a family of its own."""
        return {
            relative: replace(self, learner=self.learner.fresh().set_params(**changes), relatives={})
            for relative, changes in {name: {}, **self.relatives}.items()
        }


def typical(gram: DenseGram) -> float:
    """The median of k(x, x) where it is above 0."""
    diagonal = gram.diagonal()
    return float(np.median(diagonal[diagonal > 0]))


def _weight(step: float, size: float) -> dict[str, Any]:
    return {"C": step / size}


def _penalty(step: float, size: float) -> dict[str, Any]:
    return {"penalty": size / (2.0 * step)}  # C = 1 / (2 penalty)


def _scale(step: float, _size: float) -> dict[str, Any]:
    return {"scale": step}


FAMILIES = {
    "labeling SVM": Family(LabelingSVM(), _weight, STEPS, printed="SSVM"),
    "structured SVM": Family(StructuredSVM(), _weight, STEPS, printed="SSVM", trial=TRIAL),
    "structured SVM, zero-one": Family(StructuredSVM(loss="zero-one"), _weight, STEPS, printed="SSVM", trial=TRIAL),
    "kernel CRF": Family(
        KernelCRF(),
        _penalty,
        STEPS,
        printed="CRF",
        readings={", Viterbi": {"decoding": "viterbi"}, ", marginals": {"decoding": "marginals"}},
    ),
}
PROCESSES = {
    MODELS[0]: Family(
        scaled(MODELS[0], 1.0),
        _scale,
        SCALES,
        kernels=("linear",),
        n_folds=3,
        printed=MODELS[0],
        readings={"": {"variance": "auto"}, MEANS: {"variance": "none"}},
        relatives={model: {"offsets": model} for model in MODELS[1:]},
    ),
}
