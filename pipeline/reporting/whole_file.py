"""A page written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4


def write_whole(target: Path, text: str) -> None:
    """Into a file of another name first: who looks at `target` sees the old page or the new one."""
    partial = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
