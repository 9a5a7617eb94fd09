"""Predictions by the workers of a cluster: the model, blocks of new structures and their labels travel as letters."""

from __future__ import annotations

from collections.abc import Iterator, Sized
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from gramline.kernels.packing import Packed, Vocabulary
from gramline.learners.arrays import Matrix
from gramline.learners.labels import decode_labels
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.layout import BlockLayout
from gramline.pipeline.corpus.packed import block_from_arrays, vocabulary_from_arrays, vocabulary_to_arrays
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.gram.block_cache import Cache
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.new_structures import NewStructures
from gramline.pipeline.storage.letters import Letters

MODEL, VOCABULARY = "model", "vocabulary"
MODELS_KEPT = 2
Question = Literal["labels", "probabilities", "scores"]  # probabilities come with the labels


@dataclass(frozen=True)
class PredictionTask:
    """One block of new structures to label."""

    letters: str
    kind: str
    block: int
    question: Question
    block_rows: int | None

    may_run_twice: ClassVar[bool] = True


class Predicted(NamedTuple):
    """Labels of every new structure, and the table over labels that was asked for."""

    labels: list[list[str]]
    table: Matrix | None  # probabilities or scores, shape (n_positions, n_labels)


def predict_on_workers(
    model: Model,
    corpus: NewStructures,
    executor: Executor,
    place: str,
    *,
    block_rows: int | None = None,
    question: Question = "labels",
) -> Predicted:
    """What `model.predict` (or `predict_with_proba`, or `decision_scores`) says, a block of new structures a task.

    `place` is a path that the workers see, too; what travels lies beside it for as long as it takes.
    """
    if model.kernel is None or (isinstance(corpus, Sized) and not len(corpus)):
        return _answered(model, corpus, question, block_rows)
    new = model.packed(corpus)
    layout = BlockLayout.of(model.kernel.row_lengths(new), block_rows)
    letters = Letters.beside(place, "prediction")
    try:
        replace(model, learner=model.learner.for_prediction()).save(f"{letters.url}/{MODEL}")
        letters.write(VOCABULARY, vocabulary_to_arrays(new.vocabulary))
        tasks = _tasks(letters, new, layout, question, block_rows)
        notes: dict[str, None] = {}
        with closing(executor.run(predict_block, tasks)) as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    raise outcome.error
                notes |= dict.fromkeys(outcome.result or ())
                # Not by the worker: one that dies before it can say that it is done has its block labeled again.
                letters.remove(_block(outcome.task.block))
        answers = [letters.read(_answer(block)) for block in range(layout.n_blocks)]
    finally:
        letters.remove_all()
    model.notes[:] = [*model.notes, *(note for note in notes if note not in model.notes)]
    table = None if question == "labels" else np.concatenate([answer["table"] for answer in answers])
    if question == "scores":
        return Predicted([], table)
    codes = np.concatenate([answer["codes"] for answer in answers])
    return Predicted(decode_labels(codes, model.label_names, layout.lengths), table)


def _answered(
    model: Model, structures: NewStructures | Packed, question: Question, block_rows: int | None
) -> Predicted:
    """By this process."""
    if question == "probabilities":
        return Predicted(*model.predict_with_proba(structures, block_rows=block_rows))
    if question == "scores":
        return Predicted([], model.decision_scores(structures, block_rows=block_rows))
    return Predicted(model.predict(structures, block_rows=block_rows), None)


def _tasks(
    letters: Letters, new: Packed, layout: BlockLayout, question: Question, block_rows: int | None
) -> Iterator[PredictionTask]:
    """Drawn as workers become free: only blocks that are worked on lie beside the model."""
    for block in range(layout.n_blocks):
        structures = layout.structures(block)
        letters.write(_block(block), new.structures(structures.start, structures.stop).arrays())
        yield PredictionTask(letters.url, new.kind, block, question, block_rows)


def predict_block(task: PredictionTask) -> list[str]:
    """On a worker: label one block, leave the labels as a letter; what the model has to say of it."""
    letters = Letters(task.letters)
    model, vocabulary = _models.get(task.letters, partial(_load, letters))
    block = block_from_arrays(task.kind, letters.read(_block(task.block)), vocabulary)
    with one_blas_thread():
        labels, table = _answered(model, block, task.question, task.block_rows)
    code_of = {name: code for code, name in enumerate(model.label_names)}
    codes = np.array([code_of[label] for structure in labels for label in structure], np.int64)
    if letters.has(_block(task.block)):  # else it is over: somebody else was sooner
        letters.write(_answer(task.block), {"codes": codes, "table": np.zeros((0, 0)) if table is None else table})
    return list(model.notes)


def _load(letters: Letters) -> tuple[Model, Vocabulary]:
    _models.make_room()
    return Model.load(f"{letters.url}/{MODEL}"), vocabulary_from_arrays(letters.read(VOCABULARY))


def _block(number: int) -> str:
    return f"new-{number}"


def _answer(number: int) -> str:
    return f"labels-{number}"


_models: Cache[tuple[Model, Vocabulary]] = Cache(MODELS_KEPT)
