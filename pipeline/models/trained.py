"""Opens whatever was trained and saved: a model or a ranker."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from gramline.pipeline.models.model import Model
from gramline.pipeline.models.saved import SavedLearner, load_learner
from gramline.pipeline.storage.places import MODEL, RANKER, GroupKind

if TYPE_CHECKING:
    from gramline.pipeline.models.ranker import Ranker


def load_trained(path: str | os.PathLike[str]) -> Model | Ranker:
    """The model or the ranker that was saved at `path`."""
    makers: dict[GroupKind, Callable[[SavedLearner], Model | Ranker]] = {MODEL: Model.from_saved, RANKER: _ranker}
    return load_learner(path, makers)


def _ranker(saved: SavedLearner) -> Ranker:
    # A labeler must not wait for the parse kernels and forests of a ranker to load.
    from gramline.pipeline.models.ranker import Ranker

    return Ranker.from_saved(saved)
