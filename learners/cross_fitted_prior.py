"""P(y|x) of a probabilistic learner for a labeling kernel: what it says of structures that it was not trained on.

The marginals of a learner on its own training structures are far too sure, and a kernel that reads them as a prior
would be taught to trust them. So the structures are dealt into folds, and each gets the marginals of a learner that was
trained on the other folds.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, Any, Protocol, Self, runtime_checkable

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.packing import MISSING, Packable, Packed, check_packable
from gramline.kernels.ranges import indices_of_ranges
from gramline.kernels.value_kinds import Number
from gramline.learners.arrays import Codes, Indices, Matrix
from gramline.learners.errors import LabelError, LearnerError, LearnerParameterError
from gramline.learners.estimator import Estimator, Learner
from gramline.learners.kinds import SharedPassLearner
from gramline.learners.labels import decode_labels
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram

DENSE_BYTES = 1 << 30  # a Gram matrix up to this size is held in memory
CONTENT = ("symbols", "feature_indptr", "feature_indices", "feature_values", "link_indptr", "link_targets", "tags")


@runtime_checkable
class TakesPrior(Packable, Protocol):
    """A corpus that can carry a table P(y|x)."""

    def with_prior(self, prior: Any, labels: Any = None) -> Self:
        """The same structures with one table each, whose columns are the `labels`."""


class CrossFittedPrior(Estimator):
    """Marginals of a learner as the table that `TabulatedPrior` reads, each structure's of a learner without it.

    `fit` deals the labeled structures of a corpus, equal ones together, into folds, trains one learner without each
    fold, and one on everything. `transform` gives a corpus its table: structures that were labeled in training get the
    marginals of the learner that did not see them, all others those of the learner that saw everything. Labels of the
    corpus to transform are never read.

    Attributes
    ----------
    learner_ : trained on everything
    marginals_ : the table of the training corpus, shape (n_positions, n_labels)
    folds_ : the fold of every training structure, -1 where it has no label
    label_names_ : the names of the columns

    Examples
    --------
    >>> from gramline.kernels import SequenceLabeling, TabulatedPrior
    >>> from gramline.learners import CrossFittedPrior, DenseGram, KernelCRF, LabelingPerceptron
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat"], ["the", "dog"]], [["D", "N"]] * 3)
    >>> prior = CrossFittedPrior(KernelCRF(dual=False), folds=3).fit(train)
    >>> prior.marginals_.round(2)[:2]
    array([[0.68, 0.32],
           [0.32, 0.68]])
    >>> kernel = SequenceLabeling(prior=TabulatedPrior())
    >>> with_prior = prior.transform(train)
    >>> learner = LabelingPerceptron().fit(DenseGram.of(kernel, with_prior), train.labels)
    >>> new = prior.transform(Corpus.from_sequences([["a", "dog"]]))
    >>> learner.predict(DenseGram.of(kernel, with_prior, new))
    [['D', 'N']]
    """

    learner_: Any
    marginals_: Matrix
    folds_: Indices
    label_names_: tuple[str, ...]

    def __init__(
        self,
        learner: Annotated[Learner, "a learner with probabilities, such as `KernelCRF`"],
        folds: Annotated[int, Number(whole=True, least=2), "each is left out of one training"] = 5,
        kernel: Annotated[Kernel | None, "of a learner on a Gram matrix"] = None,
    ) -> None:
        self.learner = learner
        self.folds = folds
        self.kernel = kernel

    def check_parameters(self) -> None:
        super().check_parameters()
        name = type(self.learner).__name__
        if not hasattr(type(self.learner), "predict_proba"):
            raise LearnerParameterError(
                f"{name} cannot tell probabilities, which a prior is made of",
                advice="KernelCRF and GaussianProcessLabeler can",
                key="learner",
            )
        self.learner.check_parameters()
        if self.kernel is not None and not self.kernel.per_position:
            problem = f"the kernel {self.kernel.name!r} compares whole structures, but a prior is one of positions"
            raise LearnerParameterError(problem, advice="give a labeling kernel", key="kernel")
        if not self.learner.reads_corpus and self.kernel is None:
            raise LearnerParameterError(
                f"{name} learns from a Gram matrix, but there is no kernel to make it with",
                advice="give CrossFittedPrior a kernel, or take KernelCRF(dual=False), which reads features",
                key="kernel",
            )
        if self.learner.reads_corpus and self.kernel is not None:
            raise LearnerParameterError(f"{name} reads features and has no kernel; leave it out", key="kernel")

    def fit(self, corpus: Packable | Packed) -> Self:
        """Train on the labeled structures of a corpus, `folds` + 1 times."""
        self.check_parameters()
        self.forget()
        check_packable(corpus)
        packed = corpus if isinstance(corpus, Packed) else corpus.packed()
        contents = structure_digests(packed)
        folds = self._dealt(packed, contents)
        trained = self._on_features(packed, folds) if self.kernel is None else self._on_gram(self.kernel, packed, folds)
        self.learner_, self.marginals_ = trained
        self.folds_, self.label_names_ = folds, tuple(self.learner_.label_names_)
        self._packed, self._place = packed, {digest: k for k, digest in enumerate(contents) if folds[k] >= 0}
        return self

    def transform(self, corpus: Any) -> Any:
        """The corpus with its tables; one of the same type as it was given."""
        self.require_fitted()
        check_packable(corpus)
        if isinstance(corpus, Packed):
            return replace(corpus, table=self._table(corpus))
        if not isinstance(corpus, TakesPrior):
            raise LearnerError(f"a {type(corpus).__name__} cannot carry a prior", advice="give a Corpus, or pack it")
        table = self._table(corpus.packed(like=self._vocabulary))
        return corpus.with_prior(table, self.label_names_)

    def fit_transform(self, corpus: Any) -> Any:
        """`fit`, then `transform` of the same corpus."""
        return self.fit(corpus).transform(corpus)

    def _dealt(self, packed: Packed, contents: list[bytes]) -> Indices:
        """The fold of every structure, -1 where neither it nor an equal one has a label."""
        owners = np.repeat(np.arange(len(packed)), packed.lengths)
        has_label = np.bincount(owners[packed.labels != MISSING], minlength=len(packed)) > 0
        if not has_label.any():
            raise LabelError("no position has a label", advice="a prior is learned from labeled structures")
        places: dict[bytes, int] = {}
        for structure in np.flatnonzero(has_label).tolist():
            places.setdefault(contents[structure], len(places))
        if len(places) < self.folds:
            raise LearnerError(
                f"there are {len(places)} different structures with labels, too few for {self.folds} folds",
                advice="give fewer folds, or label more structures",
            )
        return np.array([places[content] % self.folds if content in places else -1 for content in contents], np.int64)

    def _on_features(self, packed: Packed, folds: Indices) -> tuple[Any, Matrix]:
        """The learner of everything, and the marginals of all structures."""
        learner = self._new().fit(packed)
        marginals = np.zeros((packed.n_positions, len(learner.label_names_)))
        for fold in range(-1, self.folds):
            part = np.flatnonzero(folds == fold)
            if len(part):
                one = learner if fold < 0 else self._new().fit(packed.take(np.flatnonzero(folds != fold)))
                marginals[_positions(packed, part)] = one.predict_proba(packed.take(part))
        return learner, marginals

    def _on_gram(self, kernel: Kernel, packed: Packed, folds: Indices) -> tuple[Any, Matrix]:
        """The same on the Gram matrix of all structures; learners that can share its tiles."""
        prepared = kernel.prepare(packed)
        is_small = 8 * packed.n_positions**2 <= DENSE_BYTES
        gram = DenseGram.of(kernel, packed) if is_small else ComputedGram(kernel, prepared)
        names: list[str | None] = [*(gram.label_names or ()), None]
        owners = np.repeat(folds, packed.lengths)
        label_sets = [
            decode_labels(_hidden(packed.labels, owners == fold if fold >= 0 else None), names, packed.lengths)
            for fold in range(-1, self.folds)
        ]
        learners = [self._new() for _ in label_sets]
        if isinstance(self.learner, SharedPassLearner):
            type(self.learner).fit_many(learners, gram, label_sets)
        else:
            learners = [one.fit(gram, labels) for one, labels in zip(learners, label_sets, strict=True)]
        marginals = np.zeros((packed.n_positions, len(learners[0].label_names_)))
        for fold, one in enumerate(learners, start=-1):
            part = np.flatnonzero(folds == fold)
            if len(part):
                cross = ComputedGram(kernel, prepared, prepared.take(part))
                marginals[_positions(packed, part)] = one.predict_proba(cross)
        return learners[0], marginals

    def _table(self, packed: Packed) -> Matrix:
        """P(y|x) of structures in the vocabulary of the training, shape (n_positions, n_labels)."""
        self._check_vocabulary(packed)
        table = np.zeros((packed.n_positions, len(self.label_names_)))
        places = [self._place.get(digest, -1) for digest in structure_digests(packed)]
        known = np.flatnonzero(np.array(places) >= 0)
        table[_positions(packed, known)] = self.marginals_[_positions(self._packed, np.array(places)[known])]
        new = np.flatnonzero((np.array(places) < 0) & (packed.lengths > 0))
        if len(new):
            evidence: Any = packed.take(new)
            if self.kernel is not None:
                rows = self.kernel.prepare(self._packed)
                evidence = ComputedGram(self.kernel, rows, self.kernel.prepare(evidence, like=self._packed))
            table[_positions(packed, new)] = self.learner_.predict_proba(evidence)
        return table

    def _check_vocabulary(self, packed: Packed) -> None:
        for part in ("symbols", "features"):
            known, own = getattr(self._packed.vocabulary, part), getattr(packed.vocabulary, part)
            if own[: len(known)] != known:
                raise LearnerError(
                    f"the packed corpus has other {part} than the training corpus of the prior",
                    advice="give the corpus itself, or pack it with like= the training corpus",
                )

    @property
    def _vocabulary(self) -> Packed:
        return self._packed.structures(0, 0)

    def _new(self) -> Any:
        return self.learner.fresh()


def structure_digests(packed: Packed) -> list[bytes]:
    """A digest of what is seen of every structure: all but labels and priors."""
    digests = []
    for structure in range(len(packed)):
        part = packed.structures(structure, structure + 1)
        arrays = part.arrays() | {"feature_values": np.ones(len(part.features.indices))} | part.arrays()
        digest = blake2b(digest_size=16)
        for name in CONTENT:
            if name in arrays:
                digest.update(arrays[name].tobytes())
                digest.update(b"|")
        digests.append(digest.digest())
    return digests


def _positions(packed: Packed, structures: Indices) -> Indices:
    return indices_of_ranges(packed.starts[structures], packed.lengths[structures])


def _hidden(labels: Codes, hides: Any) -> Codes:
    """The labels with those of some positions missing; MISSING picks the last name, None."""
    return labels if hides is None else np.where(hides, np.int32(MISSING), labels)
