"""The Hidden Markov perceptron on explicit features or, in its dual form, on any position kernel.

score(x, y) = sum_k E[y_k] . f_k + sum_{k > 0} T[y_{k-1}][y_k]. If the best path is wrong: E[y_k] += f_k and
E[guess_k] -= f_k at every position, transitions alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from gramline.kernels.packing import Packable, Packed
from gramline.kernels.parameters import Boolean, Whole
from gramline.kernels.value_kinds import NumberOrName
from gramline.learners.arrays import Floats
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.two_forms import TwoFormLabeler
from gramline.learners.chains.viterbi import Decoder
from gramline.learners.checkpoints import Checkpoint
from gramline.learners.estimator import Unlabeled
from gramline.learners.kinds import RoundProgress
from gramline.learners.labels import Labels, encode_labels
from gramline.learners.operators.operator import GramOperator, check_square
from gramline.learners.perceptrons.hidden_markov_loops import (
    Chains,
    Emissions,
    Transitions,
    primal_round,
)
from gramline.learners.perceptrons.hidden_markov_training import DualTraining
from gramline.learners.perceptrons.rounds import CountsMistakes
from gramline.learners.token_features import (
    SparseRows,
    feature_matrix,
    feature_names,
    label_names,
    labeled_structures,
    training_sequences,
)

# Measured on the nine sets of `gramline reproduce defaults`: errors hardly change while the mean diagonal is between 5
# and 50, are lowest on average at 20, and far higher at 1.
LEAST_TYPICAL, TYPICAL, LARGEST_TYPICAL = 5.0, 20.0, 50.0


class HiddenMarkovPerceptron(CountsMistakes, TwoFormLabeler):
    """Structured perceptron of label chains; one round = all structures in order, the lowest label wins a tie.

    Scores tie when they differ by at most 1e-12 of the magnitude that was summed into those of the structure, so that
    rounding, and with it the order of the sums and the size of the blocks, decides nothing.

    The dual form, fit(gram, labels), has S = scale G A with A[t, y_t] += 1, A[t, guess_t] -= 1: with scale=1 the same
    predictions as with the features of the kernel. A step between labels weighs as much as a kernel value of 1 / scale,
    so a kernel that is at most 1 needs a scale to be heard. Priors and label kernel of the Gram play no part.

    Attributes
    ----------
    emission_ : E, shape (n_labels, n_features); with dual=False
    feature_names_ : the names of its columns
    dual_ : A, shape (n_rows, n_labels); with dual=True
    scale_ : the scale, a number; with dual=True
    transition_ : T, [previous][current], shape (n_labels, n_labels)
    mistakes_ : structures decoded wrongly, of every round that was run
    label_names_ : the names of the labels

    Examples
    --------
    >>> from gramline.learners import HiddenMarkovPerceptron
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> learner = HiddenMarkovPerceptron(rounds=5).fit(train)
    >>> learner.predict(Corpus.from_sequences([["the", "cat", "sat"]]))
    [['D', 'N', 'V']]
    """

    name: ClassVar[str] = "hidden-markov-perceptron"
    summary: ClassVar[str] = "label chains, from features or a Gram matrix"
    is_lazy: ClassVar[bool] = True
    round_measure: ClassVar[str] = "structures with a mistake"
    title: ClassVar[str] = "hidden Markov perceptron"
    paper: ClassVar[Mapping[str, Any]] = {"average": False, "scale": 1.0}

    scale_: float = 1.0  # models of earlier versions have none

    def __init__(
        self,
        rounds: Annotated[
            Whole, "passes over the training structures; one without a mistake would repeat for ever and is the last"
        ] = 10,
        average: Annotated[Boolean, "predict with the mean of the weights after each visit, over all `rounds`"] = True,
        dual: Annotated[Boolean, "learn from a Gram matrix instead of features"] = False,
        unlabeled: Unlabeled = "error",
        scale: Annotated[
            float | Literal["auto"],
            NumberOrName(above=0, names=("auto",)),
            'of the Gram matrix beside transitions, in the dual form; `"auto"` makes its mean diagonal 20 unless that '
            "is between 5 and 50",
        ] = "auto",
        constraints: Constraints = "none",
    ) -> None:
        self.rounds = rounds
        self.average = average
        self.dual = dual
        self.unlabeled = unlabeled
        self.scale = scale
        self.constraints = constraints

    def _fit_corpus(self, corpus: Packable | Packed, progress: RoundProgress | None) -> None:
        tell = progress or _nobody
        packed = training_sequences(corpus, self.unlabeled)
        names, labels = feature_names(packed), label_names(packed)
        n, n_features, n_positions = len(labels), len(names), packed.n_positions
        chains = Chains(packed.labels, packed.starts, np.arange(len(packed)))
        features = SparseRows.of(feature_matrix(packed, n_features))
        weights, lag = np.zeros((2, n_features, n))
        emissions = Emissions(weights, lag, np.zeros(n_features), np.empty((n_positions, n)))
        transitions = Transitions(*np.zeros((2, n, n)))
        decoder = Decoder.of(n_positions, int(packed.lengths.max()), n)
        mistakes: list[int] = []
        while len(mistakes) < self.rounds and mistakes[-1:] != [0]:
            visits = len(mistakes) * len(packed)
            mistakes.append(primal_round(chains, features, emissions, transitions, decoder, visits))
            tell(len(mistakes), mistakes[-1])
        visits = int(self.rounds) * len(packed)
        self.emission_ = np.ascontiguousarray(self._mean(weights, lag, visits).T)
        self.transition_ = self._mean(*transitions, visits)
        self.mistakes_, self.feature_names_, self.label_names_ = mistakes, names, labels

    def _fit_gram(
        self, gram: GramOperator, labels: Labels, progress: RoundProgress | None, checkpoint: Checkpoint
    ) -> None:
        check_square(gram)
        codes, names = encode_labels(gram, labels)
        is_used = labeled_structures(codes.astype(np.int32), gram.layout.rows.structure_starts, self.unlabeled)
        scale = self._scale(gram)
        training = DualTraining(gram, codes.astype(np.int32), is_used, len(names), scale)
        training.run(int(self.rounds), progress or _nobody, checkpoint)
        total = int(self.rounds) * int(is_used.sum())
        self.dual_, self.scale_ = self._mean(training.weights, training.lag, total), scale
        self.transition_ = self._mean(*training.transitions, total)
        self.mistakes_, self.label_names_ = training.mistakes, names

    def _scale(self, gram: GramOperator) -> float:
        """The number that `scale` says or stands for."""
        if not isinstance(self.scale, str):
            return float(self.scale)
        typical = float(np.abs(gram.diagonal()).mean())
        return 1.0 if typical == 0 or LEAST_TYPICAL <= typical <= LARGEST_TYPICAL else TYPICAL / typical

    def _mean(self, weights: Floats, lag: Floats, visits: int) -> Floats:
        """The mean over all visits, w - lag / visits; the last weights when no average is wanted.

        Divided last: a mean of whole numbers is rounded once, and weights that cancel are exactly 0.
        """
        return (visits * weights - lag) / visits if self.average else weights

    def _row_weights(self) -> Floats:
        return self.scale_ * self.dual_


def _nobody(_number: int, _mistakes: int) -> None:
    """Nobody listens."""
