"""P(y|x): how likely each label is at a position, before a kernel looks at the structure around it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from gramline.kernels.errors import PackingError
from gramline.kernels.packing import MISSING, Floats, Packed, place
from gramline.kernels.parameters import Record, Text, Weight, parameters_of
from gramline.kernels.value_kinds import Number, Settings

ROW_SUM_TOLERANCE = 1e-6
DISTRIBUTION_ADVICE = "give values between 0 and 1 that sum to 1"


class Prior(Record):
    """A distribution over the labels at every position."""

    what: ClassVar[str] = "a prior such as uniform"

    @abstractmethod
    def resolve(self, packed: Packed, like: Packed | None = None) -> Floats | None:
        """P(y|x) of every position, shape (n, n_labels); None when it is uniform everywhere.

        `like` is the training corpus when `packed` holds new structures.
        """


@dataclass(frozen=True)
class UniformPrior(Prior):
    """P(y|x) = 1 / n_labels.

    >>> from gramline.kernels import SequenceLabeling, UniformPrior
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a"]], labels=["x", "y"])
    >>> SequenceLabeling(prior=UniformPrior()).full(corpus)[0, 0]
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """

    name: ClassVar[str] = "uniform"
    summary: ClassVar[str] = "nothing is known"

    def resolve(self, packed: Packed, like: Packed | None = None) -> Floats | None:  # noqa: ARG002
        return None


@dataclass(frozen=True)
class TabulatedPrior(Prior):
    """P(y|x) is the table that the corpus carries, for example the marginals of another model.

    >>> from gramline.kernels import SequenceLabeling, TabulatedPrior
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a"]], prior=[[[0.75, 0.25]]], labels=["x", "y"])
    >>> SequenceLabeling(prior=TabulatedPrior()).full(corpus)[0, 0]
    array([[0.5625, 0.    ],
           [0.    , 0.0625]])
    """

    name: ClassVar[str] = "tabulated"
    summary: ClassVar[str] = "a table that the corpus carries, such as the marginals of a CRF"

    def resolve(self, packed: Packed, like: Packed | None = None) -> Floats | None:  # noqa: ARG002
        table = packed.table
        if table is None:
            raise PackingError(
                "TabulatedPrior reads a prior table, but the corpus carries none",
                advice='make the corpus with one (a "prior" row per position), or use another prior',
                owner=type(self),
            )
        if table.shape != (packed.n_positions, packed.n_labels):
            raise PackingError(
                f"the prior table has shape {table.shape}, but the corpus has {packed.n_positions} positions and "
                f"{packed.n_labels} labels",
                advice="give one row per position and one column per label",
            )
        if (improper := improper_row(table)) is not None:
            position, problem = improper
            raise PackingError(f"the prior row {problem}", advice=DISTRIBUTION_ADVICE, **place(packed.starts, position))
        return table


@dataclass(frozen=True)
class LearnedPrior(TabulatedPrior):
    """P(y|x) is what a learner says of the structures that it was not trained on.

    Who trains on a corpus makes the table first, `gramline.learners.CrossFittedPrior`, which trains the learner on the
    labels that are known then: `KernelLabeler`, `gramline fit` and, on every fold, `gramline cv`. A learner on a Gram
    matrix gets that of the same kernel with a uniform prior. In job files and on the command line the `settings` of the
    learner stand beside its name: `learned:learner=kernel-crf,dual=false`.

    >>> from gramline.kernels import LearnedPrior
    >>> LearnedPrior(settings={"penalty": 0.3}).to_dict()
    {'name': 'learned', 'learner': 'kernel-crf', 'folds': 5, 'penalty': 0.3}
    """

    name: ClassVar[str] = "learned"
    summary: ClassVar[str] = "marginals of a learner, of each structure those of one that did not see it"

    learner: Annotated[Text, "its name: `kernel-crf` or `gaussian-process`"] = "kernel-crf"
    folds: Annotated[int, Number(whole=True, least=2), "each is left out of one training"] = 5
    settings: Annotated[Any, Settings(), "parameters of the learner, in a job file each a key of its own"] = ()

    def to_dict(self) -> dict[str, Any]:
        own = super().to_dict()
        del own["settings"]
        return own | {key: list(value) if isinstance(value, tuple) else value for key, value in self.settings}

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> Self:
        """The prior with these parameters; those that are not its own are the learner's."""
        known = parameters_of(cls)
        own = {key: value for key, value in params.items() if key in known}
        others = {key: value for key, value in params.items() if key not in known}
        return cls(**own | ({"settings": dict(own.get("settings", ())) | others} if others else {}))

    def resolve(self, packed: Packed, like: Packed | None = None) -> Floats | None:
        if packed.table is None:
            raise PackingError(
                "LearnedPrior is made by a learner before its kernel is computed, and here nobody made it",
                advice="use `gramline fit`, `gramline cv` or KernelLabeler, or give the corpus a table with "
                "CrossFittedPrior and take TabulatedPrior",
                owner=type(self),
            )
        return super().resolve(packed, like)


@dataclass(frozen=True)
class EmpiricalPrior(Prior):
    """P(y|x) = (count(x, y) + s) / (count(x) + s L): label frequencies of the observation in the training corpus.

    L is the number of labels. An observation without training labels gets 1 / L.

    >>> from gramline.kernels import EmpiricalPrior
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "b", "a"]], [["x", "y", "x"]])
    >>> EmpiricalPrior(smoothing=1.0).resolve(corpus.packed())
    array([[0.75      , 0.25      ],
           [0.33333333, 0.66666667],
           [0.75      , 0.25      ]])
    """

    name: ClassVar[str] = "empirical"
    summary: ClassVar[str] = "how often an observation had each label in training"

    smoothing: Annotated[Weight, "s: counts added to every label, above 0"] = 1.0

    def resolve(self, packed: Packed, like: Packed | None = None) -> Floats | None:
        training = packed if like is None else like
        n_labels = packed.n_labels
        n_symbols = 1 + max(int(np.max(part.symbols, initial=-1)) for part in (packed, training))
        labeled = training.labels != MISSING
        if not labeled.any():
            problem = "EmpiricalPrior counts training labels, but no position of the training corpus has one"
            raise PackingError(problem, owner=type(self))
        cells = training.symbols[labeled].astype(np.int64) * n_labels + training.labels[labeled]
        counts = np.bincount(cells, minlength=n_symbols * n_labels).reshape(n_symbols, n_labels).astype(np.float64)
        table = (counts + self.smoothing) / (counts.sum(axis=1, keepdims=True) + self.smoothing * n_labels)
        result: Floats = table[packed.symbols]
        return result


def improper_row(table: Floats) -> tuple[int, str] | None:
    """The first row that is no distribution, and what is wrong with it; None where all rows are distributions."""
    is_proper = (table >= 0).all(axis=1) & (np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE)  # false for nan
    if is_proper.all():
        return None
    row = table[(number := int(np.argmin(is_proper)))]
    return number, f"has values from {row.min():.6g} to {row.max():.6g} and the sum {row.sum():.6g}"
