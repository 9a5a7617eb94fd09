"""Shell completion: the scripts, and what they are answered."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.main import gramline as program
from gramline.pipeline.cli.terminal.shells import SHELLS, VARIABLE, answer_shell

PROGRAM = Path(sys.executable).parent / "gramline"
QUESTION = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$(($# - 2))
_gramline_completion gramline
printf '%s\\n' "${COMPREPLY[@]}"
"""


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], shell: str, *words: str) -> list[str]:
    monkeypatch.setenv("COMP_WORDS", " ".join(["gramline", *words]))
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words)))
    assert answer_shell(program, f"{shell}_complete") == 0
    return capsys.readouterr().out.split("\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_every_shell(gramline: Any, shell: str) -> None:
    answer = gramline("completion", shell)
    assert (answer.code, answer.err) == (0, "")
    assert f"{VARIABLE}={shell}_complete" in answer.out
    assert gramline("completion", shell, "--json").json == {"shell": shell, "script": answer.out.removesuffix("\n")}


def test_an_unknown_shell_is_refused(gramline: Any) -> None:
    answer = gramline("completion", "tcsh")
    assert answer.code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in answer.error
    assert answer_shell(program, "tcsh_complete") == answer_shell(program, "bash_guess") == 1


def test_commands_options_and_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(monkeypatch, capsys, "bash", "gra") == ["plain,gram", ""]
    assert asked(monkeypatch, capsys, "bash", "gram", "p") == ["plain,plan", ""]
    assert asked(monkeypatch, capsys, "bash", "gram", "build", "--block") == ["plain,--block-rows", ""]
    assert asked(monkeypatch, capsys, "bash", "gram", "build", "--dtype", "float3") == ["plain,float32", ""]
    assert asked(monkeypatch, capsys, "bash", "gram", "build", "train.p") == ["file,train.p", ""]
    assert asked(monkeypatch, capsys, "bash", "gram", "build", "--no-such") == ["", ""]
    assert asked(monkeypatch, capsys, "zsh", "gram", "p")[:2] == ["plain", "plan"]
    assert "plan" in "\n".join(asked(monkeypatch, capsys, "fish", "gram", "p"))


def test_no_command_is_loaded_to_complete_its_name() -> None:
    code = (
        "import sys; from gramline.pipeline.cli import main; main.answer_shell(main.gramline, 'bash_complete'); "
        "assert 'gramline.pipeline.cli.gram_build' not in sys.modules"
    )
    environment = os.environ | {"COMP_WORDS": "gramline gram p", "COMP_CWORD": "2"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "plain,plan\n", "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_shell_completes_a_subcommand(gramline: Any, tmp_path: Path) -> None:
    script = tmp_path / "complete.bash"
    script.write_text(gramline("completion", "bash").out)
    environment = os.environ | {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    for words, expected in ((["gram", "bu"], ["build"]), (["cor"], ["corpus"])):
        command = ["bash", "-c", QUESTION, "bash", str(script), "gramline", *words]
        answer = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path)
        assert (answer.stdout.split(), answer.stderr) == (expected, "")
