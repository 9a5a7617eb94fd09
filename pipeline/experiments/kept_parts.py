"""What parts of a long experiment gave, in small files: an interrupted run goes on with the parts that are missing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gramline.pipeline.files import write_whole


@dataclass(frozen=True)
class KeptParts:
    """A folder with one JSON file per part (a fold, a size); without a folder nothing is kept."""

    folder: Path | None

    def path(self, parts: Sequence[Any]) -> Path | None:
        """The file of a part; `parts` are everything that decides what it gives, as text."""
        if self.folder is None:
            return None
        words = "\n".join([version("gramline"), *map(str, parts)])
        return self.folder / f"{hashlib.sha256(words.encode()).hexdigest()[:24]}.json"

    def every(self) -> Iterator[tuple[Path, Any]]:
        """All files that are there, also of other versions, and what they hold."""
        if self.folder is not None and self.folder.is_dir():
            for path in sorted(self.folder.glob("*.json")):
                yield path, load(path)

    def clear(self) -> None:
        """Everything is in the results: remove the files."""
        if self.folder is not None and self.folder.is_dir():
            for path in self.folder.glob("*.json"):
                path.unlink()
            if not any(self.folder.iterdir()):
                self.folder.rmdir()


def load(path: Path | None) -> Any:
    """What a part gave, None where that is not known."""
    return json.loads(path.read_text("utf-8")) if path is not None and path.is_file() else None


def save(path: Path | None, content: Any) -> None:
    """Keep it; the file is there as a whole or not at all."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content))
