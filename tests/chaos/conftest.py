"""One undisturbed build, and the table that all tests of this folder add to."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from chaos.reliability import Ledger
from chaos.undisturbed import Calm
from measured_page import PAGE


@pytest.fixture(scope="session")
def ledger() -> Iterator[Ledger]:
    """Printed at the end; FIGURES=docs/reliability.md, as `make chaos` has it, also keeps the table there."""
    found = Ledger()
    yield found
    if found.rows and os.environ.get(PAGE):
        found.tell()


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Small: seconds under any fault."""
    return Calm.of(tmp_path_factory.mktemp("calm"), n_structures=40, seed=7)


@pytest.fixture(scope="session")
def middle_calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Some hundred tiles: enough for one fault in its middle."""
    return Calm.of(tmp_path_factory.mktemp("middle"), n_structures=55, seed=9)


@pytest.fixture(scope="session")
def long_calm(tmp_path_factory: pytest.TempPathFactory) -> Calm:
    """Large enough that a fault hits its middle."""
    return Calm.of(tmp_path_factory.mktemp("long"), n_structures=130, seed=8)
