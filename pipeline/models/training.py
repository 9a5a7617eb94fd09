"""What is trained on: whether a Gram matrix suits a learner, and which structures it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gramline.learners.chains.labeler import ChainLabeler
from gramline.learners.estimator import Learner
from gramline.learners.kinds import GramLearner
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.stored import StoredGram


def open_training_gram(path: str, learner: Learner) -> StoredGram:
    """The complete Gram matrix at `path`, of the kind that `learner` trains on."""
    if Path(path).is_file():
        raise InputError(
            f"{learner.name} trains on a Gram matrix, but {path} is a file; build one with `gramline gram build`"
        )
    gram = StoredGram.open(path)
    gram.status().require_complete()
    if isinstance(learner, GramLearner) and not gram.kernel.per_position:
        raise InputError(
            f"{path} compares whole structures ({gram.kernel.name}), but {learner.name} learns from positions; build "
            "it with a labeling kernel, or rank candidates with --learner ranking-perceptron"
        )
    return gram


def count_dropped(learner: Learner, labels: Sequence[Sequence[str | None]]) -> int:
    """How many structures a learner of whole label paths leaves out because a label is missing."""
    drops = isinstance(learner, ChainLabeler) and learner.unlabeled == "drop"
    return sum(None in row for row in labels) if drops else 0
