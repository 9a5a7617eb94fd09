"""What the contracts of import-linter (in pyproject.toml) cannot say of imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")
NEVER = {"pickle", "cloudpickle", "joblib", "marshal", "shelve", "dill"}


def shipped_files() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


@cache  # every test below asks about every file
def imported_roots(path: Path) -> frozenset[str]:
    return frozenset(_roots(path))


def _roots(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_there_is_something_to_check() -> None:
    assert len(shipped_files()) > 20


def test_nothing_that_is_opened_can_run_code() -> None:
    found = {str(path.relative_to(ROOT)): NEVER & imported_roots(path) for path in shipped_files()}
    assert {path: names for path, names in found.items() if names} == {}


def test_bare_package_names_are_never_imported() -> None:
    everywhere = [*shipped_files(), *sorted((ROOT / "tests").rglob("*.py"))]
    assert [path for path in everywhere if imported_roots(path).intersection(PACKAGES)] == []


def test_no_second_copy_of_the_packages_is_loaded() -> None:
    assert not set(PACKAGES) & set(sys.modules)
