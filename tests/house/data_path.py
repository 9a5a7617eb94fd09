"""Which modules of gramline the main commands run through: a measure of how far data travels.

    python tests/house/data_path.py          the modules of each command by their first call, and their number
    python tests/house/data_path.py --json   the numbers only

`gram build`, `fit`, `predict` and `cv` run in this process, one after the other, on a small corpus. A module counts
when one of its functions or methods is called in Python; what runs while a module is imported does not count, nor do
class bodies and compiled loops.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from gramline.pipeline.cli.main import run

PREPARED = """
corpus generate saleslog --sentences 12 --seed 1 -o train.parquet
corpus generate saleslog --sentences 4 --seed 2 -o new.parquet
"""
COMMANDS = {
    "gram build": "gram build train.parquet -o train.gram.zarr --c 0.8 --observation polynomial:degree=2 --inline",
    "fit": "fit train.gram.zarr -o model.zarr --rounds 3",
    "predict": "predict model.zarr new.parquet",
    "cv": "cv job.toml",
}
JOB = """
[corpus]
path = "train.parquet"
[kernel]
name = "sequence-labeling"
c = [0.5, 1.0]
observation = "polynomial:degree=2,normalized=true"
[learner]
name = "labeling-perceptron"
rounds = [1, 3]
[folds]
count = 2
seed = 1
inner = 2
[cluster]
inline = true
[output]
path = "cv.run"
"""


class Entered:
    """Modules of gramline in the order in which one of their functions was first called."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self._known: dict[
            Any, str | None
        ] = {}  # code objects that were seen: their module, None for all that do not count

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._module(frame)
        if (module := self._known[code]) is not None and not _is_importing(frame):
            self.modules.setdefault(module)

    @staticmethod
    def _module(frame: FrameType) -> str | None:
        name = str(frame.f_globals.get("__name__", ""))
        is_body = frame.f_code.co_flags & 2 == 0  # CO_NEWLOCALS is not set: a module or a class, not a function
        return None if is_body or not name.startswith("gramline.") else name

    @contextmanager
    def listening(self) -> Iterator[None]:
        """In this thread and in those that are started meanwhile."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def _is_importing(frame: FrameType) -> bool:
    """Whether a module of gramline is being imported further up."""
    above = frame.f_back
    while above is not None:
        if above.f_code.co_name == "<module>" and str(above.f_globals.get("__name__", "")).startswith("gramline."):
            return True
        above = above.f_back
    return False


def command(line: str) -> None:
    """Run one command line, which must do well."""
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = run(shlex.split(line))
    if code:
        raise SystemExit(f"gramline {line}: exit code {code}\n{said.getvalue()}")


def measured() -> dict[str, list[str]]:
    """The modules of every command, in the current folder."""
    for line in PREPARED.strip().splitlines():
        command(line)
    Path("job.toml").write_text(JOB)
    paths = {}
    for name, line in COMMANDS.items():
        entered = Entered()
        with entered.listening():
            command(line)
        paths[name] = list(entered.modules)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="numbers only")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)
        try:
            paths = measured()
        finally:
            os.chdir(before)
    if given.json:
        print(json.dumps({name: len(modules) for name, modules in paths.items()}))  # noqa: T201
        return
    for name, modules in paths.items():
        print(f"{name}: {len(modules)} modules")  # noqa: T201
        for module in modules:
            print(f"    {module}")  # noqa: T201


if __name__ == "__main__":
    main()
