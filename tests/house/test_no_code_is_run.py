"""Nothing the program opens runs code: no pickle, no eval, no YAML objects, no archives unpacked, no shell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")
MODULES = {
    "pickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "yaml",
    "tarfile",
    "zipfile",
    "runpy",
    "code",
}
CALLS = {"eval", "exec", "compile", "__import__", "extractall", "unpack_archive", "system", "popen", "literal_eval"}
ARGUMENTS = {("load", "allow_pickle"), ("Popen", "shell"), ("run", "shell"), ("check_output", "shell")}
FINE = {("re", "compile"), ("platform", "system")}


def shipped_files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def offences(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        where = f"{path.name}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import):
            yield from (f"{where} imports {a.name}" for a in node.names if a.name.partition(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield f"{where} imports {node.module}"
        elif isinstance(node, ast.Call):
            yield from (f"{where} {what}" for what in _calls(node))


def _calls(node: ast.Call) -> Iterator[str]:
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    if name in CALLS and (owner, name) not in FINE:
        yield f"calls {owner}.{name}"
    for keyword in node.keywords:
        is_off = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        if (name, keyword.arg) in ARGUMENTS and not is_off:
            yield f"calls {name}({keyword.arg}=...)"


def test_nothing_that_is_opened_runs_code() -> None:
    files = shipped_files()
    assert len(files) > 100
    assert [offence for path in files for offence in offences(path)] == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from yaml import load",
        "eval(text)",
        "np.load(path, allow_pickle=True)",
        "os.system(command)",
        "subprocess.run(command, shell=True)",
        "archive.extractall(folder)",
    ],
)
def test_the_check_sees(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(line)
    assert len(list(offences(tmp_path / "a.py"))) == 1
