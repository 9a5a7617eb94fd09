"""The README is short, and what it names is there. test_pages.py runs its commands and follows its links."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
LONGEST = 160  # lines


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= LONGEST


@pytest.mark.parametrize("language", ["python", "sh"])
def test_six_lines_each(language: str) -> None:
    blocks = [text for text in re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL) if "make" not in text]
    assert 1 <= len([line for block in blocks for line in block.splitlines() if line]) <= 6


def test_the_names_it_lists_are_public() -> None:
    from gramline import kernels, learners

    names = set(re.findall(r"`([A-Z][A-Za-z]+)`", README.partition("## What is in it")[2].partition("##")[0]))
    assert len(names) > 15
    assert {name for name in names if not hasattr(kernels, name) and not hasattr(learners, name)} == set()


def test_nothing_that_is_imported_needs_linux(tmp_path: Path) -> None:
    """Every module is imported where modules that only Unix has, and functions that only Linux has, are gone."""
    names = [
        ".".join(("gramline", *path.relative_to(ROOT).with_suffix("").parts))
        for package in ("kernels", "learners", "pipeline")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name != "__main__.py"
    ]
    script = f"""
import os, sys
import dask.distributed, zarr, pyarrow, numba, rich, scipy.sparse, google_crc32c  # these know where they are
sys.modules |= dict.fromkeys(["fcntl", "resource", "termios", "pwd", "grp"])
for name in ("sched_getaffinity", "posix_fadvise", "getuid", "geteuid", "fchmod", "fork", "getloadavg"):
    if hasattr(os, name):
        delattr(os, name)
from importlib import import_module
for name in {names!r}:
    import_module(name)
"""
    job = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert (job.returncode, job.stderr) == (0, "")
