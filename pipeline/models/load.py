"""Opens what `gramline fit` wrote, once, whichever kind it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from gramline.pipeline.models.model import Model
from gramline.pipeline.models.saved import SavedLearner, load_learner
from gramline.pipeline.storage.documents import MODEL, RANKER, Kind

if TYPE_CHECKING:
    from gramline.pipeline.models.ranker import Ranker


def load_trained(path: str | os.PathLike[str]) -> Model | Ranker:
    """The model or the ranker that was saved at `path`."""
    makers: dict[Kind, Callable[[SavedLearner], Model | Ranker]] = {MODEL: Model.from_saved, RANKER: _ranker}
    return load_learner(path, makers)


def _ranker(saved: SavedLearner) -> Ranker:
    # A labeler must not wait for the parse kernels and forests of a ranker to load.
    from gramline.pipeline.models.ranker import Ranker

    return Ranker.from_saved(saved)
