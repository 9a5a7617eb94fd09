"""Small sets of arrays that processes leave for each other beside a store: written whole, read, and removed.

What travels this way does not pass the scheduler. The name of such a place ends in .partial: what a killed program
leaves of it is swept with all that killed writers leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from gramline.pipeline.errors import RunError
from gramline.pipeline.storage.places import open_store, storage_errors
from gramline.pipeline.storage.writer import remove_group

Arrays = dict[str, NDArray[Any]]


class Letters:
    """Named sets of arrays at one place; each is one object with a checksum."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._store: Store = open_store(url)

    @classmethod
    def beside(cls, url: str, what: str) -> Letters:
        """A new place for one program, beside the store at `url`."""
        return cls(f"{url}.{what}-{uuid4().hex[:12]}.partial")

    def write(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        buffer = BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        content = default_buffer_prototype().buffer.from_bytes(buffer.getvalue())
        with storage_errors(self.url):
            sync(self._store.set(name, content))

    def read(self, name: str) -> Arrays:
        with storage_errors(self.url):
            content = sync(self._store.get(name, default_buffer_prototype()))
        if content is None:
            raise RunError(f"{name} of {self.url} was lost", advice="run the command again")
        try:
            with np.load(BytesIO(content.to_bytes()), allow_pickle=False) as arrays:
                return dict(arrays)
        except (BadZipFile, ValueError, OSError, EOFError) as error:
            raise RunError(f"{name} of {self.url} is damaged", advice="run the command again") from error

    def has(self, name: str) -> bool:
        with storage_errors(self.url):
            return sync(self._store.exists(name))

    def remove(self, name: str) -> None:
        with storage_errors(self.url):
            sync(self._store.delete(name))

    def remove_all(self) -> None:
        remove_group(self.url)
