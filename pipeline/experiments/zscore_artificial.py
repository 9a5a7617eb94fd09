"""The Z-score paper's artificial experiments: sequences of random hidden Markov models.

Figure 1: test error against the number of training sequences. Table 1: exact moments against moments from random label
paths. Every repetition draws a new model and new sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import Packed
from gramline.learners.chains.labeler import ChainLabeler
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.experiments.base import Cell, ResultTable, Run
from gramline.pipeline.experiments.crf import MISSING_NOTE, crf_predictions, has_crf
from gramline.pipeline.experiments.hidden_markov_model import HiddenMarkovModel

FIGURE_SIZES = (5, 10, 20, 50, 100, 200)
TABLE_SYMBOLS = (3, 5, 7, 9, 11)
REPETITIONS = 100
N_TEST = 100
RIDGE = 1e-3
N_PATHS = 100
UNKNOWN = "the paper's own numbers for this are not known here, so there is no column of them"

LEARNERS: dict[str, ChainLabeler] = {
    "Z-score": ZScoreLabeler(RIDGE),
    "Z-score, Hamming": ZScoreLabeler(RIDGE, loss="hamming"),
    "HM perceptron": HiddenMarkovPerceptron(10),
    "HM perceptron, averaged": HiddenMarkovPerceptron(10, average=True),
}


def zscore_artificial(run: Run) -> Sequence[ResultTable]:
    """Figure 1 as a table, and Table 1."""
    return [_figure(run), _table(run)]


def _figure(run: Run) -> ResultTable:
    sizes, repetitions = ((5, 20), 3) if run.quick else (FIGURE_SIZES, REPETITIONS)
    methods = [*LEARNERS, *(["CRF (python-crfsuite)"] if has_crf() else []), "HMM, counted", "HMM, the true one"]
    errors = np.empty((len(methods), len(sizes), repetitions))
    for repetition in range(repetitions):
        if repetition % 10 == 0:
            run.say(f"figure 1: repetition {repetition + 1} of {repetitions}")
        rng = np.random.default_rng([run.seed, 1, repetition])
        model = HiddenMarkovModel.random(3, 4, rng)
        train, test = model.draw(max(sizes), 10, rng), model.draw(N_TEST, 10, rng)
        for number, size in enumerate(sizes):
            errors[:, number, repetition] = _figure_errors(model, train.structures(0, size), test)
    rows: list[tuple[Cell, ...]] = []
    for method, found in zip(methods, errors, strict=True):
        rows.append((method, *(100 * found.mean(axis=1)).tolist(), max(_percent(row)[1] for row in found)))
    return ResultTable(
        f"Figure 1: error %, 3 states, 4 symbols, length 10, {N_TEST} test sequences, {repetitions} repetitions",
        ("method", *(f"{size} train" for size in sizes), "+- at most"),
        tuple(rows),
        (
            "error: part of the test positions with a wrong label, averaged; +-: standard error of these means",
            "models: every distribution is drawn from a flat Dirichlet; the paper does not print its models",
            UNKNOWN,
            *(() if has_crf() else (MISSING_NOTE,)),
        ),
    )


def _figure_errors(model: HiddenMarkovModel, train: Packed, test: Packed) -> list[float]:
    """Test errors in the order of the methods."""
    found = [_wrong(learner.fresh().fit(train).predict(test), test) for learner in LEARNERS.values()]  # type: ignore[attr-defined]
    if has_crf():
        found.append(_wrong(crf_predictions(train, test), test))
    return found + [
        float((hmm.decode(test) != test.labels).mean()) for hmm in (HiddenMarkovModel.counted(train), model)
    ]


def _table(run: Run) -> ResultTable:
    symbols, repetitions = ((3,), 2) if run.quick else (TABLE_SYMBOLS, REPETITIONS)
    rows: list[tuple[Cell, ...]] = []
    for n_symbols in symbols:
        run.say(f"table 1: {n_symbols} symbols")
        found = np.empty((6, repetitions))
        for repetition in range(repetitions):
            rng = np.random.default_rng([run.seed, 2, n_symbols, repetition])
            model = HiddenMarkovModel.random(2, n_symbols, rng)
            found[:, repetition] = _exact_and_sampled(model.draw(50, 100, rng), model.draw(N_TEST, 100, rng))
        exact, sampled = _percent(found[0]), _percent(found[1])
        rows.append((n_symbols, *exact, *sampled, *found[2:].mean(axis=1).tolist()))
    return ResultTable(
        f"Table 1: 2 states, length 100, 50 training and {N_TEST} test sequences, {repetitions} repetitions",
        (
            "symbols",
            "exact error %",
            "exact +-",
            f"{N_PATHS} paths error %",
            "paths +-",
            "distance",
            "Z ratio",
            "exact s",
            "paths s",
        ),
        tuple(rows),
        (
            "+-: standard error of the mean; s: processor seconds of one training",
            "distance: |t - t'| / |t| of the weights t (exact) and t' (sampled), both of length 1",
            "Z ratio: Z of the sampled weights over Z of the exact ones, both by exact moments",
            UNKNOWN,
        ),
    )


def _exact_and_sampled(train: Packed, test: Packed) -> list[float]:
    """Errors, distance of the weights, ratio of the Z values, and seconds of both."""
    models, seconds = [], []
    for learner in (ZScoreLabeler(RIDGE), ZScoreLabeler(RIDGE, moments="sampled", n_paths=N_PATHS)):
        begin = process_time()
        models.append(learner.fit(train))
        seconds.append(process_time() - begin)
    exact, sampled = (_unit(model) for model in models)
    errors = [_wrong(model.predict(test), test) for model in models]
    return [*errors, float(np.linalg.norm(exact - sampled)), models[1].z_ / models[0].z_, *seconds]


def _unit(model: ZScoreLabeler) -> NDArray[np.float64]:
    theta = np.concatenate([model.emission_.ravel(), model.transition_.ravel()])
    return np.asarray(theta / np.linalg.norm(theta))


def _wrong(predicted: Sequence[Sequence[str]], test: Packed) -> float:
    names = np.array([label for path in predicted for label in path])
    return float((names != np.array(test.vocabulary.labels)[test.labels]).mean())


def _percent(errors: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error, in percent."""
    return 100 * float(errors.mean()), 100 * float(errors.std(ddof=1) / np.sqrt(len(errors)))
