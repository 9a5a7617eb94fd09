"""A kernel and a learner as one scikit-learn style estimator on lists of sequences or on a corpus."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from gramline.kernels.base import Kernel
from gramline.kernels.parameters import Whole
from gramline.learners.arrays import Matrix
from gramline.learners.errors import LearnerParameterError
from gramline.learners.estimator import Estimator, Learner
from gramline.learners.kinds import RankingLearner
from gramline.learners.metrics import evaluate
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.models.model import Model

DENSE_LIMIT_BYTES = 1 << 30  # a Gram matrix up to this size is held in memory unless a store is given


class KernelLabeler(Estimator):
    """Fits a learner on the Gram matrix of a kernel and predicts labels of new structures.

    `X` is a Corpus, or a list of sequences whose tokens are strings, dictionaries or iterables of feature names; `y`
    has one list of labels per sequence, None where there is none. The Gram matrix is held in memory when it takes
    at most 1 GiB; with `store`, or when it is larger, it is built into a Zarr store (a temporary one on this machine
    unless given) on the workers of the Dask `client`, or in this process. `block_rows` bounds the tiles, in training
    and in prediction. `kernel` may be None for learners that read features themselves.
    """

    model_: Model
    learner_: Learner  # fitted on all training rows; the model keeps only those it needs
    classes_: tuple[str, ...]

    def __init__(
        self,
        kernel: Kernel | None,
        learner: Learner,
        *,
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        block_rows: Whole | None = None,
    ) -> None:
        self.kernel = kernel
        self.learner = learner
        self.store = store
        self.client = client
        self.block_rows = block_rows

    def fit(self, X: Corpus | Iterable[Any], y: Iterable[Any] | None = None) -> Self:
        """Train on labeled structures; a corpus may carry its labels itself."""
        self.check_parameters()
        corpus = self._corpus(X, y)
        learner: Any = self.learner.fresh()
        if isinstance(learner, RankingLearner):
            raise LearnerParameterError(
                f"{type(learner).__name__} ranks candidates and labels nothing; train it with "
                "gramline.pipeline.fit_ranker"
            )
        if learner.reads_corpus:
            learner.fit(corpus)
        else:
            learner.fit(self._gram(self._required_kernel(), corpus), corpus.labels)
        self.learner_ = learner
        self.model_ = Model.of(learner, corpus, self.kernel)
        self.classes_ = self.model_.label_names
        return self

    def predict(self, X: Corpus | Iterable[Any]) -> list[list[str]]:
        """Labels of every structure."""
        self.require_fitted()
        return self.model_.predict(self._corpus(X), block_rows=self.block_rows)

    def predict_scores(self, X: Corpus | Iterable[Any]) -> list[Matrix]:
        """Scores of the labels (in the order of `classes_`), one (positions, labels) array per structure."""
        self.require_fitted()
        corpus = self._corpus(X)
        return corpus.by_structure(self.model_.decision_scores(corpus, block_rows=self.block_rows))

    def predict_proba(self, X: Corpus | Iterable[Any]) -> list[Matrix]:
        """Probabilities of the labels, likewise, from learners that know them."""
        self.require_fitted()
        corpus = self._corpus(X)
        return corpus.by_structure(self.model_.predict_proba(corpus, block_rows=self.block_rows))

    def score(self, X: Corpus | Iterable[Any], y: Iterable[Any] | None = None) -> float:
        """Part of the labeled positions that are predicted right."""
        corpus = self._corpus(X, y)
        return evaluate(corpus.labels, self.predict(corpus)).accuracy

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model; `load` reads it back. `overwrite` replaces a model or a ranker, and nothing else."""
        self.require_fitted()
        self.model_.save(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fitted labeler from a saved model."""
        model = Model.load(path)
        labeler = cls(model.kernel, model.learner.fresh())
        labeler.model_ = model
        labeler.learner_ = model.learner
        labeler.classes_ = model.label_names
        return labeler

    def _gram(self, kernel: Kernel, corpus: Corpus) -> GramOperator:
        """In memory, in the given store, or in a temporary one that lives as long as a learner holds the matrix."""
        n_rows = corpus.n_positions if kernel.per_position else len(corpus)
        if self.store is None and 8 * n_rows**2 <= DENSE_LIMIT_BYTES:
            return DenseGram.of(kernel, corpus, block_rows=self.block_rows)
        if self.store is not None:
            return build_gram(kernel, corpus, self.store, client=self.client, block_rows=self.block_rows)
        with ExitStack() as folder:
            path = Path(folder.enter_context(TemporaryDirectory(prefix="gramline-"))) / "training.gram.zarr"
            gram = build_gram(kernel, corpus, path, client=self.client, block_rows=self.block_rows)
            # A Gaussian-process labeler factors it again when it predicts.
            weakref.finalize(gram, folder.pop_all().close)
        return gram

    def _required_kernel(self) -> Kernel:
        if self.kernel is None:
            raise LearnerParameterError(f"{type(self.learner).__name__} learns from a Gram matrix; give a kernel")
        return self.kernel

    def _corpus(self, X: Corpus | Iterable[Any], y: Iterable[Any] | None = None) -> Corpus:
        if isinstance(X, Corpus):
            return X if y is None else X.with_labels(y)
        if self.kernel is not None and self.kernel.packed_kind != "sequences":
            raise CorpusError(
                f"{type(self.kernel).__name__} compares {self.kernel.packed_kind}; give a Corpus of them, not lists"
            )
        return Corpus.from_sequences(X, y)
