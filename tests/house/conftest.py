"""The parts of the snapshot are imported by its script and by tests alike."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
