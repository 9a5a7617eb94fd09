"""From a labeled corpus to a model and how good it is: kernel, Gram matrix, training, a short cross-validation.

What `gramline fit` does with a file. The Gram matrix is made once for the folds and for the training on everything, in
memory, on disk, or not at all: see `training_gram`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramline.kernels.base import Kernel
from gramline.learners.estimator import Learner
from gramline.learners.labels import Labels
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.quick import QuickScore, quick_score
from gramline.pipeline.crossval.winner import Winner
from gramline.pipeline.events import Listener, Message, RoundDone, silent
from gramline.pipeline.gram.learned_prior import with_learned_prior
from gramline.pipeline.gram.spec import counts_labels, has_learned_prior
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, identity_of
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
    checkpoint: TrainingCheckpoint | None = None,
    client: Any = None,
) -> FirstFit:
    """Fit `learner` on a corpus, through `kernel` where it learns from a Gram matrix; `beside`: see `training_gram`.

    The workers of a Dask `client` build the matrix and learn from it.

    The training comes first: a checkpoint keeps it while its like are cross-validated.
    """

    def gram_of(own: Corpus) -> GramOperator:
        assert kernel is not None
        return training_gram(kernel, own, learner, beside=beside, progress=listener, client=client)

    def gram_knowing(labels: Labels) -> GramOperator:
        return gram_of(with_learned_prior(kernel, given.with_labels(labels))[0])

    if has_learned_prior(kernel):
        listener(Message("training the prior"))
    given, (corpus, prior) = corpus, with_learned_prior(kernel, corpus)
    evidence = corpus if kernel is None else gram_of(corpus)
    if checkpoint is not None and kernel is not None and not isinstance(evidence, Corpus):
        checkpoint.begin(identity_of(learner, evidence, corpus.labels, kernel, corpus), listener)
    fitted = fit_telling(learner.fresh(), evidence, corpus.labels, listener, checkpoint)
    score = None
    if evaluates:
        if checkpoint is not None:
            checkpoint.settle()
        listener(Message("cross-validating"))
        # A prior that counts labels must not have counted those that are held out.
        score = quick_score(learner, evidence, corpus.labels, renew=gram_knowing if counts_labels(kernel) else None)
    return FirstFit(Model.of(fitted, corpus, kernel, prior=prior), score)


def fit_winner(winner: Winner, listener: Listener = silent, checkpoint: TrainingCheckpoint | None = None) -> Model:
    """The winner of a run on all its structures: from the stored Gram matrix where there still is one."""
    gram = winner.gram()
    if gram is not None:
        learner = winner.learner.fresh()
        if checkpoint is not None:
            checkpoint.begin(identity_of(learner, gram, gram.labels), listener)
        fitted = fit_telling(learner, gram, gram.labels, listener, checkpoint)
        corpus = gram.row_corpus if winner.corpus_path is None else winner.corpus()
        return Model.of(fitted, corpus, winner.kernel)
    return first_fit(
        winner.corpus(), winner.learner, winner.kernel, evaluates=False, listener=listener, checkpoint=checkpoint
    ).model


def fit_telling(
    learner: Any,
    evidence: GramOperator | Corpus,
    labels: Any,
    listener: Listener,
    checkpoint: TrainingCheckpoint | None = None,
) -> Learner:
    """Train; after every round the listener hears of it, from learners that have rounds.

    A `checkpoint` has begun; learners that cannot go on from it take none.
    """
    given = (evidence,) if isinstance(evidence, Corpus) else (evidence, labels)
    more: dict[str, Any] = {"progress": _telling(learner, listener)} if learner.round_measure else {}
    if checkpoint is not None and learner.resumes:
        more["checkpoint"] = checkpoint
    trained: Learner = learner.fit(*given, **more)
    return trained


def _telling(learner: Learner, listener: Listener) -> Callable[[int, float], None]:
    return lambda number, value: listener(RoundDone(number, value, learner.round_limit or None, learner.round_measure))
