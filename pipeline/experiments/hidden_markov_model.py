"""Random hidden Markov models: labeled sequences drawn from one, and the labelers that know or count its numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Features, Packed, PackedSequences, Vocabulary
from gramline.learners.arrays import Codes, Floats
from gramline.learners.chains.viterbi import viterbi


@dataclass(frozen=True, eq=False)
class HiddenMarkovModel:
    """P(y_1) P(x_1 | y_1) prod_k P(y_k | y_{k-1}) P(x_k | y_k)."""

    initial: Floats  # shape (n_states,)
    transition: Floats  # shape (n_states, n_states)
    emission: Floats  # shape (n_states, n_symbols)

    @classmethod
    def random(cls, n_states: int, n_symbols: int, rng: np.random.Generator) -> HiddenMarkovModel:
        """Every distribution drawn evenly from all there are (a flat Dirichlet)."""
        return cls(
            rng.dirichlet(np.ones(n_states)),
            rng.dirichlet(np.ones(n_states), size=n_states),
            rng.dirichlet(np.ones(n_symbols), size=n_states),
        )

    @classmethod
    def counted(cls, packed: Packed) -> HiddenMarkovModel:
        """From the frequencies in labeled sequences, one added to every count."""
        n_states, n_symbols = len(packed.vocabulary.labels), len(packed.vocabulary.features)
        first = np.zeros(packed.n_positions, bool)
        first[packed.starts[:-1]] = True
        inner = np.flatnonzero(~first)
        initial = np.ones(n_states)
        np.add.at(initial, packed.labels[first], 1.0)
        transition = np.ones((n_states, n_states))
        np.add.at(transition, (packed.labels[inner - 1], packed.labels[inner]), 1.0)
        emission = np.ones((n_states, n_symbols))
        np.add.at(emission, (packed.labels, packed.symbols), 1.0)
        return cls(
            initial / initial.sum(),
            transition / transition.sum(axis=1, keepdims=True),
            emission / emission.sum(axis=1, keepdims=True),
        )

    def draw(self, n_sequences: int, length: int, rng: np.random.Generator) -> PackedSequences:
        """Labeled sequences; the feature of a position is its symbol."""
        states = np.empty((n_sequences, length), np.int32)
        symbols = np.empty((n_sequences, length), np.int32)
        for k in range(length):
            chances = np.tile(self.initial, (n_sequences, 1)) if k == 0 else self.transition[states[:, k - 1]]
            states[:, k] = _drawn(chances, rng)
            symbols[:, k] = _drawn(self.emission[states[:, k]], rng)
        n = n_sequences * length
        vocabulary = Vocabulary(
            features=tuple(f"x{symbol}" for symbol in range(self.emission.shape[1])),
            labels=tuple(f"y{state}" for state in range(len(self.initial))),
        )
        return PackedSequences(
            starts=np.arange(0, n + 1, length, dtype=np.int64),
            symbols=symbols.ravel(),
            features=Features(np.arange(n + 1, dtype=np.int64), symbols.ravel(), None),
            labels=states.ravel(),
            vocabulary=vocabulary,
        )

    def decode(self, packed: Packed) -> Codes:
        """The likeliest state of every position, along the likeliest path of its sequence."""
        scores = np.log(self.emission.T)[packed.symbols]
        scores[packed.starts[:-1]] += np.log(self.initial)
        return viterbi(scores, np.log(self.transition), packed.starts)[0]


def _drawn(chances: Floats, rng: np.random.Generator) -> NDArray[np.int32]:
    """One index per row, drawn with the probabilities of the row."""
    reached = np.cumsum(chances, axis=1)
    levels = rng.random(len(chances)) * reached[:, -1]
    found: NDArray[np.int32] = np.minimum((levels[:, None] >= reached).sum(axis=1), chances.shape[1] - 1).astype(
        np.int32
    )
    return found
