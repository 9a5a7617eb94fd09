"""A fitted learner with its kernel and support on disk: what models and rankers have in common there.

One Zarr group of arrays and JSON attributes; nothing in it can run code, and all of it is checked before it is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from numpy.typing import NDArray

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.packing import Packed
from gramline.learners.catalogue import learner_from_state
from gramline.learners.estimator import Learner
from gramline.pipeline.corpus.packed import packed_from_arrays, packed_to_arrays
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.models.checks import UNREADABLE, check_state
from gramline.pipeline.storage.documents import SAVED_LEARNERS, Kind
from gramline.pipeline.storage.groups import check_format, read_group, require_kind_or_nothing
from gramline.pipeline.storage.writer import write_group

VERSION = 2  # 1 had no seal on its attributes
READABLE = (1, 2)

Arrays = dict[str, NDArray[Any]]
Made = TypeVar("Made")


@dataclass(frozen=True)
class SavedLearner:
    """What is kept; `more` holds named sets of arrays of the kind's own."""

    learner: Learner
    kernel: Kernel | None
    support: Packed
    more: Mapping[str, Arrays] = field(default_factory=dict)


def save_learner(path: str | os.PathLike[str], kind: Kind, saved: SavedLearner, *, overwrite: bool) -> None:
    """Write it, whole or not at all; `overwrite` replaces a model or a ranker, and nothing else."""
    learner, learner_arrays = saved.learner.to_state()
    support, support_arrays = packed_to_arrays(saved.support)
    attributes = {
        kind.key: kind.value,
        "version": VERSION,
        "kernel": None if saved.kernel is None else saved.kernel.to_dict(),
        "learner": learner,
        "support": support,
    }
    sets = {"learner": learner_arrays, "support": support_arrays, **saved.more}
    arrays = {f"{prefix}.{name}": array for prefix, named in sets.items() for name, array in named.items()}
    write_group(path, attributes, arrays, replaces=SAVED_LEARNERS if overwrite else ())


def require_new_model(target: str, overwrite: bool) -> None:
    """Before the training, not after it; --overwrite is for models, whatever else is there stays."""

    if require_kind_or_nothing(target, SAVED_LEARNERS) and not overwrite:
        raise InputError(f"{target} is there already; choose another path or give --overwrite")


def load_learner(path: str | os.PathLike[str], makers: Mapping[Kind, Callable[[SavedLearner], Made]]) -> Made:
    """What the maker of its kind makes of what `save_learner` wrote; a damaged group is one StoreError.

    A group of none of these kinds is refused as not being of the first of them.
    """
    url = os.fspath(path)
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
        description, state, learner_arrays = attributes["kernel"], attributes["learner"], sets.pop("learner", {})
        kernel = None if description is None else from_dict(description, Kernel)  # type: ignore[type-abstract]
        check_state(state, learner_arrays)
        support = packed_from_arrays(attributes["support"], sets.pop("support", {}))
        if kernel is not None:
            kernel.check_prepared(support)
        return makers[kind](SavedLearner(learner_from_state(state, learner_arrays), kernel, support, sets))
    except UNREADABLE as error:
        raise StoreError(f"{url} is a damaged {kind.name} ({error}); train it again") from None


def _kind_of(attributes: Mapping[str, Any], kinds: Iterable[Kind]) -> Kind | None:
    return next((kind for kind in kinds if kind.holds(attributes)), None)
