"""Figures that a run writes into a page: between two marks, with the day, the cores and what else the machine did."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

from gramline.pipeline.files import available_cores, write_whole

ROOT = Path(__file__).parents[1]
PAGE = "FIGURES"  # the environment variable that names the page; without it a run only prints


def conditions() -> str:
    """The line below figures; asked for before their run begins."""
    today = datetime.now(tz=UTC).date()
    return f"*{today}, {available_cores()} cores, load {os.getloadavg()[0]:.1f} before it began.*"


def tell(name: str, printed: str, written: str) -> None:
    """Print figures, and where a page is named, put them between its marks; what stands around them is left alone."""
    sys.stdout.write(f"\n\n{printed}\n")
    if not os.environ.get(PAGE):
        return
    path = ROOT / os.environ[PAGE]
    begin, end = f"<!-- {name}: written by make {name} -->", f"<!-- end of {name} -->"
    before, mark, rest = path.read_text("utf-8").partition(begin)
    if not mark or end not in rest:
        raise ValueError(f"{path} has no place for these figures: {begin} ... {end}")
    after = rest.partition(end)[2]
    write_whole(path, f"{before}{begin}\n{written}\n{end}{after}")
