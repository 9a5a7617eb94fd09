"""Passes of the ranking perceptron over the groups of one Gram; it can leave its state between two batches."""

from __future__ import annotations

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.candidates.groups import training_batches
from gramline.learners.chains.viterbi import TIE
from gramline.learners.checkpoints import Checkpoint, State, named, number, part_of
from gramline.learners.operators.lazy_scores import Change, LazyScores
from gramline.learners.operators.operator import GramOperator


class RankingTraining:
    """Updates and counts so far, and the scores F of all training candidates."""

    def __init__(self, gram: GramOperator, groups: list[Indices], offsets: Matrix) -> None:
        """`offsets`, shape (n_rows,), are added to F wherever two candidates are compared."""
        batches = training_batches(groups, gram.layout.rows)
        self._batches = [[groups[number] for number in batch] for batch in batches]
        self._offsets = offsets
        self._scores = LazyScores(gram, [1])
        self._scores.limit_to([np.concatenate(batch) for batch in self._batches])
        self.updates: list[tuple[int, int]] = []
        self.counts: list[int] = []
        self.mistakes: list[int] = []  # of every pass so far
        self._batch = 0  # the next one; 0 between two passes

    def run(self, passes: int, checkpoint: Checkpoint) -> None:
        """Passes until one has no mistake, at most `passes`, from where the checkpoint is."""
        if (begun := checkpoint.restore()) is not None:
            self._resume(begun)
        while self._batch or not self._is_done(passes):
            if not self._batch:
                self.mistakes.append(0)
            this = f"pass {len(self.mistakes)} of {passes}"
            self._run_pass(this, checkpoint)
            checkpoint.offer(this, self._state, is_last=self._is_done(passes))

    def _is_done(self, passes: int) -> bool:
        return len(self.mistakes) == passes or self.mistakes[-1:] == [0]

    def _run_pass(self, this: str, checkpoint: Checkpoint) -> None:
        """The batches of a pass that are left."""
        n_batches = len(self._batches)
        for place, groups in enumerate(self._batches[self._batch :], self._batch + 1):
            before = len(self.updates)
            self._run_batch(groups)
            self.mistakes[-1] += len(self.updates) - before
            self._batch = place % n_batches
            if self._batch:
                checkpoint.offer(f"batch {place} of {n_batches} in {this}", self._state)

    def _run_batch(self, groups: list[Indices]) -> None:
        """The literal loop over some groups, with the Gram matrix of their rows in memory."""
        candidates = np.unique(np.concatenate(groups))
        visit = self._scores.enter(candidates)
        square = visit.tile.astype(float, copy=False)
        (scores,), magnitudes = visit.scores[0]
        offsets = self._offsets
        wins, losses = np.zeros((2, len(square)))
        for group in groups:
            correct, *others = visit.local[np.searchsorted(candidates, group)].tolist()
            for other, loser in zip(others, group[1:].tolist(), strict=True):
                own, theirs = offsets[group[0]], offsets[loser]
                tolerance = TIE * max(magnitudes[correct] + abs(own), magnitudes[other] + abs(theirs))
                if scores[correct] - scores[other] + (own - theirs) > tolerance:
                    if self.counts:
                        self.counts[-1] += 1
                    continue
                scores += square[correct] - square[other]
                magnitudes += np.abs(square[correct]) + np.abs(square[other])
                wins[correct] += 1
                losses[other] += 1
                self.updates.append((int(group[0]), loser))
                self.counts.append(1)
        rows = np.flatnonzero(wins + losses)
        change = Change(rows, (wins - losses)[rows, None], (wins + losses)[rows])
        self._scores.leave(visit, [change if len(rows) else None])

    def _state(self) -> State:
        own = {"updates": np.array(self.updates, np.int64).reshape(-1, 2), "counts": np.array(self.counts, np.int64)}
        own |= {"mistakes": np.array(self.mistakes, np.int64), "batch": number(self._batch)}
        return own | named("scores", self._scores.state())

    def _resume(self, state: State) -> None:
        self.updates = [(int(winner), int(loser)) for winner, loser in state["updates"]]
        self.counts, self.mistakes = state["counts"].tolist(), state["mistakes"].tolist()
        self._batch = int(state["batch"])
        self._scores.resume(part_of(state, "scores"))
