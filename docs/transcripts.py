"""Runs the commands of the pages, and pastes below them what they print.

`make pages` rewrites the pages; tests/house/test_pages.py runs the same commands and fails when one of them fails or
prints something else. All blocks of a page run in the order in which they stand, in one folder per page that has only
the files of docs/tutorial, under that name:

    ```sh            commands; every line has to end with exit code 0, or all of them with another: ```sh exit=2
    ```python        Python; all blocks of a page are one program
    ```toml job.toml a file of that name, in whatever language
    ```text          directly below commands: what they print, stdout and stderr. Written here, never by hand.
    ```text first=4 last=2      the same, cut to so many lines at its begin and end

Blocks without a language are not run. Times, sizes and paths differ from run to run: `same` does not compare them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from math import isclose
from pathlib import Path
from textwrap import wrap
from typing import Any

DOCS = Path(__file__).parent
FILES = DOCS / "tutorial"
PAGES = ("README.md", "docs/tutorial.md", "docs/how-to.md", "docs/jobs.md")
BLOCK = re.compile(r"^```(?P<language>\w+)(?P<options>[^\n`]*)\n(?P<text>.*?)^```$", flags=re.DOTALL | re.MULTILINE)
BELOW = re.compile(r"```\s*```text[^\n]*\n")  # what stands between commands and their output
WRITTEN = re.compile(r"^\*Output written by `make pages`.*?\*$", flags=re.MULTILINE)
MADE_BY_MAKE = {"make demo": "gramline demo"}  # what the recipes do once everything is installed; a test compares
NOT_RUN = {"make test"}  # which runs this
SHELL_SIGNS = set("|&;<>$`*?()")
WIDTH = 80
CUT = "..."
# What is not the same in two runs: days, durations and sizes; and how wide a column is for their sake.
TIMES = re.compile(r"(about )?\b\d[\d,.]*\s?(ms|s|min|h|seconds?|minutes?)\b( \d+ s\b)?")
DATES = re.compile(r"\b\d{4}-\d\d-\d\d( \d\d:\d\d)?")
SIZES = re.compile(r"\b\d[\d,.]*\s?([kKMGT]i?B|bytes)\b")
READ = re.compile(r"\b[\d,]+ tiles? reads?\b")  # an iteration more or less, by the rounding of a library
P_VALUES = re.compile(
    r"(± \d+\.\d+)\s+[01]\.\d{3}$", flags=re.MULTILINE
)  # of t-tests, which one label more or less moves far
SPACES = re.compile(r"[ \t\n─]+")
FRACTIONS = re.compile(r"(\d+\.\d+)")
CLOSE = 0.02  # two libraries for linear algebra may disagree on a label; then a score moves a little


class PageError(Exception):
    """A command of a page did not do what the page says."""


@dataclass(frozen=True)
class Block:
    """A fenced block: what it is written in, its options, its text and where that stands on the page."""

    language: str
    options: tuple[str, ...]
    text: str
    start: int
    end: int

    def option(self, name: str) -> int | None:
        return next((int(value) for key, _, value in (one.partition("=") for one in self.options) if key == name), None)

    @property
    def file_name(self) -> str | None:
        return next((one for one in self.options if "=" not in one), None)


def blocks_of(page: str) -> list[Block]:
    return [
        Block(found["language"], tuple(found["options"].split()), found["text"], found.start("text"), found.end("text"))
        for found in BLOCK.finditer(page)
    ]


def played(page: Path) -> str:
    """The text of the page with the output of its commands as they print it now."""
    text = page.read_text("utf-8")
    parts, done, written = [], 0, written_line()
    with scratch_folder() as folder, in_folder(folder):
        program: dict[str, Any] = {"__name__": "__main__"}
        printed, ended = "", -1
        for block in blocks_of(text):
            if block.file_name is not None:
                Path(block.file_name).write_text(block.text, "utf-8")
            elif block.language == "text":
                if not BELOW.fullmatch(text[max(ended, 0) : block.start]):
                    raise PageError(f"{page.name}: output that no command above it has printed:\n{block.text}")
                parts += [text[done : block.start], cut(printed, block)]
                done = block.end
            elif block.language in ("sh", "python"):
                try:
                    printed = run_shell(block) if block.language == "sh" else run_python(block, program)
                except PageError as error:
                    raise PageError(f"{page.name}, line {text.count(chr(10), 0, block.start) + 1}: {error}") from None
                ended = block.end
    return WRITTEN.sub(written, "".join([*parts, text[done:]]))


def written_line() -> str:
    """When and where the output of a page was printed: times mean little on a machine that has other work."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return f"*Output written by `make pages` on {date.today()}, {cores} cores, load {load:.1f} before it began.*"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="page-") as folder:
        yield Path(folder)


@contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in `folder`, as a reader does in the root of the repository."""
    shutil.copytree(FILES, folder / FILES.relative_to(DOCS.parent))
    before = Path.cwd()
    os.chdir(folder)
    os.environ["COLUMNS"] = str(WIDTH)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    try:
        yield
    finally:
        os.chdir(before)


# --- running ----------------------------------------------------------------------------------------------------------


def run_shell(block: Block) -> str:
    """Every command line; `gramline` in this process, which has loaded everything, the rest by bash."""
    from gramline.pipeline.cli.main import run
    from gramline.pipeline.cli.terminal.failures import say_warnings_as_notes

    printed = []
    for line in block.text.replace("\\\n", " ").splitlines():
        bare = line.partition("#")[0].strip()
        command = MADE_BY_MAKE.get(bare, line)
        if not bare or bare in NOT_RUN:
            continue
        with captured() as output:
            if command.startswith("gramline ") and not SHELL_SIGNS & set(command):
                with warnings.catch_warnings():
                    say_warnings_as_notes()
                    code = run(shlex.split(command, comments=True)[1:])
            else:
                code = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", command], check=False).returncode
        printed.append(output[0])
        if code != (block.option("exit") or 0):
            raise PageError(f"{line}\nends with exit code {code}:\n{output[0]}")
    return "".join(printed)


def run_python(block: Block, program: dict[str, Any]) -> str:
    failed = ""
    with captured() as output:
        try:
            exec(compile(block.text, "page", "exec"), program)
        except Exception:  # noqa: BLE001 - whatever it is, the page is wrong
            failed = traceback.format_exc()
    if failed:
        raise PageError(f"{block.text}\nfails:\n{output[0]}{failed}")
    return output[0]


@contextmanager
def captured() -> Iterator[list[str]]:
    """What is written to stdout and stderr meanwhile, by other processes too."""
    output: list[str] = []
    with tempfile.TemporaryFile() as file:
        sys.stdout.flush()
        sys.stderr.flush()
        before = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield output
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, kept in zip((1, 2), before, strict=True):
                os.dup2(kept, number)
                os.close(kept)
            file.seek(0)
            output.append(file.read().decode("utf-8"))


def cut(printed: str, block: Block) -> str:
    """As it is pasted: without the folder of the run, without space at line ends, and only so many lines."""
    folder = str(Path.cwd())
    text = printed.replace(f"{folder}/", "").replace(folder, ".")
    lines = [
        part for line in text.splitlines() for part in (wrap(line, WIDTH) if len(line.rstrip()) > WIDTH else [line])
    ]
    lines = re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip("\n").splitlines()
    first, last = block.option("first"), block.option("last")
    if (first is not None or last is not None) and len(lines) > (first or 0) + (last or 0):
        lines = [*lines[: first or 0], CUT, *lines[len(lines) - (last or 0) :]]
    return "".join(f"{line}\n" for line in lines)


# --- comparing --------------------------------------------------------------------------------------------------------


def same(before: str, after: str) -> bool:
    """Whether two outputs differ in nothing but times, sizes, widths of columns and the last digits of fractions."""
    one, other = (FRACTIONS.split(masked(text)) for text in (before, after))
    return len(one) == len(other) and all(
        isclose(float(mine), float(yours), rel_tol=CLOSE, abs_tol=CLOSE) if number % 2 else mine == yours
        for number, (mine, yours) in enumerate(zip(one, other, strict=True))
    )


def masked(text: str) -> str:
    text = READ.sub("TILES read", P_VALUES.sub(r"\1 P", text))
    return SPACES.sub(" ", SIZES.sub("SIZE", TIMES.sub("TIME", DATES.sub("DATE", text)))).strip()


def differences(page: Path) -> list[str]:
    """What the commands of a page print now, where it is not what the page says."""
    now, before = blocks_of(played(page)), blocks_of(page.read_text("utf-8"))
    return [
        f"{page.name} says\n{old.text}\nand now it is\n{new.text}"
        for old, new in zip(before, now, strict=True)
        if not same(old.text, new.text)
    ]


def main(arguments: list[str]) -> int:
    """Rewrite the pages that are named, all of them if none is; with --check only say what would differ."""
    check = "--check" in arguments
    names = [name for name in arguments if name != "--check"] or list(PAGES)
    for page in (DOCS.parent / name for name in names):
        try:
            if check:
                found = differences(page)
            else:
                found = []
                page.write_text(played(page), "utf-8")
        except PageError as error:
            found = [str(error)]
        if found:
            sys.stderr.write("\n".join(found) + "\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
