"""What the benchmarks print goes into docs/benchmarks.md, too, when `make bench` runs all of them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

import pytest
from measured_page import conditions, tell


class Both(io.StringIO):
    """Text that is printed and kept."""

    def write(self, text: str) -> int:
        sys.__stdout__.write(text)  # type: ignore[union-attr]
        return super().write(text)


@pytest.fixture(scope="session")
def printed() -> Iterator[dict[str, str]]:
    """What every benchmark printed, by its question."""
    machine, texts = conditions(), dict[str, str]()
    yield texts
    if texts:
        blocks = [f"## {question}\n\n```text\n{text}\n```" for question, text in texts.items()]
        tell("bench", "", "\n\n".join([machine, *blocks]))


@pytest.fixture(autouse=True)
def _kept(request: pytest.FixtureRequest, printed: dict[str, str]) -> Iterator[None]:
    if request.node.get_closest_marker("benchmark") is None:
        yield
        return
    both = Both()
    with redirect_stdout(both):
        yield
    lines = [line.rstrip() for line in both.getvalue().strip("\n").splitlines()]
    if lines:
        name = request.node.name.removeprefix("test_").partition("[")[0]
        question = name.replace("_", " ").capitalize()
        printed[question] = "\n".join(filter(None, [printed.get(question), *lines]))
