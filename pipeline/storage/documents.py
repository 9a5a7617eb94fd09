"""The zarr.json of groups and arrays, changed so that nobody else's change is lost.

On a local disk there are locks. In an object store nobody can be locked out, so there a change is made of what is there
at that moment, or it is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gramline.pipeline.errors import StoreChangedError
from gramline.pipeline.storage.object_store import update_document

ROOT = "zarr.json"  # the document that makes a group or an array
SEAL = "seal"  # the attribute with a digest of all others
REVISION = "revision"  # the attribute that counts changes, in object stores


def shared_bucket(node: Any) -> Any:
    """The object store that a Zarr group or array is in, where others may write at any time; None in other places."""
    return getattr(node.store_path.store, "store", None)


def write_attributes(node: Any, attributes: Mapping[str, Any]) -> None:
    """Replace all attributes of a group or an array, in one document with a seal.

    In an object store they must be made of those that are there now, which their revision tells; when they are not, it
    is a StoreChangedError and nothing is written.
    """
    plain = {key: value for key, value in attributes.items() if key != SEAL}
    if shared_bucket(node) is None:
        node.attrs.put(_sealed(plain))
        return
    revision = plain.get(REVISION, 0)
    wanted = _sealed(plain | {REVISION: revision + 1})

    def change(document: dict[str, Any]) -> dict[str, Any]:
        found = document["attributes"]
        if found != wanted and found.get(REVISION, 0) != revision:
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
