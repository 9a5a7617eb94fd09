"""Every public name has an example in its docstring, and every example of the shipped modules gives what it prints."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

from gramline.kernels.catalogue import EVERYTHING, find
from gramline.kernels.parameters import Record
from gramline.learners.catalogue import LEARNERS, find_learner

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")


def public_names() -> list[str]:
    """Classes and functions that a package gives away under its own name."""
    names = []
    for package in PACKAGES:
        module = import_module(f"gramline.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            if not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
                names.append(f"{module.__name__}.{name}")
    return names


def modules_with_examples() -> list[str]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [
        ".".join(("gramline", *path.relative_to(ROOT).with_suffix("").parts))
        for path in paths
        if ">>> " in path.read_text("utf-8")
    ]


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_has_an_example(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    has_example = ">>> " in (inspect.getdoc(getattr(import_module(module), attribute)) or "")
    assert has_example, f"the docstring of {name} has no example"


@pytest.mark.parametrize("name", [*EVERYTHING, *LEARNERS])
def test_parameters_are_described_in_their_annotations_alone(name: str) -> None:
    kind = find(name, Record) if name in EVERYTHING else find_learner(name)
    assert "Parameters" not in inspect.cleandoc(str(kind.__doc__)).splitlines()


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_give_what_they_print(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # an example may write files
    examples = [test for test in doctest.DocTestFinder().find(import_module(name)) if test.examples]
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    for example in examples:
        runner.run(example, out=report.append)
    assert examples, f"no example of {name} is found"
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
