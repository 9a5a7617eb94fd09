"""A kernel and a learner as one scikit-learn style estimator on lists of sequences or on a corpus."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelWarning
from gramline.kernels.parameters import Whole
from gramline.learners.arrays import Matrix
from gramline.learners.errors import LearnerParameterError
from gramline.learners.estimator import Estimator, Learner, is_listed
from gramline.learners.kinds import RankingLearner
from gramline.learners.metrics import evaluate
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.cost import Spent
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.events import Event, Message
from gramline.pipeline.executors.choice import choose_executor
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.learned_prior import with_learned_prior
from gramline.pipeline.gram.notes import warn_about_kernel
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, identity_of
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.recommended import described, recommended_kernel, recommended_learner
from gramline.pipeline.models.training_gram import training_gram
from gramline.pipeline.models.usefulness import no_better_than_majority

SPREAD_VALUES = 200_000_000  # kernel values of a prediction: fewer are here sooner than workers know the model
FeatureSet = Literal["auto", "token", "words", "spelling"]
WordFeatures = Annotated[
    FeatureSet, '`"auto"`: spelling where the kernel is the recommended one, else `"token"`, the words as they are'
]


class LabelLists(list[list[str]]):
    """One list of labels per structure; as an array one entry per structure, since they differ in length.

    scikit-learn joins the predictions of folds as arrays.
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        array = np.empty(len(self), object)
        for place, labels in enumerate(self):  # all at once, lists of one length would be taken for a table
            array[place] = labels
        return array


class KernelLabeler(Estimator):
    """Fits a learner on the Gram matrix of a kernel and predicts labels of new structures.

    Without a kernel and a learner it takes those that `gramline.pipeline.models.recommended` recommends for the
    structures; words are then described by their spelling and that of their neighbours, in training and prediction.

    `X` is a Corpus, or a list of sequences whose tokens are strings, dictionaries or iterables of feature names; `y`
    has one list of labels per sequence, None where there is none. The Gram matrix is held in memory when it takes
    at most 1 GiB. Of a larger one values are computed when they are needed, or a temporary Zarr store is built on this
    machine where the disk has room and a store is cheaper, as samples tell. With `store` it is built there, on the
    workers of the Dask `client` or in this process. The workers of a client learn and predict, too, where that is much
    work; they must see the store, or the folder for temporary files (TMPDIR). `block_rows` bounds the tiles, in
    training and in prediction. Learners that read features themselves need no kernel.

    Attributes
    ----------
    kernel_, learner_ : those that were used; the learner is fitted on all training rows. No kernel: None.
    recipe_ : how the training structures were described, None for a corpus whose makers said nothing.
    model_ : what predicts; it keeps only the training rows it needs.
    classes_ : the label names.
    gram_note_ : whether tiles of a matrix too large for memory were stored, and why; empty of others. Not saved.

    >>> from gramline.pipeline import KernelLabeler
    >>> labeler = KernelLabeler().fit([["Ann", "saw", "Bob"], ["they", "saw", "Eve"]], [["N", "V", "N"]] * 2)
    >>> labeler.predict([["Bob", "saw", "Ann"]]), labeler.recipe_.features
    ([['N', 'V', 'N']], 'spelling')
    """

    kernel_: Kernel | None
    learner_: Learner
    recipe_: Recipe | None
    model_: Model
    classes_: tuple[str, ...]
    gram_note_: str = ""

    def __init__(
        self,
        kernel: Kernel | None = None,
        learner: Learner | None = None,
        *,
        features: WordFeatures = "auto",
        store: str | os.PathLike[str] | None = None,
        client: Any = None,
        block_rows: Whole | None = None,
    ) -> None:
        self.kernel = kernel
        self.learner = learner
        self.features = features
        self.store = store
        self.client = client
        self.block_rows = block_rows

    def fit(
        self,
        X: Corpus | Iterable[Any],
        y: Iterable[Any] | None = None,
        *,
        checkpoint: TrainingCheckpoint | None = None,
    ) -> Self:
        """Train on labeled structures; a corpus may carry its labels itself.

        With a `checkpoint` of the path where the model will be saved, the same `fit` goes on where it was interrupted.
        """
        self.check_parameters()
        if isinstance(self.learner, RankingLearner):
            raise LearnerParameterError(
                f"{type(self.learner).__name__} ranks candidates and labels nothing; train it with "
                "gramline.pipeline.fit_ranker"
            )
        spent, note = Spent(), ""
        corpus = self._described(self._corpus(X, y))
        learner: Any = recommended_learner(corpus, self.kernel) if self.learner is None else self.learner.fresh()
        if checkpoint is not None and not learner.resumes:
            raise LearnerParameterError(f"{type(learner).__name__} trains in one go and takes no checkpoint")
        kernel = prior = None
        if learner.reads_corpus:
            learner.fit(corpus)
        else:
            kernel = recommended_kernel(corpus) if self.kernel is None else self.kernel
            corpus, prior = with_learned_prior(kernel, corpus)
            gram, note = self._gram(kernel, corpus, learner)
            _fit_on_gram(learner, gram, corpus, kernel, checkpoint)
            del gram  # its tiles go with it, unless the learner needs them
        self._keep(replace(Model.of(learner, corpus, kernel, prior=prior), cost=spent.cost), learner)
        self.gram_note_ = note
        if (problem := no_better_than_majority(self.model_, corpus)) is not None:
            warnings.warn(problem, stacklevel=2)
        return self

    def _keep(self, model: Model, learner: Learner) -> None:
        self.kernel_, self.learner_, self.recipe_ = model.kernel, learner, model.recipe
        self.model_, self.classes_ = model, model.label_names

    def predict(self, X: Corpus | Iterable[Any]) -> list[list[str]]:
        """Labels of every structure."""
        self.require_fitted()
        return LabelLists(self.model_.predict(X, block_rows=self.block_rows, client=self._client_for(X)))

    def predict_scores(self, X: Corpus | Iterable[Any]) -> list[Matrix]:
        """Scores of the labels (in the order of `classes_`), one (positions, labels) array per structure."""
        return self._by_structure(X, "decision_scores")

    def predict_proba(self, X: Corpus | Iterable[Any]) -> list[Matrix]:
        """Probabilities of the labels, likewise, from learners that know them."""
        return self._by_structure(X, "predict_proba")

    def score(self, X: Corpus | Iterable[Any], y: Iterable[Any] | None = None) -> float:
        """Part of the labeled positions that are predicted right."""
        self.require_fitted()
        corpus = self._corpus(X, y) if isinstance(X, Corpus) else self.model_.corpus_of(X, y)
        return evaluate(corpus.labels, self.predict(corpus)).accuracy

    def _by_structure(self, X: Corpus | Iterable[Any], question: str) -> list[Matrix]:
        """What the model answers for all positions, as one array per structure."""
        self.require_fitted()
        if is_listed(X) and not isinstance(X, Corpus):
            X = list(X)
            if not X:
                return []
        corpus = X if isinstance(X, Corpus) else self.model_.corpus_of(X)
        client = self._client_for(corpus)
        table: Matrix = getattr(self.model_, question)(corpus, block_rows=self.block_rows, client=client)
        return corpus.by_structure(table)

    def _client_for(self, X: Any) -> Any:
        """The client, where there is one and its workers are worth asking."""
        if self.client is None or not isinstance(X, Corpus | Sized):
            return None
        n_new = X.n_positions if isinstance(X, Corpus) else len(X)
        return self.client if n_new * self.model_.support.n_positions >= SPREAD_VALUES else None

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the fitted model; `load` reads it back. `overwrite` replaces a model or a ranker, and nothing else."""
        self.require_fitted()
        self.model_.save(path, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fitted labeler from a saved model."""
        model = Model.load(path)
        of_lists = "" if model.recipe is None or model.recipe.format != LISTS else model.recipe.features
        features: FeatureSet = next((name for name in get_args(FeatureSet) if name == of_lists), "auto")
        labeler = cls(model.kernel, model.learner.fresh(), features=features)
        labeler._keep(model, model.learner)
        return labeler

    def _gram(self, kernel: Kernel, corpus: Corpus, learner: Learner) -> tuple[GramOperator, str]:
        """In the given store, or as it suits the learner and the machine; and a note about that."""
        if self.store is not None:
            gram = build_gram(kernel, corpus, self.store, client=self.client, block_rows=self.block_rows)
            gram.executor = choose_executor(self.client, None)
            return gram, ""
        warn_about_kernel(kernel, corpus, stacklevel=4)  # the line that called `fit`; a store warns by itself
        notes: list[str] = []

        def listen(event: Event) -> None:  # a matrix may keep it, and must not keep this labeler by it
            if isinstance(event, Message):
                notes.append(event.text)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWarning)
            chosen = training_gram(
                kernel, corpus, learner, progress=listen, client=self.client, block_rows=self.block_rows
            )
        return chosen, "; ".join(notes)

    def _described(self, corpus: Corpus) -> Corpus:
        """Words get the features that were asked for; by themselves only where the kernel is the recommended one."""
        if self.features == "auto":
            reads_features = self.learner is not None and self.learner.reads_corpus
            return corpus if self.kernel is not None or reads_features else described(corpus)
        if corpus.recipe is not None and corpus.recipe.features == self.features:
            return corpus
        if corpus.has_features:
            raise CorpusError(f"features={self.features!r} describes words, but these tokens have features already")
        return corpus.with_features(self.features)

    def _corpus(self, X: Corpus | Iterable[Any], y: Iterable[Any] | None = None) -> Corpus:
        if isinstance(X, Corpus):
            return X if y is None else X.with_labels(y)
        if self.kernel is not None and self.kernel.packed_kind != "sequences":
            raise CorpusError(
                f"{type(self.kernel).__name__} compares {self.kernel.packed_kind}; give a Corpus of them, not lists"
            )
        return Corpus.from_sequences(X, y).described(Recipe(LISTS))


def _fit_on_gram(
    learner: Any, gram: GramOperator, corpus: Corpus, kernel: Kernel, checkpoint: TrainingCheckpoint | None
) -> None:
    if checkpoint is None:
        learner.fit(gram, corpus.labels)
        return
    checkpoint.begin(identity_of(learner, gram, corpus.labels, kernel, corpus))
    with checkpoint.kept():
        learner.fit(gram, corpus.labels, checkpoint=checkpoint)
