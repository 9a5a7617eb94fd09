"""A trained labeler that needs nothing else: learner, kernel and the training structures its predictions rest on.

Prediction streams: a block of new structures against a block of support structures, tile computed, multiplied and
dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel, check_kernel
from gramline.kernels.distinct import DistinctRows
from gramline.kernels.packing import Features, Packable, Packed, PackedSequences, check_packable
from gramline.kernels.ranges import offsets_from_lengths
from gramline.learners.arrays import Matrix
from gramline.learners.cross_fitted_prior import CrossFittedPrior
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import Learner, is_listed
from gramline.learners.kinds import HasProbabilities
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.choices import CorpusFormat
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.cost import Cost
from gramline.pipeline.files import path_text
from gramline.pipeline.gram.spec import has_learned_prior
from gramline.pipeline.models.new_structures import ModelInput, NewStructures
from gramline.pipeline.models.saved import (
    SavedLearner,
    check_labels,
    check_rows,
    describe_learner,
    load_learner,
    save_learner,
)
from gramline.pipeline.models.support_cross import IndexedSupport, SupportCross
from gramline.pipeline.storage.places import MODEL

if TYPE_CHECKING:
    from gramline.pipeline.models.spread_prediction import Predicted, Question


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted learner with what its predictions need.

    A learner on a Gram has a kernel and `support`, its training structures with a nonzero weight, prepared by the
    kernel. A learner on explicit features has no kernel, and `support` holds no structure, only the vocabulary.

    New structures are raw sentences (lists of words, of rows of columns, or of features, as in training) or a corpus;
    `recipe`, how the training corpus was made, describes the first and refuses a corpus that was made otherwise.

    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.learners import DenseGram, LabelingPerceptron
    >>> from gramline.pipeline import Corpus, Model
    >>> corpus = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> kernel = SequenceLabeling(c=0.5)
    >>> learner = LabelingPerceptron(rounds=3).fit(DenseGram.of(kernel, corpus), corpus.labels)
    >>> Model.of(learner, corpus, kernel).predict(Corpus.from_sequences([["the", "cat", "sat"]]))
    [['D', 'N', 'V']]
    """

    learner: Learner
    kernel: Kernel | None
    support: Packed
    counted: Packed | None = None  # symbols and labels of all training positions, for priors that count them
    notes: list[str] = field(default_factory=list)  # the learner's and of the structures, after the last prediction
    recipe: Recipe | None = None  # how the training corpus was made, where that is known
    cost: Cost | None = None  # of its training, where that is known
    prior: Model | None = None  # of the learner that makes the prior of new structures

    @classmethod
    def of(
        cls,
        learner: Learner,
        corpus: Packable | Packed,
        kernel: Kernel | None = None,
        *,
        prior: CrossFittedPrior | None = None,
        recipe: Recipe | None = None,
    ) -> Model:
        """The model of a learner that was fitted on this corpus (through this kernel); a Corpus has its own recipe.

        A `prior` that the corpus has its table from makes that of new structures, too.
        """
        if not isinstance(learner, Learner):
            raise LearnerError(f"expected a fitted learner such as LabelingPerceptron(), got {learner!r}")
        learner.require_fitted()
        check_packable(corpus)
        recipe = corpus.recipe if recipe is None and isinstance(corpus, Corpus) else recipe
        packed = corpus if isinstance(corpus, Packed) else corpus.packed()
        if learner.reads_corpus:
            return cls(learner, None, packed.structures(0, 0), recipe=recipe)
        if kernel is None:
            raise LearnerError(f"a model of {type(learner).__name__} needs the kernel of its Gram matrix")
        check_kernel(kernel)
        if prior is None and has_learned_prior(kernel):
            raise LearnerError(
                "the kernel has a learned prior, whose learner a Gram matrix does not keep",
                advice="train on the corpus, or give the fitted prior",
            )
        # Rows that a store keeps are prepared already; a prior is resolved once, in terms of the corpus it belongs to.
        prepared = packed if packed.prior is not None else kernel.prepare(packed)
        lengths = kernel.row_lengths(prepared)
        needed = learner.support()
        if len(needed) != lengths.sum():
            raise LearnerError(
                f"the learner was trained on {len(needed)} rows, but the corpus has {int(lengths.sum())}; "
                "give the corpus that its Gram matrix was built from"
            )
        is_support = np.zeros(len(lengths), bool)
        is_support[np.searchsorted(offsets_from_lengths(lengths), np.flatnonzero(needed), side="right") - 1] = True
        counted = None if prepared.prior is None else _symbols_and_labels(prepared.symbols, prepared.labels)
        made = None
        if prior is not None:
            prior.require_fitted()
            made = cls.of(prior.learner_, replace(packed, prior=None, table=None), prior.kernel)
        support = prepared.take(np.flatnonzero(is_support))
        del packed, prepared  # as large as the corpus; the weights, which are larger, are copied next
        reduced = learner.restricted(np.flatnonzero(np.repeat(is_support, lengths)))
        return cls(reduced, kernel, support, counted, recipe=recipe, prior=made)

    # ---- new structures

    @cached_property
    def _input(self) -> ModelInput:
        """What describes and packs new structures; it keeps an index of the vocabulary."""
        return ModelInput(self.support, self.recipe, self.kernel, self.learner)

    @cached_property
    def _indexed(self) -> IndexedSupport | None:
        if self.kernel is None or not IndexedSupport.suits(self.kernel):
            return None
        return IndexedSupport(self.kernel, self.support)

    @cached_property
    def _distinct_support(self) -> DistinctRows:
        assert self.kernel is not None
        return DistinctRows.of(self.kernel, self.support)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the fields; an index is made again where it is needed."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def corpus_of(self, sentences: Iterable[Any], y: Iterable[Any] | None = None) -> Corpus:
        """Raw sentences as the training corpus was made; `y` has their labels, where they are known."""
        return self._input.corpus_of(sentences, y)

    def read(self, path: str | os.PathLike[str], format: CorpusFormat | None = None) -> Corpus:
        """A corpus file (.parquet), or a raw file in any format, read as the training corpus was."""
        return self._input.read(path_text(path), format)

    # ---- prediction

    def packed(self, corpus: NewStructures) -> Packed:
        """New structures in the vocabulary of the model, which begins theirs."""
        self.notes.clear()
        return self._input.packed(list(corpus) if _is_raw(corpus) else corpus, self.notes)

    def predict(self, corpus: NewStructures, *, block_rows: int | None = None, client: Any = None) -> list[list[str]]:
        """Labels of every structure, by the workers of a Dask `client` where one is given.

        These must see the folder for temporary files (TMPDIR), where the model and what is new wait for them.
        """
        if client is not None:
            return self._by_workers(corpus, block_rows, client, "labels").labels
        predicted: list[list[str]] = []
        for (part,) in self._streamed(corpus, block_rows, self._labeling.predict):
            predicted.extend(part)
        return predicted

    def decision_scores(self, corpus: NewStructures, *, block_rows: int | None = None, client: Any = None) -> Matrix:
        """Scores of every position (for structure kernels: of every structure) and label."""
        if client is not None:
            return self._table_by_workers(corpus, block_rows, client, "scores")
        return self._joined(part for (part,) in self._streamed(corpus, block_rows, self._labeling.decision_scores))

    def predict_proba(self, corpus: NewStructures, *, block_rows: int | None = None, client: Any = None) -> Matrix:
        """Probabilities of the labels at every position, from learners that know them."""
        if client is not None:
            return self._table_by_workers(corpus, block_rows, client, "probabilities")
        return self._joined(part for (part,) in self._streamed(corpus, block_rows, self._probabilities))

    def predict_with_proba(
        self, corpus: NewStructures, *, block_rows: int | None = None
    ) -> tuple[list[list[str]], Matrix]:
        """Both, from one look at the new structures."""
        predicted: list[list[str]] = []
        tables: list[Matrix] = []
        for part, table in self._streamed(corpus, block_rows, self._labeling.predict, self._probabilities):
            predicted.extend(part)
            tables.append(table)
        return predicted, self._joined(tables)

    def _by_workers(self, corpus: NewStructures, block_rows: int | None, client: Any, question: Question) -> Predicted:
        # Whoever predicts here must not wait for what knows clusters.
        from gramline.pipeline.executors.choice import choose_executor
        from gramline.pipeline.models.spread_prediction import predict_on_workers

        executor = choose_executor(client, None)
        with TemporaryDirectory(prefix="gramline-") as folder:
            place = f"{folder}/model"
            return predict_on_workers(self, corpus, executor, place, block_rows=block_rows, question=question)

    def _table_by_workers(
        self, corpus: NewStructures, block_rows: int | None, client: Any, question: Question
    ) -> Matrix:
        table = self._by_workers(corpus, block_rows, client, question).table
        assert table is not None
        return table

    def _joined(self, tables: Iterable[Matrix]) -> Matrix:
        """Tables over the labels, one below the other; of no structures, an empty one."""
        return np.concatenate([np.zeros((0, len(self.label_names))), *tables])

    def crosses(self, corpus: NewStructures, *, block_rows: int | None = None) -> Iterator[GramOperator]:
        """The Gram between the support and each block of new structures, computed tile by tile."""
        if self.kernel is None:
            raise LearnerError(f"{type(self.learner).__name__} reads features, not a Gram matrix")
        like = self.support if self.counted is None else self.counted
        new = self._input.packed(corpus, self.notes)
        if self.prior is not None:
            new = replace(new, table=self.prior.predict_proba(new))
        new = self.kernel.prepare(new, like=like)
        if block_rows is None and self._indexed is not None and self._indexed.is_few(new):
            yield SupportCross(self._indexed, new)
            return
        layout = BlockLayout.of(self.kernel.row_lengths(new), block_rows)
        for block in range(layout.n_blocks):
            structures = layout.structures(block)
            columns = new.structures(structures.start, structures.stop)
            yield ComputedGram(
                self.kernel, self.support, columns, block_rows=block_rows, distinct_rows=self._distinct_support
            )

    @property
    def _labeling(self) -> Any:
        """The learner as one that labels, from a Gram matrix or from a corpus as it needs it."""
        return self.learner

    def _probabilities(self, evidence: Any) -> Matrix:
        if not isinstance(self.learner, HasProbabilities):
            raise LearnerError(
                f"{type(self.learner).__name__} cannot tell probabilities",
                advice="a Gaussian-process labeler can",
                owner=type(self.learner),
            )
        return self.learner.predict_proba(evidence)

    def _streamed(
        self, corpus: NewStructures, block_rows: int | None, *answers: Callable[[Any], Any]
    ) -> Iterator[tuple[Any, ...]]:
        """What the learner answers for every block of new structures; nothing where there are none."""
        self.notes.clear()
        if _is_raw(corpus):
            corpus = list(corpus)
            if not corpus:
                return
        try:
            if self.learner.reads_corpus:
                packed = self._input.packed(corpus, self.notes)
                yield tuple(answer(packed) for answer in answers)
            else:
                for cross in self.crosses(corpus, block_rows=block_rows):
                    yield tuple(answer(cross) for answer in answers)
                    self.notes.extend(note for note in self.learner.notes() if note not in self.notes)
        except AttributeError as error:
            if error.obj is not self.learner:
                raise
            raise LearnerError(f"the learner of this model lacks {error.name!r}", advice="train it again") from None

    # ---- what it is

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.learner.fitted().get("label_names_", self.support.vocabulary.labels))

    def describe(self) -> dict[str, Any]:
        """What it is, as a small JSON-able dictionary."""
        return describe_learner(self.learner, self.kernel, self.support) | {
            "recipe": None if self.recipe is None else self.recipe.describe(),
            "labels": list(self.label_names),
            "support_structures": len(self.support),
            "support_positions": self.support.n_positions,
        }

    # ---- disk

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model, whole or not at all; `overwrite` replaces a model or a ranker, and nothing else."""
        counted = self.counted
        more = {} if counted is None else {"counted": {"symbols": counted.symbols, "labels": counted.labels}}
        prior = None
        if self.prior is not None:
            prior = SavedLearner(self.prior.learner, self.prior.kernel, self.prior.support)
        saved = SavedLearner(self.learner, self.kernel, self.support, more, self.recipe, self.cost, prior)
        save_learner(path, MODEL, saved, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a model that `save` wrote."""
        return load_learner(path, {MODEL: cls.from_saved})

    @classmethod
    def from_saved(cls, saved: SavedLearner) -> Model:
        """The model that was saved; its parts are checked against each other."""
        if saved.kernel is not None:
            check_rows(saved.learner, int(saved.kernel.row_lengths(saved.support).sum()))
            check_labels(saved.learner, saved.support)
        elif not saved.learner.reads_corpus:
            raise LearnerError(f"a {saved.learner.name} needs the kernel of its Gram matrix")
        counts = saved.more.get("counted")
        counted = None if counts is None else _symbols_and_labels(counts["symbols"], counts["labels"])
        prior = None if saved.prior is None else cls.from_saved(saved.prior)
        if prior is not None and (
            not isinstance(prior.learner, HasProbabilities) or prior.support.vocabulary != saved.support.vocabulary
        ):
            raise LearnerError("the prior of the model does not go with its training structures")
        return cls(
            saved.learner, saved.kernel, saved.support, counted, recipe=saved.recipe, cost=saved.cost, prior=prior
        )


def _is_raw(corpus: NewStructures) -> TypeGuard[Iterable[Any]]:
    """Whether these are sentences as they come, not a corpus."""
    return is_listed(corpus) and not isinstance(corpus, Packed | Packable)


def _symbols_and_labels(symbols: NDArray[Any], labels: NDArray[Any]) -> Packed:
    nothing = Features(np.zeros(len(symbols) + 1, np.int64), np.zeros(0, np.int32), None)
    return PackedSequences(np.array([0, len(symbols)]), symbols, nothing, labels)
