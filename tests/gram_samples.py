"""Small corpora, kernels and stores that the tests of the store and the build share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from gramline.kernels import EmpiricalPrior, Identity, SequenceLabeling, UniformPrior
from gramline.pipeline import Corpus
from gramline.pipeline.executors.base import Outcome, Result, Task

KERNEL = SequenceLabeling(c=0.8, gap=0.25, observation=Identity(), prior=UniformPrior())
WITH_PRIOR = SequenceLabeling(c=0.8, observation=Identity(), prior=EmpiricalPrior(smoothing=0.5))


def sentences(count: int, seed: int = 0, longest: int = 7) -> tuple[list[list[str]], list[list[str]]]:
    """Random token and label lists; few symbols, so that many positions match."""
    draw = random.Random(seed)
    X = [[draw.choice("abcd") for _ in range(draw.randint(1, longest))] for _ in range(count)]
    return X, [[draw.choice(["O", "B"]) for _ in tokens] for tokens in X]


def corpus(count: int = 12, seed: int = 0) -> Corpus:
    return Corpus.from_sequences(*sentences(count, seed), labels=["B", "O"])


def chunks(store: Path) -> dict[str, bytes]:
    """Every tile of a local store by name, as its bytes."""
    folder = store / "tiles" / "c"
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class ScriptedExecutor:
    """Runs tasks here, one after another, as a script says: `before` sees every call and may raise in its place."""

    n_threads = 1

    def __init__(self, before: Callable[[int, Any], None] = lambda _number, _task: None) -> None:
        self.calls: list[Any] = []
        self._before = before

    def run(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, retries: int = 2
    ) -> Iterator[Outcome[Task, Result]]:
        for task in tasks:
            for tries_left in range(retries, -1, -1):
                self.calls.append(task)
                try:
                    self._before(len(self.calls), task)
                    result = function(task)
                except Exception as error:  # noqa: BLE001 - whatever a task raises is that task's outcome
                    if not tries_left or isinstance(error, ValueError):
                        yield Outcome(task, None, error)
                        break
                else:
                    yield Outcome(task, result)
                    break
