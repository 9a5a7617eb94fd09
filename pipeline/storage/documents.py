"""The zarr.json of groups and arrays: which kind of group it makes, and how it is changed.

On a local disk there are locks. In an object store nobody can be locked out, so there a change is made of what is there
at that moment, or it is refused: nobody else's change is lost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zarr.storage import ObjectStore

from gramline.pipeline.errors import StoreChangedError, StoreError
from gramline.pipeline.storage.object_store import update_document
from gramline.pipeline.storage.places import is_local, local_path

ROOT = "zarr.json"  # the document that makes a group or an array
SEAL = "seal"  # the attribute with a digest of all others
REVISION = "revision"  # the attribute that counts changes, in object stores


def shared_bucket(node: Any) -> Any:
    """The object store that a Zarr group or array is in, where others may write at any time; None in other places."""
    store = node.store_path.store
    return store.store if isinstance(store, ObjectStore) else None


def write_attributes(node: Any, attributes: Mapping[str, Any]) -> None:
    """Replace all attributes of a group or an array, in one document with a seal.

    In an object store they must be made of those that are there now, by their revision; otherwise nothing is written
    and it is a StoreChangedError.
    """
    plain = {key: value for key, value in attributes.items() if key != SEAL}
    if shared_bucket(node) is None:
        node.attrs.put(_sealed(plain))
        return
    revision = plain.get(REVISION, 0)
    wanted = _sealed(plain | {REVISION: revision + 1})

    def change(document: dict[str, Any]) -> dict[str, Any]:
        current = document["attributes"]
        if current != wanted and current.get(REVISION, 0) != revision:
            raise StoreChangedError("somebody else changed the attributes; open the group again")
        return document | {"attributes": wanted}

    update_document(shared_bucket(node), _document(node), change)


def grow_array(array: Any, shape: tuple[int, ...]) -> None:
    """Make room for more chunks. In an object store it never shrinks: others may have made room for theirs."""
    if shared_bucket(array) is None:
        array.resize(shape)
        return

    def change(document: dict[str, Any]) -> dict[str, Any]:
        return document | {"shape": [max(sizes) for sizes in zip(document["shape"], shape, strict=True)]}

    update_document(shared_bucket(array), _document(array), change)


def seal_of(attributes: Mapping[str, Any]) -> str:
    """A digest of all attributes but the seal itself."""
    return hashlib.blake2b(json.dumps(attributes, sort_keys=True).encode(), digest_size=16).hexdigest()


def _sealed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {**attributes, SEAL: seal_of(attributes)}


def _document(node: Any) -> str:
    return f"{node.path}/{ROOT}".removeprefix("/")


@dataclass(frozen=True)
class GroupKind:
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
            kinds = [f"a {kind.name}" for kind in KINDS if kind.holds(attributes)]
            raise self.refusal(url, kinds[0] if kinds else "a Zarr group of something else")

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

    def refusal(self, url: str, what: str) -> StoreError:
        """What to say of something else at `url`."""
        return StoreError(f"{url} is not a {self.name} but {what}", advice=self.advice)

    def as_target(self) -> GroupKind:
        """The same kind where something is written to: anything else there is not replaced."""
        return replace(self, advice="choose another path, or remove it")


STORE = GroupKind("store", "gramline", "gram", "give the path of a store that `gramline gram build` wrote")
MODEL = GroupKind("model", "format", "gramline model", "give the path of a model that `gramline fit` wrote")
RANKER = GroupKind("ranker", "format", "gramline ranker", "give the path of a ranker that `gramline fit` wrote")
KINDS = (STORE, MODEL, RANKER)
EXPORTED = {"gramline": "export"}  # attributes of an exported array: by them alone it is known, and replaced
SAVED_LEARNERS = (MODEL, RANKER)  # what a newly trained one may replace
