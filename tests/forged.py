"""Stores as a stranger could write them: changed and sealed again, so that only checks of the content help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gramline.pipeline.storage.groups import open_group, read_attributes
from gramline.pipeline.storage.writer import write_attributes


def resealed(path: Path, change: dict[str, Any]) -> None:
    """Change attributes of the group at `path`, with a seal that fits them."""
    attributes, _ = read_attributes(str(path))
    write_attributes(open_group(str(path)), attributes | change)


def unsealed(path: Path, change: dict[str, Any]) -> None:
    """Change attributes and take the seal away, as format 1 had it."""
    document = json.loads((path / "zarr.json").read_text("utf-8"))
    document["attributes"] = {key: value for key, value in document["attributes"].items() if key != "seal"} | change
    (path / "zarr.json").write_text(json.dumps(document), "utf-8")
