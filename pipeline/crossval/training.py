"""Training on folds: labels of hidden structures left out, held-out structures predicted from the same Gram.

A `SharedPassLearner` shares every tile between all folds and settings. Other learners train one fold after another
here, or as tasks of an executor: a task names its Gram store (or corpus) and carries only structure numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING
from gramline.kernels.ranges import indices_of_ranges
from gramline.learners.chains.labeler import ChainLabeler
from gramline.learners.checkpoints import NOWHERE, Checkpoint
from gramline.learners.chosen_constants import ChoosesConstant
from gramline.learners.kinds import HasProbabilities, RoundProgress, SharedPassLearner
from gramline.learners.labels import encode_labels
from gramline.learners.operators.comparison import computing
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.operator import GramOperator
from gramline.learners.token_features import labeled_structures
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds, Held, Labels


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What one setting predicted for the held-out structures of one fold, in their order."""

    predicted: list[list[str]]
    confidence: list[list[float]] | None = None  # probability of the predicted label, from learners that know it
    traces: Mapping[str, list[float]] = field(default_factory=dict)  # per round, sweep or iteration
    notes: Sequence[str] = ()  # what the learner has to say of it
    chosen: Mapping[str, float] = field(default_factory=dict)  # constants that were open


def fit_on_gram(
    learners: Sequence[Any],
    gram: GramOperator,
    labels: Labels,
    folds: Folds,
    fold_of: Sequence[int],
    progress: RoundProgress | None = None,
    checkpoint: Checkpoint = NOWHERE,
) -> list[HeldOut]:
    """Every learner on the training part of its fold (`fold_of`), and its predictions of the held-out part.

    A `checkpoint` keeps the state of learners that share a pass, or of one alone; others train one after another.
    """
    masked = {fold: hide(labels, folds.hidden(fold)) for fold in set(fold_of)}
    ready = [drop_unlabeled(learner, gram, labels) for learner in learners]
    # One problem alone need not predict all rows, whose values would all be computed.
    if not isinstance(ready[0], SharedPassLearner) or (len(ready) == 1 and computing(gram) is not None):
        kept = checkpoint if len(ready) == 1 else NOWHERE
        return [
            fit_one(one, gram, masked[fold], folds.held_out[fold], kept)
            for one, fold in zip(ready, fold_of, strict=True)
        ]
    more = {"checkpoint": checkpoint} if checkpoint is not NOWHERE and all(one.resumes for one in ready) else {}
    everything = type(ready[0]).fit_many(ready, gram, [masked[fold] for fold in fold_of], progress=progress, **more)
    held = [folds.held_out[fold] for fold in fold_of]
    return [_of_all_rows(learner, gram, rows, own) for learner, rows, own in zip(ready, everything, held, strict=True)]


def fit_one(learner: Any, gram: GramOperator, masked: Labels, held: Held, checkpoint: Checkpoint = NOWHERE) -> HeldOut:
    """One learner on one fold; only the columns of the held-out structures are predicted."""
    more = {"checkpoint": checkpoint} if checkpoint is not NOWHERE and learner.resumes else {}
    learner.fit(gram, masked, **more)
    return _held_out(learner, columns_of(gram, held))


def fit_on_corpus(learner: Any, corpus: Corpus, labels: Labels, training: Held, held: Held) -> HeldOut:
    """A learner on explicit features: trained on the structures of the fold alone."""
    learner.fit(corpus.select(training).with_labels([labels[k] for k in training]))
    return _held_out(learner, corpus.select(held).without_labels())


def hide(labels: Labels, hidden: Held) -> list[list[str | None]]:
    """Labels with those of the hidden structures missing."""
    unseen = set(hidden.tolist())
    return [[None] * len(own) if k in unseen else list(own) for k, own in enumerate(labels)]


def drop_unlabeled(learner: Any, gram: GramOperator, labels: Labels) -> Any:
    """A learner that wants whole label paths: the labels are checked here, then hidden structures may be dropped."""
    if not isinstance(learner, ChainLabeler) or learner.unlabeled != "error":
        return learner
    codes, _ = encode_labels(gram, labels)
    labeled_structures(codes.astype(np.int32), gram.layout.rows.structure_starts, "error")
    return learner.fresh().set_params(unlabeled="drop")


def columns_of(gram: GramOperator, structures: Held) -> GramOperator:
    """The Gram between all rows and the positions of some structures: in memory, or computed if tiles are not kept."""
    if (how := computing(gram)) is not None:
        block_rows = gram.layout.rows.block_rows
        return ComputedGram(how.kernel, how.packed, how.packed.take(structures), block_rows=block_rows, dtype=how.dtype)
    layout: BlockLayout = gram.layout.rows
    rows = indices_of_ranges(layout.structure_starts[structures], layout.lengths[structures])
    every = np.arange(gram.shape[0])
    matrix = gram.select(every, rows)
    return DenseGram(
        matrix,
        layout.lengths,
        layout.lengths[structures],
        label_names=gram.label_names,
        row_prior=gram.row_prior,
        col_prior=None if gram.row_prior is None else gram.row_prior[rows],
        label_kernel=gram.label_kernel,
        col_diagonal=gram.diagonal()[rows],
    )


def square_of(gram: GramOperator, structures: Held) -> DenseGram:
    """The symmetric Gram between the positions of some structures, in memory."""
    layout: BlockLayout = gram.layout.rows
    rows = indices_of_ranges(layout.structure_starts[structures], layout.lengths[structures])
    prior = None if gram.row_prior is None else gram.row_prior[rows]
    names, label_kernel = gram.label_names, gram.label_kernel
    matrix = gram.select(rows, rows)
    return DenseGram(matrix, layout.lengths[structures], label_names=names, row_prior=prior, label_kernel=label_kernel)


def _held_out(learner: Any, evidence: Any) -> HeldOut:
    """All that a trained learner says of new structures."""
    predicted = learner.predict(evidence)
    return HeldOut(
        predicted, _confidence(learner, evidence, predicted), learner.traces(), learner.notes(), _chosen(learner)
    )


def _of_all_rows(learner: Any, gram: GramOperator, rows: Sequence[list[str]], held: Held) -> HeldOut:
    """The held-out part of what a learner predicted for all structures."""
    predicted = [rows[k] for k in held]
    confidence = None
    if isinstance(learner, HasProbabilities):
        confidence = _confidence(learner, columns_of(gram, held), predicted)
    return HeldOut(predicted, confidence, learner.traces(), learner.notes(), _chosen(learner))


def _chosen(learner: Any) -> dict[str, float]:
    return learner.chosen() if isinstance(learner, ChoosesConstant) else {}


def _confidence(learner: Any, evidence: Any, predicted: list[list[str]]) -> list[list[float]] | None:
    if not isinstance(learner, HasProbabilities):
        return None
    names = {name: code for code, name in enumerate(learner.label_names_)}
    codes = np.array([names.get(label, MISSING) for structure in predicted for label in structure], np.int64)
    chosen: NDArray[np.float64] = np.take_along_axis(learner.predict_proba(evidence), codes[:, None], axis=1)[:, 0]
    ends = np.cumsum([len(structure) for structure in predicted])
    return [part.tolist() for part in np.split(chosen, ends[:-1])]
