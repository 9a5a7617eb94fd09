"""How much memory a process has used at most, as its operating system counts it."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_bytes() -> int:
    """The largest resident size of this process so far; of the program it is now, not of the one that started it."""
    if STATUS.is_file():
        for line in STATUS.read_text("ascii", "replace").splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used
