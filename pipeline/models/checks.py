"""Whether what a saved model claims hangs together, checked before its arrays meet a kernel. Knows no files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import Learner
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.corpus.packed import check_codes, check_offsets

# What reading a damaged description raises besides our own errors.
UNREADABLE = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)
BESIDES = {"covariance"}  # arrays of a learner's state that are no fitted attributes


def check_state(state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """A state sets fitted attributes (`alpha_`) and nothing else of a learner."""
    for name in [*state.get("fitted", ()), *(set(arrays) - BESIDES)]:
        if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
            raise LearnerError(f"a learner has no fitted attribute {name!r}")


def check_labels(learner: Learner, packed: Packed) -> None:
    """The label names of the learner are those of the structures it was trained on."""
    names = getattr(learner, "label_names_", None)
    if names is not None and (not all(isinstance(name, str) for name in names) or len(set(names)) < len(names)):
        raise LearnerError("the label names of the learner are no distinct strings")
    among = getattr(learner, "label_kernel_", None)
    if among is not None and (not isinstance(among, np.ndarray) or among.shape != (len(names or ()),) * 2):
        raise LearnerError("the label kernel of the learner is no square matrix over its labels")
    if names is not None and packed.vocabulary.labels and tuple(names) != packed.vocabulary.labels:
        raise LearnerError("the label names of the learner are not those of its training structures")


def check_rows(learner: Learner, n_rows: int) -> None:
    """One row of every row array per row of the support."""
    for name in learner.row_arrays:
        array = getattr(learner, name, None)
        if isinstance(array, np.ndarray) and (array.ndim == 0 or len(array) != n_rows):
            raise LearnerError(f"{name!r} has the shape {array.shape} for a support of {n_rows} rows")


def check_hypotheses(learner: RankingPerceptron) -> None:
    """A count per hypothesis, the two rows of each update, or of none where a forest stands for the rows."""
    counts, updates, weights = learner.counts_, learner.updates_, learner.weights_
    check_codes("counts", counts, len(counts), 0, np.iinfo(np.int64).max)
    if updates.shape not in {(len(counts), 2), (0, 2)}:
        raise LearnerError(f"{len(counts)} hypotheses have updates of shape {updates.shape}")
    check_codes("updates", updates.ravel(), updates.size, 0, len(weights))
    if weights.ndim != 1 or learner.average_weights_.shape != weights.shape:
        raise LearnerError(f"weights of shape {weights.shape} have means of shape {learner.average_weights_.shape}")


def check_forest_arrays(arrays: Mapping[str, NDArray[Any]], n_productions: int) -> None:
    """A graph of subtrees with children before their parents, and weights (or differences) for each subtree."""
    n_subtrees = len(arrays["productions"])
    check_codes("productions", arrays["productions"], n_subtrees, 0, n_productions)
    children = arrays["children"]
    check_offsets("child_indptr", arrays["child_indptr"], len(children), n_subtrees + 1)
    check_codes("children", children, len(children), 0, n_subtrees)
    owners = np.repeat(np.arange(n_subtrees), np.diff(arrays["child_indptr"]))
    if (children >= owners).any():
        raise LearnerError(f"subtree {int(owners[np.argmax(children >= owners)])} comes before its children")
    if "steps" not in arrays:
        if arrays["weights"].shape != (n_subtrees,):
            raise LearnerError(f"{n_subtrees} subtrees have weights of shape {arrays['weights'].shape}")
        return
    differences, steps = arrays["differences"], arrays["steps"]
    check_offsets("indptr", arrays["indptr"], len(differences), n_subtrees + 1)
    check_codes("steps", steps, len(steps), 0, max(1, len(steps)))
    check_codes("differences", differences, len(arrays["weights"]), 0, int(steps.max(initial=-1)) + 1)
