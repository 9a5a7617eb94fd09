"""Small sets of arrays that processes leave for each other beside a store: written whole, read, and removed.

What travels this way does not pass the scheduler. The name of such a place ends in .partial: what a killed program
leaves of it is swept with all that killed writers leave.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from numpy.typing import NDArray

from gramline.pipeline.errors import RunError
from gramline.pipeline.storage.array_file import array_file_exists, read_array_file, write_array_file
from gramline.pipeline.storage.object_store import delete, open_bucket
from gramline.pipeline.storage.places import is_local, local_path, storage_errors
from gramline.pipeline.storage.writer import remove_group

Arrays = dict[str, NDArray[Any]]


class Letters:
    """Named sets of arrays at one place; each is one file with checksums."""

    def __init__(self, url: str) -> None:
        self.url = url

    @classmethod
    def beside(cls, url: str, what: str) -> Letters:
        """A new place for one program, beside the store at `url`."""
        return cls(f"{url}.{what}-{uuid4().hex[:12]}.partial")

    def write(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Not synced: who loses the machine loses both who wrote and who waits."""
        write_array_file(f"{self.url}/{name}", {}, arrays, is_synced=False)

    def read(self, name: str) -> Arrays:
        content = read_array_file(f"{self.url}/{name}", lambda _about: None)
        if content is None:
            raise RunError(f"{name} of {self.url} was lost", advice="run the command again")
        return content[1]

    def has(self, name: str) -> bool:
        return array_file_exists(f"{self.url}/{name}")

    def remove(self, name: str) -> None:
        with storage_errors(self.url):
            if is_local(self.url):
                local_path(f"{self.url}/{name}").unlink(missing_ok=True)
            else:
                delete(open_bucket(self.url), [name])

    def remove_all(self) -> None:
        remove_group(self.url)
