"""A training that goes on from a state it left ends with the same learner, bit by bit, wherever it was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gram_samples import sentences

from gramline.kernels import Identity, SequenceLabeling, SubsetTree
from gramline.learners import (
    DenseGram,
    GaussianProcessLabeler,
    HiddenMarkovPerceptron,
    KernelCRF,
    KernelZScoreLabeler,
    LabelingPerceptron,
    LabelingSVM,
    RankingPerceptron,
    RankingSVM,
    StructuredSVM,
)
from gramline.learners.checkpoints import State
from gramline.learners.operators.computed import ComputedGram
from gramline.pipeline.corpus.corpus import Corpus

LABELERS: dict[str, Any] = {
    "perceptron": LabelingPerceptron(rounds=4),
    "perceptron to the end": LabelingPerceptron(rounds=3, average=False, early_stop=False),
    "hidden Markov": HiddenMarkovPerceptron(rounds=4, dual=True),
    "pointwise SVM": LabelingSVM(passes=4, tolerance=1e-9),
    "structured SVM": StructuredSVM(passes=4, tolerance=1e-9, average=True),
    "structured SVM, chosen": StructuredSVM("auto", passes=1),
    "random field": KernelCRF(penalty=0.3, iterations=6),
    "random field to the end": KernelCRF(penalty=1.0, tolerance=1e-2),
    "Z-score": KernelZScoreLabeler(),
    "Z-score ridges": KernelZScoreLabeler(ridge=[0.1, 1.0], transition_ridge=1.0),
    "Z-score Nystrom": KernelZScoreLabeler(ridge=0.1, preconditioner="nystrom", width=4),
    "Gaussian process": GaussianProcessLabeler(max_sweeps=4, tolerance=1e-12),
    "Gaussian process scales": GaussianProcessLabeler(max_sweeps=5, learn_scale="per_label", bound="jensen"),
    "Gaussian process of low rank": GaussianProcessLabeler(max_sweeps=3, approximation="nystrom", rank=12),
}
RANKERS: dict[str, Any] = {
    "voting": RankingPerceptron(passes=3),
    "plain": RankingPerceptron(passes=2, vote=False),
    "svm": RankingSVM(tolerance=1e-4, passes=6),
}
KERNEL, TREE_KERNEL = SequenceLabeling(c=0.8, gap=0.25, observation=Identity()), SubsetTree(decay=0.5)
CORPUS = Corpus.from_sequences(*sentences(14, seed=2), labels=["B", "O"])
DRAW = np.random.default_rng(5)
TREES = Corpus.from_parses(
    [["S", *([f"{DRAW.choice(list('ABC'))}", f"{DRAW.choice(list('xyz'))}"] for _ in range(3))] for _ in range(24)]
)
BLOCK_ROWS = 9


class PartGram(ComputedGram):
    """Keeps the tiles of its first blocks, so that these are read and the others computed."""

    def keeps(self, i: int, j: int) -> bool:
        return max(i, j) < 3


def gram_of(which: str, kernel: Any, corpus: Corpus) -> Any:
    packed = kernel.prepare(corpus.packed())
    if which == "tiles":
        return DenseGram.of(kernel, packed, block_rows=BLOCK_ROWS)
    return (ComputedGram if which == "computed" else PartGram)(kernel, packed, block_rows=BLOCK_ROWS)


class Notebook:
    """Takes every state that is offered, and interrupts at the offer of a number."""

    def __init__(self, begun: State | None = None, stop_at: int | None = None) -> None:
        self.begun, self.stop_at = begun, stop_at
        self.states: list[State] = []
        self.last: list[bool] = []

    def restore(self) -> State | None:
        return self.begun

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        assert after
        self.states.append(state())
        self.last.append(is_last)
        if len(self.states) == self.stop_at:
            raise InterruptedError(after)


def bits(learner: Any) -> dict[str, Any]:
    """Everything that was learned, arrays as their bytes."""
    return {
        name: (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
        for name, value in learner.fitted().items()
    }


def check_every_state(learner: Any, gram: Any, labels: Any) -> None:
    undisturbed = bits(learner.fresh().fit(gram, labels))
    notes = Notebook()
    assert bits(learner.fresh().fit(gram, labels, checkpoint=notes)) == undisturbed
    assert len(notes.states) > 2
    assert notes.last == [False] * (len(notes.last) - 1) + [True]
    # The training went on after every one of them, and changed none.
    for number, state in enumerate(notes.states, 1):
        rest = Notebook(state)
        assert bits(learner.fresh().fit(gram, labels, checkpoint=rest)) == undisturbed
        assert len(rest.states) == len(notes.states) - number, "it must not do again what was done"


@pytest.mark.parametrize("which", ["tiles", "computed", "part"])
@pytest.mark.parametrize("name", LABELERS)
def test_a_labeler_goes_on_from_every_state(name: str, which: str) -> None:
    if which == "part" and not LABELERS[name].is_lazy:
        pytest.skip("a product with all tiles does not care which of them are kept")
    check_every_state(LABELERS[name], gram_of(which, KERNEL, CORPUS), CORPUS.labels)


TOGETHER: dict[str, list[Any]] = {
    "perceptrons": [LabelingPerceptron(rounds=n, early_stop=False) for n in (1, 3, 2)],
    "perceptrons that stop early": [LabelingPerceptron(rounds=n, average=n > 2) for n in (2, 5)],
    "structured SVMs": [StructuredSVM(C=0.3, passes=2), StructuredSVM("auto", passes=1), StructuredSVM(passes=3)],
    "random fields": [KernelCRF(penalty=penalty, iterations=4) for penalty in (0.3, 5.0)],
    "Z-scores": [KernelZScoreLabeler(ridge=ridge) for ridge in (0.1, "auto")],
}


@pytest.mark.parametrize("which", ["tiles", "computed"])
@pytest.mark.parametrize("name", TOGETHER)
def test_many_trainings_go_on_together_from_every_state(name: str, which: str) -> None:
    """Settings that stopped rounds ago keep what they had become; folds hide other labels."""
    gram = gram_of(which, KERNEL, CORPUS)
    folds = [[[None] * len(row) if k % 3 == fold else row for k, row in enumerate(CORPUS.labels)] for fold in (0, 1)]
    labels = [fold for fold in folds for _ in TOGETHER[name]]

    def trained(notes: Notebook | None = None) -> tuple[Any, list[Any]]:
        learners = [one.fresh() for _ in folds for one in TOGETHER[name]]
        for one in learners:
            if isinstance(one, KernelZScoreLabeler):
                one.set_params(unlabeled="drop")
        more: dict[str, Any] = {} if notes is None else {"checkpoint": notes}
        return type(learners[0]).fit_many(learners, gram, labels, **more), [bits(one) for one in learners]

    undisturbed, notes = trained(), Notebook()
    assert trained(notes) == undisturbed
    assert len(notes.states) > 2
    for number, state in enumerate(notes.states, 1):
        rest = Notebook(state)
        assert trained(rest) == undisturbed
        assert len(rest.states) == len(notes.states) - number, "it must not do again what was done"


@pytest.mark.parametrize("which", ["tiles", "computed", "part"])
@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_goes_on_from_every_state(name: str, which: str) -> None:
    check_every_state(RANKERS[name], gram_of(which, TREE_KERNEL, TREES), [3] * 8)


@pytest.mark.parametrize("name", LABELERS)
def test_it_is_interrupted_again_and_again(name: str) -> None:
    learner, gram = LABELERS[name], gram_of("tiles", KERNEL, CORPUS)
    undisturbed = bits(learner.fresh().fit(gram, CORPUS.labels))
    state, n_trainings = None, 0
    while True:
        notes = Notebook(state, stop_at=1)
        trained = learner.fresh()
        try:
            trained.fit(gram, CORPUS.labels, checkpoint=notes)
            break
        except InterruptedError:
            (state,) = notes.states
            n_trainings += 1
    assert n_trainings > 2
    assert bits(trained) == undisturbed


def test_learners_say_whether_they_go_on() -> None:
    assert all(learner.resumes for learner in (*LABELERS.values(), *RANKERS.values()))
    assert not HiddenMarkovPerceptron().resumes
    assert not StructuredSVM(dual=False).resumes
    assert not KernelCRF(dual=False).resumes
    assert not GaussianProcessLabeler(learn_kernel=True).resumes


@pytest.mark.parametrize("name", RANKERS)
def test_a_ranker_does_not_choose_its_weight_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learner, gram = RANKERS[name].fresh().set_params(log_probability="auto"), gram_of("tiles", TREE_KERNEL, TREES)
    known = np.random.default_rng(1).normal(size=24)
    notes = Notebook()
    undisturbed = bits(learner.fresh().fit(gram, [3] * 8, log_probabilities=known, checkpoint=notes))
    monkeypatch.setattr(type(learner), "_fit_trials", None)
    for state in notes.states:
        again = learner.fresh().fit(gram, [3] * 8, log_probabilities=known, checkpoint=Notebook(state))
        assert bits(again) == undisturbed
