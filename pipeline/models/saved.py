"""A fitted learner with its kernel and support on disk: what models and rankers have in common there.

One Zarr group of arrays and JSON attributes; nothing in it can run code, and all of it is checked before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.packing import Packed
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.catalogue import learner_from_state
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import Learner
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.corpus.packed import Arrays, check_codes, check_offsets, packed_from_arrays, packed_to_arrays
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.cost import Cost
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.files import path_text
from gramline.pipeline.storage.groups import check_format, read_group, require_kind_or_nothing
from gramline.pipeline.storage.places import SAVED_LEARNERS, GroupKind
from gramline.pipeline.storage.writer import write_group

# What reading a damaged description raises besides our own errors.
UNREADABLE = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)
BESIDES = {"covariance"}  # arrays of a learner's state that are no fitted attributes
PRIOR = "prior_"  # before the names of the sets of arrays of what makes the prior
VERSION = 2  # 1 had no seal on its attributes
READABLE = (1, 2)
Made = TypeVar("Made")


def check_state(state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """A state sets fitted attributes (`alpha_`) and nothing else of a learner."""
    for name in [*state.get("fitted", ()), *(set(arrays) - BESIDES)]:
        if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
            raise LearnerError(f"a learner has no fitted attribute {name!r}")


def check_labels(learner: Learner, packed: Packed) -> None:
    """The label names of the learner are those of the structures it was trained on."""
    fitted = learner.fitted()
    names, among = fitted.get("label_names_"), fitted.get("label_kernel_")
    if names is not None and (not all(isinstance(name, str) for name in names) or len(set(names)) < len(names)):
        raise LearnerError("the label names of the learner are no distinct strings")
    if among is not None and (not isinstance(among, np.ndarray) or among.shape != (len(names or ()),) * 2):
        raise LearnerError("the label kernel of the learner is no square matrix over its labels")
    if names is not None and packed.vocabulary.labels and tuple(names) != packed.vocabulary.labels:
        raise LearnerError("the label names of the learner are not those of its training structures")


def check_rows(learner: Learner, n_rows: int) -> None:
    """One row of every row array per row of the support."""
    for name, array in learner.fitted().items():
        if name in learner.row_arrays and isinstance(array, np.ndarray) and (array.ndim == 0 or len(array) != n_rows):
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


def check_log_probability(learner: CandidateRanker) -> None:
    """The weight of log probabilities is a number of at least 0."""
    weight = learner.log_probability_
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < np.inf:
        raise LearnerError(f"the weight of log probabilities is {weight!r}, no number of at least 0")


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


@dataclass(frozen=True)
class SavedLearner:
    """What is kept; `more` holds named sets of arrays of the kind's own."""

    learner: Learner
    kernel: Kernel | None
    support: Packed
    more: Mapping[str, Arrays] = field(default_factory=dict)
    recipe: Recipe | None = None  # of the training corpus; models of 0.1.0 have none
    cost: Cost | None = None  # of the training; models until 0.2.0 have none
    prior: SavedLearner | None = None  # what makes the prior of new structures


def describe_learner(learner: Learner, kernel: Kernel | None, support: Packed) -> dict[str, Any]:
    """What a model or a ranker is made of, as the beginning of a small JSON-able dictionary."""
    state, chosen = learner.attributes(), learner.chosen()
    return {
        "learner": state["name"],
        "params": state["params"],
        **({"chosen": chosen} if chosen else {}),
        "kernel": None if kernel is None else kernel.to_dict(),
        "kind": support.kind,
    }


def save_learner(path: str | os.PathLike[str], kind: GroupKind, saved: SavedLearner, *, overwrite: bool) -> None:
    """Write it, whole or not at all; `overwrite` replaces a model or a ranker, and nothing else."""
    described, sets = _parts(saved, "")
    attributes = {kind.key: kind.value, "version": VERSION} | described
    if saved.prior is not None:
        attributes["prior"], prior_sets = _parts(saved.prior, PRIOR)
        sets |= prior_sets
    if saved.recipe is not None:
        attributes["recipe"] = saved.recipe.to_dict()
    if saved.cost is not None:
        attributes["cost"] = saved.cost.to_dict()
    sets |= saved.more
    arrays = {f"{prefix}.{name}": array for prefix, named in sets.items() for name, array in named.items()}
    write_group(path, attributes, arrays, replaces=SAVED_LEARNERS if overwrite else ())


def _parts(saved: SavedLearner, prefix: str) -> tuple[dict[str, Any], dict[str, Arrays]]:
    """What is written down of learner, kernel and support, and their arrays by set."""
    learner, learner_arrays = saved.learner.to_state()
    support, support_arrays = packed_to_arrays(saved.support)
    kernel = None if saved.kernel is None else saved.kernel.to_dict()
    described = {"kernel": kernel, "learner": learner, "support": support}
    return described, {f"{prefix}learner": learner_arrays, f"{prefix}support": support_arrays}


def _from_parts(attributes: Mapping[str, Any], sets: dict[str, Arrays], prefix: str) -> SavedLearner:
    """The inverse of `_parts`; the sets that are its own are taken out."""
    description, state = attributes["kernel"], attributes["learner"]
    learner_arrays = sets.pop(f"{prefix}learner", {})
    kernel = None if description is None else from_dict(description, Kernel)  # type: ignore[type-abstract]
    check_state(state, learner_arrays)
    support = packed_from_arrays(attributes["support"], sets.pop(f"{prefix}support", {}))
    if kernel is not None:
        kernel.check_prepared(support)
    return SavedLearner(learner_from_state(state, learner_arrays), kernel, support)


def require_new_model(target: str, overwrite: bool) -> None:
    """Before the training, not after it; --overwrite is for models, whatever else is there stays."""

    if require_kind_or_nothing(target, SAVED_LEARNERS) and not overwrite:
        raise InputError(f"{target} is there already; choose another path or give --overwrite")


def load_learner(path: str | os.PathLike[str], makers: Mapping[GroupKind, Callable[[SavedLearner], Made]]) -> Made:
    """What the maker of its kind makes of what `save_learner` wrote; a damaged group is one StoreError.

    A group of none of these kinds is refused as not being of the first of them.
    """
    url = path_text(path)
    expected = next(iter(makers))

    def check(attributes: dict[str, Any], is_sealed: bool | None) -> None:
        kind = _kind_of(attributes, makers) or expected
        kind.require(url, attributes)
        check_format(url, f"a {kind.name}", attributes.get("version"), READABLE, is_sealed)

    attributes, arrays = read_group(url, check, expected)
    kind = _kind_of(attributes, makers) or expected
    sets: dict[str, Arrays] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        sets.setdefault(prefix, {})[rest] = array
    try:
        saved = _from_parts(attributes, sets, "")
        prior = _from_parts(attributes["prior"], sets, PRIOR) if "prior" in attributes else None
        recipe = Recipe.from_dict(attributes["recipe"]) if "recipe" in attributes else None
        cost = Cost.from_dict(attributes["cost"]) if "cost" in attributes else None
        return makers[kind](replace(saved, more=sets, recipe=recipe, cost=cost, prior=prior))
    except UNREADABLE as error:
        raise StoreError(f"{url} is a damaged {kind.name} ({error}); train it again") from None


def _kind_of(attributes: Mapping[str, Any], kinds: Iterable[GroupKind]) -> GroupKind | None:
    return next((kind for kind in kinds if kind.holds(attributes)), None)
