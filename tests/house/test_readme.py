"""The README does what it says: its examples run, in order, in an empty folder; the files it names are there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gramline.pipeline.cli.main import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture
def run_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Runs lines that begin with `gramline` one after the other in the folder of the test; each must do well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def run_all(lines: list[str]) -> None:
        for line in lines:
            program, *arguments = shlex.split(line)
            assert program == "gramline"
            assert run(arguments) == 0, line

    return run_all


def test_the_python_example_runs(tmp_path: Path) -> None:
    examples = blocks("python")
    assert examples
    command = [sys.executable, "-W", "error", "-c", "\n".join(examples)]
    job = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (job.returncode, job.stderr) == (0, "")


def test_the_command_line_example_runs(run_commands: Callable[[list[str]], None]) -> None:
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("gramline ")]
    assert len(commands) >= 5
    run_commands(commands)


def test_the_job_file_of_the_guide_runs(
    tmp_path: Path, run_commands: Callable[[list[str]], None], capfd: pytest.CaptureFixture[str]
) -> None:
    guide = (ROOT / "docs" / "jobs.md").read_text("utf-8")
    (job_file,) = blocks("toml", guide)
    (tmp_path / "job.toml").write_text(job_file, "utf-8")
    (commands,) = blocks("sh", guide)
    assert "gramline cv job.toml --plan" in commands
    run_commands(commands.splitlines())
    assert "nested selection: f1 " in capfd.readouterr().out
    written = {path.name for path in (tmp_path / "sales.run").iterdir()}
    assert set(re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", guide, flags=re.MULTILINE)) <= written


def test_the_names_it_lists_are_public() -> None:
    from gramline import kernels, learners

    names = set(re.findall(r"`([A-Z][A-Za-z]+)`", README.partition("## What is in it")[2].partition("##")[0]))
    assert len(names) > 15
    assert {name for name in names if not hasattr(kernels, name) and not hasattr(learners, name)} == set()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([a-z-]+)`", README))))
def test_the_make_targets_are_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((?!http|#)([^)]+)\)", README))))
def test_the_files_it_names_are_there(link: str) -> None:
    assert (ROOT / link.partition("#")[0]).exists()
