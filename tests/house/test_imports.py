"""Who may import whom: what the layers contract of import-linter cannot say."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")
DASK = {f"pipeline/executors/{name}.py" for name in ("dask_cluster", "dask_places", "dask_arrays")}
ONLY_IN = {
    "numba": {"kernels/_jit.py"},
    "zarr": {"pipeline/array_group.py", "pipeline/group_places.py", "pipeline/group_writer.py"},
    "obstore": {"pipeline/object_store.py"},
    "dask": DASK,
    "distributed": DASK,
    "dask_jobqueue": {"pipeline/executors/dask_places.py"},
    "cryptography": {"pipeline/cluster/certificates.py"},
}
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


@pytest.mark.parametrize("library", ONLY_IN)
def test_one_file_per_outside_library(library: str) -> None:
    users = {str(path.relative_to(ROOT)) for path in shipped_files() if library in imported_roots(path)}
    assert users <= ONLY_IN[library]


def test_nothing_that_is_opened_can_run_code() -> None:
    found = {str(path.relative_to(ROOT)): NEVER & imported_roots(path) for path in shipped_files()}
    assert {path: names for path, names in found.items() if names} == {}


def test_bare_package_names_are_never_imported() -> None:
    everywhere = [*shipped_files(), *sorted((ROOT / "tests").rglob("*.py"))]
    assert [path for path in everywhere if imported_roots(path).intersection(PACKAGES)] == []


def test_no_second_copy_of_the_packages_is_loaded() -> None:
    assert not set(PACKAGES) & set(sys.modules)
