"""Lock files that their last owner removes: whether the one that was opened is still the one at its path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO


def is_same_file(file: IO[str], path: Path) -> bool:
    """False when somebody removed or replaced the file after it was opened here; then its lock means nothing."""
    try:
        here = path.stat()
    except FileNotFoundError:
        return False
    opened = os.fstat(file.fileno())
    return (here.st_dev, here.st_ino) == (opened.st_dev, opened.st_ino)
