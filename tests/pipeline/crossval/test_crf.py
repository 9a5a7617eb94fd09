"""The CRF of python-crfsuite on sequences of a hidden Markov model."""

from __future__ import annotations

import numpy as np
import pytest

from gramline.kernels.packing import PackedSequences
from gramline.learners.token_features import chosen_sequences
from gramline.pipeline.crossval.crf import (
    DECODINGS,
    FEW_CONSTANTS,
    FEW_FOLDS,
    MARGINALS,
    VITERBI,
    best_crf_predictions,
    chosen_constants,
    chosen_crfs,
    crf_marginals,
    crf_predictions,
    crfs,
    has_crf,
)
from gramline.pipeline.experiments.zscore_artificial import HiddenMarkovModel

pytestmark = pytest.mark.skipif(not has_crf(), reason="python-crfsuite is not installed")
CLEAR, VAGUE = np.array([[0.98, 0.02], [0.02, 0.98]]), np.array([[0.7, 0.3], [0.3, 0.7]])
CONSTANTS = (30.0, 1.0, 0.01)


def drawn(emission: np.ndarray, n_train: int = 30) -> tuple[PackedSequences, PackedSequences]:
    rng = np.random.default_rng(2)
    model = HiddenMarkovModel(np.full(2, 0.5), np.full((2, 2), 0.5), emission)
    return model.draw(n_train, 6, rng), model.draw(20, 6, rng)


def n_wrong(predicted: list[list[str]], test: PackedSequences) -> int:
    return int((np.array(predicted).ravel() != np.array(test.vocabulary.labels)[test.labels]).sum())


def test_the_crf_reads_names_of_features_and_labels() -> None:
    train, test = drawn(CLEAR)
    assert n_wrong(crf_predictions(train, test), test) < 12


def test_marginals_follow_the_observations() -> None:
    train, test = drawn(CLEAR)
    table = crf_marginals(train, test, [*train.vocabulary.labels, "never"])
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    assert (table[:, 2] == 0).all()
    assert (table.argmax(axis=1) == test.labels).mean() > 0.9


def test_one_training_is_decoded_in_both_ways() -> None:
    train, test = drawn(VAGUE)
    (found,) = crfs(train, test, [1.0])
    assert found.by_decoding[VITERBI] == crf_predictions(train, test)
    names = train.vocabulary.labels
    likely = [names[code] for code in crf_marginals(train, test, names).argmax(axis=1)]
    assert np.array(found.by_decoding[MARGINALS]).ravel().tolist() == likely
    assert found.seconds >= 0


def test_constants_after_each_other_are_constants_alone() -> None:
    train, test = drawn(VAGUE)
    together = [found.by_decoding for found in crfs(train, test, CONSTANTS)]
    assert together == [crfs(train, test, [c2])[0].by_decoding for c2 in CONSTANTS]


def test_the_constant_is_chosen_by_hidden_training_sequences_and_the_first_of_equals() -> None:
    train, test = drawn(VAGUE, 12)
    wrong = {decoding: np.zeros(len(CONSTANTS)) for decoding in DECODINGS}
    for held in np.array_split(np.arange(12), 3):
        hidden = chosen_sequences(train, held)
        known = chosen_sequences(train, np.setdiff1d(np.arange(12), held))
        for number, found in enumerate(crfs(known, hidden, CONSTANTS)):
            for decoding in DECODINGS:
                wrong[decoding][number] += n_wrong(found.by_decoding[decoding], hidden)
    best = {decoding: CONSTANTS[int(counts.argmin())] for decoding, counts in wrong.items()}
    assert chosen_constants(train, CONSTANTS, 3) == best
    for decoding, chosen in chosen_crfs(train, test, CONSTANTS, 3).items():
        assert chosen.c2 == best[decoding]
        assert chosen.wrong == wrong[decoding].min()
        assert chosen.labels == crfs(train, test, [chosen.c2])[0].by_decoding[decoding]
    assert chosen_constants(train, (5.0, 5.0001), 3)[VITERBI] == 5.0


def test_the_baseline_has_the_better_decoding_of_the_training_part() -> None:
    train, test = drawn(VAGUE)
    both = chosen_crfs(train, test, FEW_CONSTANTS, FEW_FOLDS)
    assert best_crf_predictions(train, test) == min(both.values(), key=lambda one: one.wrong).labels


def test_a_single_sequence_keeps_the_default() -> None:
    train, _ = drawn(CLEAR, 1)
    assert chosen_constants(train) == dict.fromkeys(DECODINGS, 1.0)
