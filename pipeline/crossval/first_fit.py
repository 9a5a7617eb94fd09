"""From a labeled corpus to a model and how good it is: kernel, Gram matrix, a short cross-validation, training.

What `gramline fit` does with a file. The Gram matrix is made once for the folds and for the training on everything, in
memory, on disk, or not at all: see `training_gram`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramline.kernels.base import Kernel
from gramline.learners.estimator import Learner
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.quick import QuickScore, quick_score
from gramline.pipeline.crossval.winner import Winner
from gramline.pipeline.events import Listener, Message, RoundDone, silent
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.training_gram import training_gram


@dataclass(frozen=True)
class FirstFit:
    """A model trained on everything, and what its like reached on structures it did not see."""

    model: Model
    score: QuickScore | None  # None where nobody asked, or where there are too few structures


def first_fit(
    corpus: Corpus,
    learner: Learner,
    kernel: Kernel | None,
    *,
    evaluates: bool = True,
    beside: str | None = None,
    listener: Listener = silent,
) -> FirstFit:
    """Fit `learner` on a corpus, through `kernel` where it learns from a Gram matrix; `beside`: see `training_gram`."""
    evidence = corpus if kernel is None else training_gram(kernel, corpus, learner, beside=beside, progress=listener)
    score = None
    if evaluates:
        listener(Message("cross-validating"))
        score = quick_score(learner, evidence, corpus.labels)
    fitted = fit_telling(learner.fresh(), evidence, corpus.labels, listener)
    return FirstFit(Model.of(fitted, corpus, kernel), score)


def fit_winner(winner: Winner, listener: Listener = silent) -> Model:
    """The winner of a run on all its structures: from the stored Gram matrix where there still is one."""
    gram = winner.gram()
    if gram is not None:
        fitted = fit_telling(winner.learner.fresh(), gram, gram.labels, listener)
        corpus = gram.row_corpus if winner.corpus_path is None else winner.corpus()
        return Model.of(fitted, corpus, winner.kernel)
    return first_fit(winner.corpus(), winner.learner, winner.kernel, evaluates=False, listener=listener).model


def fit_telling(learner: Any, evidence: GramOperator | Corpus, labels: Any, listener: Listener) -> Learner:
    """Train; after every round the listener hears of it, from learners that have rounds."""
    given = (evidence,) if isinstance(evidence, Corpus) else (evidence, labels)
    more = {"progress": _telling(learner, listener)} if learner.round_measure else {}
    trained: Learner = learner.fit(*given, **more)
    return trained


def _telling(learner: Learner, listener: Listener) -> Callable[[int, float], None]:
    return lambda number, value: listener(RoundDone(number, value, learner.round_limit or None, learner.round_measure))
