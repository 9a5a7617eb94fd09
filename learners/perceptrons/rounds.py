"""What perceptrons share that go over all structures round by round and count their mistakes."""

from __future__ import annotations

from gramline.learners.estimator import Learner


class CountsMistakes(Learner):
    """At most `rounds` of them."""

    rounds: int

    mistakes_: list[int]  # of every round that was run

    @property
    def round_limit(self) -> int:
        return self.rounds

    def traces(self) -> dict[str, list[float]]:
        return {"mistakes": [float(count) for count in self.mistakes_]}
