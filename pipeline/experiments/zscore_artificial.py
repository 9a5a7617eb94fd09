"""The Z-score paper's artificial experiments: sequences of random hidden Markov models.

Figure 1: test error against the number of training sequences. Table 1: exact moments against moments from random label
paths. Every repetition draws a new model and new sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Features, Packed, PackedSequences, Vocabulary
from gramline.learners.arrays import Codes, Floats
from gramline.learners.chains.viterbi import viterbi
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.crossval.crf import CHOOSING_FOLDS, CHOSEN_NOTE, DECODINGS, chosen_crfs, has_crf, missing_crf
from gramline.pipeline.experiments.base import ResultTable, Row, Run

FIGURE_SIZES = (5, 10, 20, 50, 100, 200)
TABLE_SYMBOLS = (3, 5, 7, 9, 11)
REPETITIONS = 100
N_TEST = 100
RIDGE = 1e-3
N_PATHS = 100
FIGURE_IN_WORDS = (
    "the paper prints curves and no numbers; it says that the plain Z-score is only slightly behind the Z-score and "
    "the max-margin learner with Hamming loss, which are level, and much faster to train, the more so the larger the "
    "training set"
)
PRINTED = {  # table 1 by the number of symbols: error % and seconds, exact, by 100 paths, and max-margin with Hamming
    3: ((15.82, 15.91, 15.81), (0.88, 0.43, 5.63)),
    5: ((10.10, 10.13, 10.02), (1.28, 0.63, 8.29)),
    7: ((7.49, 7.58, 7.22), (1.80, 0.68, 10.68)),
    9: ((4.99, 4.99, 4.94), (2.48, 0.69, 14.24)),
    11: ((4.74, 4.78, 4.58), (3.29, 0.72, 16.03)),
}

CRFS = tuple(f"CRF (python-crfsuite), {decoding}" for decoding in DECODINGS)

LEARNERS: dict[str, ZScoreLabeler | HiddenMarkovPerceptron] = {
    "Z-score": ZScoreLabeler(RIDGE, transition_ridge=None),
    "Z-score, Hamming": ZScoreLabeler(RIDGE, loss="hamming", transition_ridge=None),
    "HM perceptron": HiddenMarkovPerceptron(10, average=False),
    "HM perceptron, averaged": HiddenMarkovPerceptron(10, average=True),
}


def zscore_artificial(run: Run) -> Sequence[ResultTable]:
    """Figure 1 as a table, and Table 1."""
    return [_figure(run), _table(run)]


def _figure(run: Run) -> ResultTable:
    sizes, repetitions = ((5, 20), 3) if run.quick else (FIGURE_SIZES, REPETITIONS)
    methods = [*LEARNERS, *(CRFS if has_crf() else ()), "HMM, counted", "HMM, the true one"]
    errors = np.empty((len(methods), len(sizes), repetitions))
    for repetition in range(repetitions):
        if repetition % 10 == 0:
            run.say(f"figure 1: repetition {repetition + 1} of {repetitions}")
        rng = np.random.default_rng([run.seed, 1, repetition])
        model = HiddenMarkovModel.random(3, 4, rng)
        train, test = model.draw(max(sizes), 10, rng), model.draw(N_TEST, 10, rng)
        for number, size in enumerate(sizes):
            errors[:, number, repetition] = _figure_errors(model, train.structures(0, size), test)
    rows: list[Row] = []
    for method, by_size in zip(methods, errors, strict=True):
        rows.append((method, *(100 * by_size.mean(axis=1)).tolist(), max(_percent(row)[1] for row in by_size)))
    return ResultTable(
        f"Figure 1: error %, 3 states, 4 symbols, length 10, {N_TEST} test sequences, {repetitions} repetitions",
        ("method", *(f"{size} train" for size in sizes), "+- at most"),
        tuple(rows),
        (
            "error: part of the test positions with a wrong label, averaged; +-: standard error of these means",
            "models: every distribution is drawn from a flat Dirichlet; the paper does not print its models",
            FIGURE_IN_WORDS,
            *((f"{CHOSEN_NOTE} by {CHOOSING_FOLDS} folds of the training sequences",) if has_crf() else missing_crf()),
        ),
    )


def _figure_errors(model: HiddenMarkovModel, train: Packed, test: Packed) -> list[float]:
    """Test errors in the order of the methods."""
    errors = [_wrong(learner.fresh().fit(train).predict(test), test) for learner in LEARNERS.values()]
    if has_crf():
        errors += [_wrong(found.labels, test) for found in chosen_crfs(train, test).values()]
    return errors + [
        float((hmm.decode(test) != test.labels).mean()) for hmm in (HiddenMarkovModel.counted(train), model)
    ]


def _table(run: Run) -> ResultTable:
    symbols, repetitions = ((3,), 2) if run.quick else (TABLE_SYMBOLS, REPETITIONS)
    rows: list[Row] = []
    for n_symbols in symbols:
        run.say(f"table 1: {n_symbols} symbols")
        measured = np.empty((6, repetitions))
        for repetition in range(repetitions):
            rng = np.random.default_rng([run.seed, 2, n_symbols, repetition])
            model = HiddenMarkovModel.random(2, n_symbols, rng)
            measured[:, repetition] = _exact_and_sampled(model.draw(50, 100, rng), model.draw(N_TEST, 100, rng))
        exact, sampled = _percent(measured[0]), _percent(measured[1])
        printed, seconds = PRINTED[n_symbols]
        rows.append((n_symbols, *exact, *sampled, *measured[2:].mean(axis=1).tolist(), *printed, *seconds))
    errors = ("exact error %", "exact +-", f"{N_PATHS} paths error %", "paths +-")
    papers = tuple(f"paper {what}" for what in ("exact %", "paths %", "MM (H) %", "exact s", "paths s", "MM (H) s"))
    columns = ("symbols", *errors, "distance", "Z ratio", "exact s", "paths s", *papers)
    return ResultTable(
        f"Table 1: 2 states, length 100, 50 training and {N_TEST} test sequences, {repetitions} repetitions",
        columns,
        tuple(rows),
        (
            "+-: standard error of the mean; s: processor seconds of one training",
            "distance: |t - t'| / |t| of the weights t (exact) and t' (sampled), both of length 1",
            "Z ratio: Z of the sampled weights over Z of the exact ones, both by exact moments",
            "paper: of models of its own, on its machine; MM (H): its max-margin learner with Hamming loss",
        ),
    )


def _exact_and_sampled(train: Packed, test: Packed) -> list[float]:
    """Errors, distance of the weights, ratio of the Z values, and seconds of both."""
    models, seconds = [], []
    for learner in (
        ZScoreLabeler(RIDGE, transition_ridge=None),
        ZScoreLabeler(RIDGE, moments="sampled", n_paths=N_PATHS, transition_ridge=None),
    ):
        begin = process_time()
        models.append(learner.fit(train))
        seconds.append(process_time() - begin)
    exact, sampled = (_unit(model) for model in models)
    errors = [_wrong(model.predict(test), test) for model in models]
    return [*errors, float(np.linalg.norm(exact - sampled)), models[1].z_ / models[0].z_, *seconds]


def _unit(model: ZScoreLabeler) -> Floats:
    theta = np.concatenate([model.emission_.ravel(), model.transition_.ravel()])
    return np.asarray(theta / np.linalg.norm(theta))


def _wrong(predicted: Sequence[Sequence[str]], test: Packed) -> float:
    names = np.array([label for path in predicted for label in path])
    return float((names != np.array(test.vocabulary.labels)[test.labels]).mean())


def _percent(errors: Floats) -> tuple[float, float]:
    """Mean and its standard error, in percent."""
    return 100 * float(errors.mean()), 100 * float(errors.std(ddof=1) / np.sqrt(len(errors)))


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
        first = packed.starts[:-1]
        later = np.setdiff1d(np.arange(packed.n_positions), first)
        initial, transition = np.ones(n_states), np.ones((n_states, n_states))
        emission = np.ones((n_states, n_symbols))
        np.add.at(initial, packed.labels[first], 1.0)
        np.add.at(transition, (packed.labels[later - 1], packed.labels[later]), 1.0)
        np.add.at(emission, (packed.labels, packed.symbols), 1.0)
        return cls(*(counts / counts.sum(axis=-1, keepdims=True) for counts in (initial, transition, emission)))

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
    drawn = (levels[:, None] >= reached).sum(axis=1)
    return np.asarray(np.minimum(drawn, chances.shape[1] - 1), np.int32)
