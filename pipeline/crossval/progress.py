"""How far a whole job is, in lines for people: stores, rounds, problems, and the time left."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

LINE_EVERY = 5.0  # seconds between two lines about rounds or single problems


class JobProgress:
    """Counts solved problems; says a line at every step."""

    def __init__(
        self, say: Callable[[str], None], n_problems: int, n_before: int, clock: Callable[[], float] = monotonic
    ) -> None:
        self.say = say
        self._n_problems, self._n_done = n_problems, n_before
        self._n_timed = 0  # problems that `_spent` is the time of
        self._is_warm = False  # the first of many waits for workers to start and code to compile: no measure
        self._clock = clock
        self._spent = 0.0  # seconds of training, which tell the time left
        self._begin = self._said = clock()
        if n_before:
            say(f"{n_before:,} of {n_problems:,} problems were solved before")

    def building(self, path: str, n_missing: int, n_tiles: int) -> None:
        self.say(f"building {path}: {n_missing:,} of {n_tiles:,} tiles are missing")

    def training(self, learner: str, n_problems: int) -> None:
        self._begin = self._said = self._clock()
        self.say(f"training {learner}: {n_problems:,} problems (settings x folds)")

    def round_done(self, number: int, mistakes: int) -> None:
        if self._clock() - self._said >= LINE_EVERY:
            self._said = self._clock()
            self.say(f"round {number}: {mistakes:,} mistakes in all problems together")

    def solved(self, n_problems: int) -> None:
        now = self._clock()
        if n_problems > 1 or self._is_warm:
            self._spent += now - self._begin
            self._n_timed += n_problems
        self._is_warm = True
        self._begin = now
        self._n_done += n_problems
        if n_problems == 1 and self._n_done < self._n_problems and now - self._said < LINE_EVERY:
            return
        self._said = now
        left = self.seconds_left
        rest = "" if not left else f", about {round(left):,} s left"
        self.say(f"{self._n_done:,} of {self._n_problems:,} problems solved{rest}")

    @property
    def seconds_left(self) -> float | None:
        """None until enough problems were solved to tell."""
        return self._spent / self._n_timed * (self._n_problems - self._n_done) if self._n_timed else None
