"""Rounds of the dual hidden Markov perceptron over one Gram; it can leave its state between two blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gramline.learners.arrays import Codes, Mask
from gramline.learners.chains.viterbi import Decoder
from gramline.learners.checkpoints import Checkpoint, State, named, number, part_of
from gramline.learners.kinds import RoundProgress
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.learners.operators.lazy_scores import Change, LazyScores
from gramline.learners.operators.operator import GramOperator
from gramline.learners.operators.orders import AHEAD
from gramline.learners.perceptrons.hidden_markov_loops import Chains, DualWeights, Transitions, dual_block


class DualTraining:
    """Weights, transitions and their lags, and the scores of all training positions."""

    def __init__(self, gram: GramOperator, codes: Codes, is_used: Mask, n_labels: int, scale: float) -> None:
        """`codes` of all rows; structures that are not used, for lack of a label, are not visited."""
        self._layout, self._codes, self._is_used, self._scale = gram.layout.rows, codes, is_used, scale
        self.weights, self.lag = np.zeros((2, len(codes), n_labels))
        self.transitions = Transitions(*np.zeros((2, n_labels, n_labels)))
        self.mistakes: list[int] = []  # structures, of every round so far
        self._scores = LazyScores(gram, [n_labels])
        self._decoder = Decoder.of(self._layout.block_rows, int(self._layout.lengths.max()), n_labels)
        self._visits = 0
        self._block = 0  # the next one to visit; 0 between two rounds

    def run(self, rounds: int, tell: RoundProgress, checkpoint: Checkpoint) -> None:
        """Rounds until one has no mistake, at most `rounds`, from where the checkpoint is."""
        if (begun := checkpoint.restore()) is not None:
            self._resume(begun)
        while self._block or not self._is_done(rounds):
            if not self._block:
                self.mistakes.append(0)
            this = f"round {len(self.mistakes)} of {rounds}"
            self._run_round(this, checkpoint, is_last=len(self.mistakes) == rounds)
            tell(len(self.mistakes), self.mistakes[-1])
            checkpoint.offer(this, self._state, is_last=self._is_done(rounds))

    def _is_done(self, rounds: int) -> bool:
        return len(self.mistakes) == rounds or self.mistakes[-1:] == [0]

    def _run_round(self, this: str, checkpoint: Checkpoint, *, is_last: bool) -> None:
        n_blocks = self._layout.n_blocks
        with one_blas_thread():  # the products are thin
            for block in range(self._block, n_blocks):
                self._visit(block, self._layout.rows_after(block, AHEAD, is_last=is_last))
                self._block = (block + 1) % n_blocks
                if self._block:
                    checkpoint.offer(f"block {self._block} of {n_blocks} in {this}", self._state)

    def _visit(self, block: int, coming: Sequence[slice]) -> None:
        layout, scale = self._layout, self._scale
        positions, structures = layout.rows(block), layout.structures(block)
        starts = layout.structure_starts[structures.start : structures.stop + 1] - positions.start
        chains = Chains(self._codes[positions], starts, np.flatnonzero(self._is_used[structures]))
        visit = self._scores.enter(positions, coming=coming)
        n_rows = len(visit.tile)
        change, counts = np.zeros((n_rows, self.weights.shape[1])), np.zeros(n_rows)
        dual = DualWeights(self.weights[positions], self.lag[positions], *visit.scores[0], change, counts)
        self.mistakes[-1] += dual_block(
            visit.tile, visit.local, scale, chains, dual, self.transitions, self._decoder, self._visits
        )
        self._visits += len(chains.visited)
        rows = np.flatnonzero(counts)
        made = Change(rows, scale * change[rows], scale * counts[rows]) if len(rows) else None
        self._scores.leave(visit, [made])

    def _state(self) -> State:
        own = {"weights": self.weights.copy(), "lag": self.lag.copy(), "mistakes": np.array(self.mistakes, np.int64)}
        own |= {"visits": number(self._visits), "block": number(self._block)}
        steps = {name: array.copy() for name, array in zip(Transitions._fields, self.transitions, strict=True)}
        return own | named("transitions", steps) | named("scores", self._scores.state())

    def _resume(self, state: State) -> None:
        self.weights[:], self.lag[:], self.mistakes = state["weights"], state["lag"], state["mistakes"].tolist()
        self._visits, self._block = int(state["visits"]), int(state["block"])
        for name, array in zip(Transitions._fields, self.transitions, strict=True):
            array[:] = state[f"transitions.{name}"]
        self._scores.resume(part_of(state, "scores"))
