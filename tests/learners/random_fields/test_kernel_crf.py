from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import random_fields as oracle
from scipy.optimize import minimize
from tolerances import assert_close

from gramline.kernels import Polynomial, PositionKernel, SequenceLabeling
from gramline.learners.errors import LearnerError, LearnerParameterError
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.pipeline.corpus.corpus import Corpus

NAMES = ("a", "b", "c")


class Problem:
    """Random chains with explicit features."""

    def __init__(self, seed: int, lengths: tuple[int, ...] = (4, 1, 3, 5, 2), n_features: int = 4) -> None:
        draw = np.random.default_rng(seed)
        self.lengths = np.array(lengths)
        self.features = draw.integers(0, 3, size=(sum(lengths), n_features)).astype(float)
        self.codes = draw.integers(3, size=sum(lengths))
        self.codes[:3] = [0, 1, 2]

    @property
    def labels(self) -> list[list[str | None]]:
        flat = [None if code < 0 else NAMES[code] for code in self.codes]
        ends = np.cumsum(self.lengths)
        return [flat[end - size : end] for end, size in zip(ends, self.lengths, strict=True)]

    def gram(self, block_rows: int | None = None) -> DenseGram:
        F = self.features
        return DenseGram(F @ F.T, self.lengths, label_names=NAMES, block_rows=block_rows)

    @property
    def corpus(self) -> Corpus:
        X = [{f"f{k}": value for k, value in enumerate(row)} for row in self.features]
        ends = np.cumsum(self.lengths)
        return Corpus.from_sequences(
            [X[end - size : end] for end, size in zip(ends, self.lengths, strict=True)], self.labels, labels=NAMES
        )

    def weights(self, model: KernelCRF) -> Any:
        emission = self.features.T @ model.dual_ if model.dual else self.emission(model)
        return np.concatenate([emission.ravel(), model.transition_.ravel()])

    def emission(self, model: KernelCRF) -> Any:
        columns = [model.feature_names_.index(f"f{k}") for k in range(self.features.shape[1])]
        return model.emission_[:, columns].T

    def objective(self, weights: Any, penalty: float) -> float:
        """|w|^2 / 2 + C sum log Z - log Zc, every path written down."""
        width = 3 * self.features.shape[1]
        scores, transition = self.features @ weights[:width].reshape(-1, 3), weights[width:].reshape(3, 3)
        total = weights @ weights / 2
        starts = np.concatenate([[0], np.cumsum(self.lengths)])
        for first, last in pairwise(starts):
            own = slice(first, last)
            free = oracle.marginals(scores[own], transition)[2]
            total += (free - oracle.marginals(scores[own], transition, self.codes[own])[2]) / (2 * penalty)
        return total


@pytest.mark.parametrize("penalty", [0.1, 1.0])
@pytest.mark.parametrize("has_missing", [False, True])
def test_reaches_a_minimum_of_the_definition(penalty: float, has_missing: bool) -> None:
    problem = Problem(0, (3, 1, 3, 2), 2)
    if has_missing:
        problem.codes[[4, 6]] = -1
    model = KernelCRF(penalty, tolerance=1e-11).fit(problem.gram(), problem.labels)
    weights = problem.weights(model)
    value = problem.objective(weights, penalty)
    assert_close(model.objective_, value)
    better = minimize(problem.objective, weights, args=(penalty,), options={"gtol": 1e-7})
    assert value - better.fun < 1e-8 * value
    assert model.notes() == []


def test_the_gap_bounds_the_distance_to_the_minimum() -> None:
    problem = Problem(1)
    least = KernelCRF(0.3, tolerance=1e-12).fit(problem.gram(), problem.labels).objective_
    for iterations in range(1, 10):
        model = KernelCRF(0.3, iterations=iterations, tolerance=1e-12).fit(problem.gram(), problem.labels)
        assert model.objective_ - least <= model.gap_ + 1e-12
        assert len(model.objective_trace_) == iterations + 1
        assert (np.diff(model.objective_trace_) < 0).all()
        (note,) = model.notes()
        assert note.startswith(f"after {iterations} iterations the objective may be {model.gap_:.3g} above its minimum")
        assert note.endswith("give more iterations, a larger penalty or a larger tolerance")


class Crfsuite:
    """python-crfsuite with c1 = 0, c2 = penalty and all possible features, trained to its end."""

    def __init__(self, problem: Problem, penalty: float, folder: Path) -> None:
        crfsuite = pytest.importorskip("pycrfsuite")
        trainer = crfsuite.Trainer(verbose=False)
        trainer.select("lbfgs")
        trainer.set_params(
            {
                "c1": 0.0,
                "c2": penalty,
                "feature.possible_states": True,
                "feature.possible_transitions": True,
                "epsilon": 1e-12,
                "delta": 1e-14,
                "period": 50,
                "max_iterations": 5000,
            }
        )
        rows = [{f"f{k}": float(value) for k, value in enumerate(row)} for row in problem.features]
        ends = np.cumsum(problem.lengths)
        self.sentences = [rows[end - size : end] for end, size in zip(ends, problem.lengths, strict=True)]
        for sentence, labels in zip(self.sentences, problem.labels, strict=True):
            trainer.append(crfsuite.ItemSequence(sentence), labels)
        trainer.train(str(folder / "crf"))
        tagger = crfsuite.Tagger()
        tagger.open(str(folder / "crf"))
        info = tagger.info()
        emission, transition = np.zeros((problem.features.shape[1], 3)), np.zeros((3, 3))
        for (name, label), weight in info.state_features.items():
            emission[int(name[1:]), NAMES.index(label)] = weight
        for (previous, label), weight in info.transitions.items():
            transition[NAMES.index(previous), NAMES.index(label)] = weight
        self.weights = np.concatenate([emission.ravel(), transition.ravel()])
        self.marginals = []
        for sentence in self.sentences:
            tagger.set(crfsuite.ItemSequence(sentence))
            self.marginals += [[tagger.marginal(label, k) for label in NAMES] for k in range(len(sentence))]


@pytest.mark.parametrize("penalty", [0.05, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(2))
def test_equals_crfsuite_on_features_and_on_their_linear_kernel(penalty: float, seed: int, tmp_path: Path) -> None:
    problem = Problem(seed)
    theirs = Crfsuite(problem, penalty, tmp_path)
    value = problem.objective(theirs.weights, penalty)
    for model, evidence in (
        (KernelCRF(penalty, tolerance=1e-12, iterations=1000).fit(problem.gram(), problem.labels), problem.gram()),
        (KernelCRF(penalty, tolerance=1e-12, iterations=1000, dual=False).fit(problem.corpus), problem.corpus),
    ):
        assert abs(model.objective_ - value) < 1e-6 * value
        np.testing.assert_allclose(model.predict_proba(evidence), theirs.marginals, atol=1e-6)
        np.testing.assert_allclose(problem.weights(model), theirs.weights, atol=1e-4)


@pytest.mark.parametrize(
    "setting", [{}, {"penalty": 0.05, "transition_weight": 3.0}, {"decoding": "marginals"}], ids=str
)
@pytest.mark.parametrize("has_missing", [False, True])
def test_features_give_the_same_as_their_linear_kernel(setting: dict[str, Any], has_missing: bool) -> None:
    problem = Problem(6)
    if has_missing:
        problem.codes[[4, 5, 7]] = -1  # one structure without any label, one without some
    dual = KernelCRF(tolerance=1e-9, **setting).fit(problem.gram(), problem.labels)
    primal = KernelCRF(tolerance=1e-9, dual=False, **setting).fit(problem.corpus)
    assert_close(primal.objective_trace_, dual.objective_trace_)
    assert_close(primal.transition_, dual.transition_)
    assert_close(problem.weights(primal), problem.weights(dual))
    assert_close(primal.predict_proba(problem.corpus), dual.predict_proba(problem.gram()))
    assert primal.predict(problem.corpus) == dual.predict(problem.gram())
    assert primal.gap_ <= 1e-9 * primal.objective_
    value = problem.objective(problem.weights(primal), primal.penalty) if not setting else primal.objective_
    assert_close(primal.objective_, value)


def test_missing_labels_of_features_are_summed_over_and_help() -> None:
    """What is known of one end of a chain says something of the other, which has no label in training."""
    words = Corpus.from_sequences([["u", "v"], ["v", "u"], ["u", "w"]] * 4, [["a", "b"], ["b", "a"], ["a", None]] * 4)
    model = KernelCRF(penalty=0.1, dual=False).fit(words)
    known = KernelCRF(penalty=0.1, dual=False).fit(words.select([0, 1] * 4))
    new = Corpus.from_sequences([["w"]])
    assert model.predict(new) == [["b"]]
    code = model.label_names_.index("b")
    assert model.predict_proba(new)[0, code] > known.predict_proba(new)[0, code]


def test_refuses_the_other_form() -> None:
    problem = Problem(0)
    with pytest.raises(LearnerError, match="the primal conditional random field reads a corpus, but was given a Gram"):
        KernelCRF(dual=False).fit(problem.gram(), problem.labels)
    with pytest.raises(LearnerError, match="the dual conditional random field reads a Gram matrix, but was given a c"):
        KernelCRF().fit(problem.corpus)
    with pytest.raises(LearnerError, match="no position has a label"):
        KernelCRF(dual=False).fit(problem.corpus.without_labels())
    with pytest.raises(LearnerError, match="the primal conditional random field reads a corpus, but was given a Gram"):
        KernelCRF(dual=False).fit(problem.corpus).predict_proba(problem.gram())


@pytest.mark.parametrize("block_rows", [5, 7])
def test_every_block_size_gives_the_same(block_rows: int) -> None:
    problem = Problem(2)
    one, other = (KernelCRF(0.5).fit(problem.gram(size), problem.labels) for size in (None, block_rows))
    assert_close(other.objective_trace_, one.objective_trace_)
    assert_close(other.decision_scores(problem.gram()), one.decision_scores(problem.gram()))


@pytest.mark.parametrize(
    "kernel", [SequenceLabeling(c=0.7), PositionKernel(Polynomial(2))], ids=["sequence", "position"]
)
def test_computed_values_give_the_same_as_tiles(kernel: Any) -> None:
    corpus = Corpus.from_sequences(
        [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["cat", "ran"], ["the", "dog"]],
        [["D", "N", "V"], ["D", "N", "V", "P"], ["N", None], None],
        labels=["D", "N", "P", "V"],
    ).with_features("spelling")
    dense = DenseGram.of(kernel, corpus)
    computed = ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=6)
    one, other = (KernelCRF(0.1, tolerance=1e-9).fit(gram, corpus.labels) for gram in (dense, computed))
    assert_close(other.objective_, one.objective_)
    np.testing.assert_allclose(other.predict_proba(computed), one.predict_proba(dense), atol=1e-6)
    assert other.predict(computed) == one.predict(dense)
    assert not one.dual_[-2:].any(), "a structure without labels is left out"
    assert one.dual_[-3].any(), "a missing label is summed over"


def test_transitions_can_weigh_more() -> None:
    """Scaling the Gram by s is the same as C times s and rho divided by s (math 9)."""
    problem, s = Problem(4), 3.0
    gram = problem.gram()
    scaled = DenseGram(s * gram.matrix, problem.lengths, label_names=NAMES)
    one = KernelCRF(0.6, tolerance=1e-12, transition_weight=0.5).fit(scaled, problem.labels)
    other = KernelCRF(0.6 / s, tolerance=1e-12, transition_weight=0.5 / s).fit(gram, problem.labels)
    np.testing.assert_allclose(one.predict_proba(scaled), other.predict_proba(gram), atol=1e-5)


def test_decodes_by_path_or_by_position() -> None:
    problem = Problem(5)
    model = KernelCRF(0.5).fit(problem.gram(), problem.labels)
    probable = model.predict_proba(problem.gram())
    assert_close(probable.sum(axis=1), np.ones(len(probable)))
    model.set_params(decoding="marginals")
    flat = [label for path in model.predict(problem.gram()) for label in path]
    assert flat == [NAMES[code] for code in probable.argmax(axis=1)]


def test_marginals_can_be_kept_valid() -> None:
    corpus = Corpus.from_sequences([["u", "v", "w"]] * 2, [["B-x", "I-x", "O"], ["O", "B-x", "I-x"]])
    gram = DenseGram.of(SequenceLabeling(), corpus)
    model = KernelCRF(decoding="marginals", constraints="iob2").fit(gram, corpus.labels)
    for path in model.predict(gram):
        assert all(before != "O" for before, label in zip(["O", *path], path, strict=False) if label == "I-x")


@pytest.mark.parametrize(
    ("setting", "key"),
    [({"penalty": 0}, "penalty"), ({"tolerance": 1e-14}, "tolerance"), ({"decoding": "x"}, "decoding")],
)
def test_refuses_what_it_cannot_use(setting: dict[str, Any], key: str) -> None:
    problem = Problem(0)
    with pytest.raises(LearnerParameterError) as caught:
        KernelCRF(**setting).fit(problem.gram(), problem.labels)
    assert caught.value.key == key


def test_names_the_structure_where_no_kernel_made_the_gram() -> None:
    with pytest.raises(LearnerError, match="not positive semidefinite") as caught:
        KernelCRF().fit(DenseGram(np.diag([1.0, 1.0, -1.0]), [2, 1]), [["a", "b"], ["a"]])
    assert (caught.value.structure, caught.value.position) == (1, 0)
    apart = np.array([[0.1, 3.0], [3.0, 0.1]])
    with pytest.raises(LearnerError, match="negative squared length") as caught:
        KernelCRF().fit(DenseGram(apart, [1, 1]), [["a"], ["b"]])
    assert caught.value.structure is not None
