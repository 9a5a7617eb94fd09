"""A constant chosen on hidden structures: against fits of every value on every fold, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gram_samples import sentences
from tolerances import assert_close

from gramline.kernels import Identity, SequenceLabeling
from gramline.learners import DenseGram, KernelCRF, LabelingSVM, StructuredSVM
from gramline.learners import chosen_constants as choosing
from gramline.learners.chosen_constants import STEPS, Choice, typical
from gramline.learners.errors import LabelError, LearnerParameterError
from gramline.learners.hidden_folds import hidden_structures
from gramline.learners.operators.computed import ComputedGram
from gramline.pipeline.corpus.corpus import Corpus

KERNEL = SequenceLabeling(c=0.8, observation=Identity())
WORDS, _ = sentences(16, seed=4)
DRAW = np.random.default_rng(7)
LABELS: list[list[str | None]] = [
    [("B" if word in "ab" else "O") if DRAW.random() < 0.85 else str(DRAW.choice(["B", "O"])) for word in words]
    for words in WORDS
]
LABELS[3][0] = None
LABELS[5] = [None] * len(LABELS[5])
CORPUS = Corpus.from_sequences(WORDS, LABELS)
LEARNERS = [
    LabelingSVM(C="auto", passes=8),
    StructuredSVM(C="auto", passes=4),
    StructuredSVM(C="auto", passes=4, loss="none"),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=repr)


def gram(block_rows: int | None = None) -> DenseGram:
    return DenseGram.of(KERNEL, CORPUS, block_rows=block_rows)


def folds_by_hand(labels: Any) -> list[list[int]]:
    known = [k for k, own in enumerate(labels) if any(label is not None for label in own)]
    return [known[first::5] for first in range(5)]


def chosen_by_hand(learner: Any, labels: Any, whole: DenseGram) -> tuple[list[float], list[int]]:
    """The values, and the wrong labels on hidden structures of each: separate fits, separate predictions."""
    known = np.concatenate([[any(label is not None for label in own)] * len(own) for own in labels])
    values = [step / float(np.median(np.diag(whole.matrix)[known])) for step in STEPS]
    wrong = []
    for value in values:
        count = 0
        for fold in folds_by_hand(labels):
            masked = [[None] * len(own) if k in fold else own for k, own in enumerate(labels)]
            one = learner.fresh().set_params(C=value, tolerance=0.05).fit(whole, masked)
            for k, predicted in enumerate(one.predict(whole)):
                if k in fold:
                    count += sum(a is not None and a != b for a, b in zip(labels[k], predicted, strict=True))
        wrong.append(count)
    return values, wrong


@every_learner
def test_chooses_what_separate_fits_would_choose(learner: Any) -> None:
    found = learner.fresh().fit(gram(), LABELS)
    values, wrong = chosen_by_hand(learner, LABELS, gram())
    assert len(set(wrong)) > 1, "the values must differ"
    assert values[int(np.argmin(wrong))] == found.C_
    assert found.C == "auto"
    fixed = learner.fresh().set_params(C=found.C_).fit(gram(), LABELS)
    assert (found.dual_ == fixed.dual_).all()
    assert found.gap_trace_ == fixed.gap_trace_
    note, *converged = found.notes()
    assert note.startswith(f"C = {found.C_:.2g} has the fewest wrong labels on hidden structures, of 5 values from ")
    n_hidden = sum(label is not None for own in LABELS for label in own)
    assert found.trials_ == {"C": values, "wrong": wrong, "hidden": n_hidden}
    assert found.chosen() == {"C": found.C_}
    assert fixed.notes() == converged
    assert fixed.chosen() == {}
    # A model says it once, where it is trained.
    assert found.restricted(np.arange(len(found.dual_))).notes() == found.notes()
    loaded = type(learner).from_state(*found.to_state())
    assert loaded.notes() == converged
    assert loaded.trials_ == found.trials_


@every_learner
def test_every_way_to_the_tiles_and_every_batch_chooses_the_same(learner: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = learner.fresh().fit(gram(), LABELS)
    computed = ComputedGram(KERNEL, KERNEL.prepare(CORPUS.packed()), block_rows=9)
    for other in (gram(9), computed):
        again = learner.fresh().fit(other, LABELS)
        assert again.C_ == found.C_
        assert again.trials_ == found.trials_
        assert abs(again.objective_ - found.objective_) < 1e-3 * found.objective_, "rounding decides some ties"
    monkeypatch.setattr(choosing, "TOGETHER_BYTES", 1)  # one trial at a time
    alone = learner.fresh().fit(gram(), LABELS)
    assert alone.C_ == found.C_
    assert (alone.dual_ == found.dual_).all()


@every_learner
def test_hidden_labels_do_not_matter(learner: Any) -> None:
    """One pass over many problems: each chooses on its own labels, as it would alone on its own structures."""
    masked = [None if k % 4 == 0 else own for k, own in enumerate(LABELS)]
    kept = [k for k, own in enumerate(masked) if own is not None]
    together = [learner.fresh(), learner.fresh().set_params(C=3.0), learner.fresh()]
    type(learner).fit_many(together, gram(), [LABELS, LABELS, masked])
    assert together[0].C_ == learner.fresh().fit(gram(), LABELS).C_
    assert together[1].C_ == 3.0
    assert together[1].chosen() == {}
    part = CORPUS.select(kept)
    alone = learner.fresh().fit(DenseGram.of(KERNEL, part), [LABELS[k] for k in kept])
    assert together[2].C_ == alone.C_
    assert_close(together[2].objective_, alone.objective_)


def test_the_random_field_chooses_its_penalty() -> None:
    """The one of C = 1 / (2 penalty); features as their Gram."""
    found = KernelCRF(penalty="auto", iterations=8).fit(gram(), LABELS)
    known = np.concatenate([[any(label is not None for label in own)] * len(own) for own in LABELS])
    values = [float(np.median(np.diag(gram().matrix)[known])) / (2 * step) for step in STEPS]
    np.testing.assert_allclose(found.trials_["penalty"], values, rtol=1e-12)
    wrong = [0] * len(values)
    for fold in folds_by_hand(LABELS):
        masked = [[None] * len(own) if k in fold else own for k, own in enumerate(LABELS)]
        for place, value in enumerate(values):
            one = KernelCRF(penalty=value, tolerance=1e-3, iterations=8).fit(gram(), masked)
            for k, predicted in enumerate(one.predict(gram())):
                if k in fold:
                    wrong[place] += sum(a is not None and a != b for a, b in zip(LABELS[k], predicted, strict=True))
    assert found.trials_["wrong"] == wrong
    assert found.chosen() == {"penalty": found.penalty_}
    assert found.penalty_ == found.trials_["penalty"][int(np.argmin(wrong))]
    fixed = KernelCRF(penalty=found.penalty_, iterations=8).fit(gram(), LABELS)
    assert (found.dual_ == fixed.dual_).all()
    assert found.notes()[0].startswith(f"penalty = {found.penalty_:.2g} has the fewest wrong labels")
    together = [KernelCRF(penalty="auto", iterations=8), KernelCRF(penalty=0.5)]
    KernelCRF.fit_many(together, gram(), [LABELS, LABELS])
    assert [one.penalty_ for one in together] == [found.penalty_, 0.5]


def test_a_kernel_times_a_number_chooses_the_same_machine() -> None:
    whole = gram()
    one = LabelingSVM(C="auto", passes=8).fit(whole, LABELS)
    larger = DenseGram(7.0 * whole.matrix, whole.layout.rows.lengths, label_names=whole.label_names)
    other = LabelingSVM(C="auto", passes=8).fit(larger, LABELS)
    assert_close(7.0 * other.C_, one.C_)
    assert_close(other.decision_scores(larger), one.decision_scores(whole))


def test_features_choose_as_their_linear_kernel() -> None:
    X = [[{word: 1.0, f"length {len(word)}": 2.0} for word in words] for words in WORDS]
    corpus = Corpus.from_sequences(X, LABELS)
    packed = corpus.packed()
    dense = np.zeros((packed.n_positions, len(packed.vocabulary.features)))
    rows = np.repeat(np.arange(packed.n_positions), np.diff(packed.features.indptr))
    dense[rows, packed.features.indices] = packed.features.values
    linear = DenseGram(dense @ dense.T, packed.lengths, label_names=packed.vocabulary.labels)
    primal = StructuredSVM(C="auto", passes=5, dual=False).fit(corpus)
    dual = StructuredSVM(C="auto", passes=5).fit(linear, LABELS)
    assert primal.C_ == dual.C_
    assert primal.notes() == dual.notes()
    assert_close(primal.transition_, dual.transition_)
    field = KernelCRF(penalty="auto", iterations=6, dual=False).fit(corpus)
    other = KernelCRF(penalty="auto", iterations=6).fit(linear, LABELS)
    assert field.trials_ == other.trials_
    assert field.penalty_ == other.penalty_


def test_few_structures_get_a_guess_and_say_so() -> None:
    few = CORPUS.select(range(3))
    model = StructuredSVM(C="auto").fit(DenseGram.of(KERNEL, few), few.labels)
    diagonal = np.diag(DenseGram.of(KERNEL, few).matrix)
    assert 10.0 / np.median(diagonal) == model.C_
    (note,) = model.notes()
    assert note == f"C = {model.C_:.2g} is a guess: fewer than 5 structures have labels, too few to choose by"


def test_the_smaller_wins_a_tie_and_an_end_is_told() -> None:
    assert Choice("C", (1.0, 3.0, 10.0), (5, 2, 2), 40).value == 3.0
    at_end = Choice("penalty", (0.5, 0.1), (2, 1), 40)
    assert at_end.note() == (
        "penalty = 0.1 has the fewest wrong labels on hidden structures, of 2 values from 0.5 to 0.1; others beyond it "
        "may have fewer"
    )
    assert "beyond" not in Choice("C", (1.0, 3.0), (2, 2), 40).note(), "nothing could be told apart"


def test_the_typical_value() -> None:
    assert typical(np.array([0.0, 2.0, 4.0, 100.0])) == 4.0
    assert typical(np.zeros(3)) == 1.0
    assert typical(np.zeros(0)) == 1.0


def test_folds_of_structures_with_labels() -> None:
    lengths = np.array([2, 0, 1, 1, 3, 1, 2])
    assert [fold.tolist() for fold in hidden_structures(lengths)] == [[0, 6], [2], [3], [4], [5]]
    assert [fold.tolist() for fold in hidden_structures(lengths, enough=5)] == [[0, 6], [2]]
    assert hidden_structures(np.array([1, 1, 0, 1, 1])) == []


@every_learner
def test_what_is_neither_a_number_nor_auto_is_refused(learner: Any) -> None:
    for wrong in ("best", 0, -1.0):
        with pytest.raises(LearnerParameterError, match="C must be a number above 0, or auto, got"):
            learner.fresh().set_params(C=wrong).fit(gram(), LABELS)
    with pytest.raises(LabelError, match="no position has a label"):
        learner.fresh().fit(gram(), [None] * len(LABELS))
