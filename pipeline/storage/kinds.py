"""What a group of arrays is - a store, a model, a ranker - and the sentence that refuses anything else at its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gramline.pipeline.errors import StoreError
from gramline.pipeline.storage.places import is_local, local_path


@dataclass(frozen=True)
class Kind:
    """What a path should lead to: its name, the attribute that tells it from others, and what to do without it."""

    name: str
    key: str
    value: str
    advice: str

    def holds(self, attributes: Mapping[str, Any]) -> bool:
        """Whether a group with these attributes is of this kind."""
        return bool(attributes.get(self.key) == self.value)

    def require(self, url: str, attributes: Mapping[str, Any]) -> None:
        """Refuse a group of another kind."""
        if not self.holds(attributes):
            found = [f"a {kind.name}" for kind in KINDS if kind.holds(attributes)]
            raise self.refusal(url, found[0] if found else "a Zarr group of something else")

    def require_folder(self, url: str) -> None:
        """Refuse a local path where no folder is; nothing can be said about other places before they are opened."""
        if is_local(url) and not local_path(url).is_dir():
            raise self.refusal(url, "a file") if local_path(url).exists() else self.missing(url)

    def missing(self, url: str) -> StoreError:
        """What to say of a place without a group."""
        if not is_local(url):
            return StoreError(f"there is no {self.name} at {url}", advice=self.advice)
        if not local_path(url).is_dir():
            return StoreError(f"{url} does not exist", advice=self.advice)
        is_empty = not any(local_path(url).iterdir())
        return self.refusal(url, "an empty folder" if is_empty else "a folder of something else")

    def refusal(self, url: str, found: str) -> StoreError:
        """What to say of something else at `url`."""
        return StoreError(f"{url} is not a {self.name} but {found}", advice=self.advice)

    def as_target(self) -> Kind:
        """The same kind where something is written to: anything else there is not replaced."""
        return replace(self, advice="choose another path, or remove it")


STORE = Kind("store", "gramline", "gram", "give the path of a store that `gramline gram build` wrote")
MODEL = Kind("model", "format", "gramline model", "give the path of a model that `gramline fit` wrote")
RANKER = Kind("ranker", "format", "gramline ranker", "give the path of a ranker that `gramline fit` wrote")
KINDS = (STORE, MODEL, RANKER)
EXPORTED = {"gramline": "export"}  # attributes of an exported array: by them alone it is known, and replaced
SAVED_LEARNERS = (MODEL, RANKER)  # what a newly trained one may replace
