"""What every learner promises: each of the catalogue as it is by default, and what LEARNERS and RANKERS add."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from tolerances import assert_close

import gramline.learners as public
from gramline.kernels import SequenceLabeling, SubsetTree
from gramline.learners.catalogue import LEARNERS as CATALOGUE
from gramline.learners.catalogue import find_learner, learner_from_state, make_learner
from gramline.learners.errors import LabelError, LearnerError, LearnerParameterError, NotFittedError
from gramline.learners.estimator import Learner
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.kinds import RankingLearner, SharedPassLearner
from gramline.learners.margins.labeling import LabelingSVM
from gramline.learners.margins.ranking import RankingSVM
from gramline.learners.margins.structured import StructuredSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker

DEFAULTS = [
    make_learner(name, {"unlabeled": "drop"} if "unlabeled" in find_learner(name)().get_params() else {})
    for name in CATALOGUE
]
LEARNERS: list[Any] = [
    *(learner for learner in DEFAULTS if not isinstance(learner, RankingLearner)),
    LabelingPerceptron(rounds=4),
    LabelingPerceptron(rounds=4, average=True),
    HiddenMarkovPerceptron(average=True, dual=True, unlabeled="drop"),
    LabelingSVM(C="auto"),
    StructuredSVM(C=2.0, loss="none", average=True),
    StructuredSVM(C="auto"),
    StructuredSVM(C="auto", dual=False),
    KernelCRF(penalty=0.1, decoding="marginals"),
    KernelCRF(penalty="auto"),
    KernelCRF(penalty=0.1, dual=False),
    ZScoreLabeler(unlabeled="drop", constraints="iterative"),
    GaussianProcessLabeler(bound="expected"),
    GaussianProcessLabeler(offsets="GPSL1", decoding="viterbi", learn_scale="shared"),
    GaussianProcessLabeler(approximation="nystrom", rank=8),
]
RANKERS: list[Any] = [
    *(learner for learner in DEFAULTS if isinstance(learner, RankingLearner)),
    RankingPerceptron(passes=2),
    RankingPerceptron(vote=False),
    RankingPerceptron(average=True),
    RankingSVM(C=10.0, tolerance=1e-6),
]
KERNEL, TREE_KERNEL = SequenceLabeling(c=0.7), SubsetTree(decay=0.5)
TRAIN = Corpus.from_sequences(
    [["the", "cat", "sat"], ["a", "dog", "ran", "off"], ["cat", "ran"], ["the", "dog"], ["a", "cat", "sat", "off"]],
    [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V"], ["D", "N"], ["D", "N", "V", None]],
)
NEW = Corpus.from_sequences([["the", "dog", "sat"], ["cat"], ["a", "bird", "ran", "off"]])
TREES = Corpus.from_parses(["(S (A a) (B b))", "(S (B a) (A b))", "(S (A a))", "(S (B a))", "(S (C b))"])
NEW_TREES = Corpus.from_parses(["(S (B b))", "(S (A a) (C b))", "(T (A a))", "(T (B b))"])
GROUPS, NEW_GROUPS = [2, 3], [2, 2]  # candidates of each sentence

every_learner = pytest.mark.parametrize("learner", [*LEARNERS, *RANKERS], ids=repr)
every_labeler = pytest.mark.parametrize("learner", LEARNERS, ids=repr)
every_gram_learner = pytest.mark.parametrize(
    "learner", [*(x for x in LEARNERS if not x.reads_corpus), *RANKERS], ids=repr
)
every_gram_labeler = pytest.mark.parametrize("learner", [x for x in LEARNERS if not x.reads_corpus], ids=repr)
every_ranker = pytest.mark.parametrize("learner", RANKERS, ids=repr)
every_shared = pytest.mark.parametrize(
    "learner", [x for x in LEARNERS if isinstance(x, SharedPassLearner) and not x.reads_corpus], ids=repr
)


def training(learner: Any) -> tuple[Any, ...]:
    """What `fit` takes."""
    if isinstance(learner, RankingLearner):
        return DenseGram.of(TREE_KERNEL, TREES), GROUPS
    return (TRAIN,) if learner.reads_corpus else (DenseGram.of(KERNEL, TRAIN), TRAIN.labels)


def evidence(learner: Any) -> tuple[Any, ...]:
    """What `predict` takes: the Gram between training and new structures, or the new corpus."""
    if isinstance(learner, RankingLearner):
        return DenseGram.of(TREE_KERNEL, TREES, NEW_TREES), NEW_GROUPS
    return (NEW,) if learner.reads_corpus else (DenseGram.of(KERNEL, TRAIN, NEW),)


def fitted(learner: Any) -> Any:
    return learner.fresh().fit(*training(learner))


def test_every_learner_of_the_catalogue_is_public() -> None:
    assert {type(learner).__name__ for learner in DEFAULTS} <= set(public.__all__)


@every_learner
def test_stands_in_the_catalogue_under_its_name(learner: Learner) -> None:
    assert find_learner(learner.name) is type(learner)
    made = make_learner(learner.name, learner.get_params())
    assert made.get_params() == learner.get_params()
    with pytest.raises(LearnerParameterError) as caught:
        make_learner(learner.name, {"colour": 1})
    assert caught.value.key == "colour"


@every_learner
def test_follows_the_rules_of_estimators(learner: Learner) -> None:
    copy = clone(learner)
    assert copy is not learner
    assert copy.get_params() == learner.get_params()
    assert not copy.fitted()
    params = learner.get_params()
    trained = fitted(learner)
    assert isinstance(trained, type(learner))
    assert trained.get_params() == params, "fit must not change parameters"
    assert all(name.endswith("_") for name in vars(trained) if name not in params and not name.startswith("_"))
    assert not clone(trained).fitted()


@every_learner
def test_fit_returns_itself_and_can_be_repeated(learner: Any) -> None:
    trained = fitted(learner)
    again = trained.fit(*training(learner))
    assert again is trained
    assert again.predict(*evidence(learner)) == fitted(learner).predict(*evidence(learner))


@every_learner
def test_refuses_to_predict_before_fit(learner: Any) -> None:
    with pytest.raises(NotFittedError, match="call fit first"):
        learner.fresh().predict(*evidence(learner))


@every_learner
def test_refuses_what_it_cannot_read(learner: Any) -> None:
    """A corpus where a Gram belongs, and the other way round; bare lists and arrays in place of both."""
    strange = DenseGram.of(KERNEL, TRAIN) if learner.reads_corpus else TRAIN
    trained = fitted(learner)
    for given in (strange, [["the", "cat"]], np.eye(3), None):
        for call, others in ((trained.predict, evidence(learner)), (learner.fresh().fit, training(learner))):
            with pytest.raises(
                ValueError, match=r"expected a (corpus|Gram matrix), got|reads a (corpus|Gram matrix), but"
            ):
                call(given, *others[1:])


@every_gram_learner
def test_refuses_labels_that_are_no_lists(learner: Any) -> None:
    with pytest.raises(LabelError, match=r"must .*list.*, got 5"):
        learner.fresh().fit(training(learner)[0], 5)


@every_gram_learner
def test_refuses_a_gram_that_does_not_fit(learner: Any) -> None:
    """One between two corpora to train on, one with other rows than those of the training to predict from."""
    (gram, given), (cross, *groups) = training(learner), evidence(learner)
    shorter = DenseGram(np.zeros((2, cross.shape[1])), [1, 1], cross.layout.cols.lengths)
    rectangular = "a learner trains on a square Gram matrix, but this one is rectangular, {} x {}; build it from"
    for call, others, sentence in (
        (learner.fresh().fit, (cross, given), rectangular.format(*cross.shape)),
        (fitted(learner).predict, (shorter, *groups), f"has 2 rows, but training had {gram.shape[0]}; rows are the"),
    ):
        with pytest.raises(LearnerError, match=sentence):
            call(*others)


@every_gram_labeler
def test_refuses_labels_that_the_gram_does_not_know(learner: Any) -> None:
    gram, labels = training(learner)
    for wrong, place in (
        ([None] * len(labels), (None, None)),
        ([*labels[:2], ["N", "X"], *labels[3:]], (2, 1)),
    ):
        with pytest.raises(LabelError) as caught:
            learner.fresh().fit(gram, wrong)
        assert (caught.value.structure, caught.value.position) == place
    (cross,) = evidence(learner)
    renamed = DenseGram(cross.matrix, gram.layout.rows.lengths, cross.layout.cols.lengths, label_names=list("PVND"))
    with pytest.raises(LearnerError) as caught:
        fitted(learner).predict(renamed)
    assert caught.value.problem == (
        f"the Gram matrix to predict from has the labels P, V, N, D, but training had {', '.join(gram.label_names)}"
    )


@every_labeler
def test_predicts_one_known_label_per_position(learner: Any) -> None:
    trained = fitted(learner)
    predicted = trained.predict(*evidence(learner))
    assert [len(labels) for labels in predicted] == NEW.lengths.tolist()
    assert {label for labels in predicted for label in labels} <= set(TRAIN.label_names)
    scores = trained.decision_scores(*evidence(learner))
    assert scores.shape == (NEW.n_positions, len(TRAIN.label_names))
    assert np.isfinite(scores).all()


@every_learner
def test_the_published_settings_are_allowed_and_not_the_defaults(learner: Any) -> None:
    kind = type(learner)
    published, defaults = kind(**kind.paper_settings()), kind().get_params()
    published.check_parameters()
    for key, value in kind.paper_settings().items():
        assert published.get_params()[key] == value != defaults[key]


@every_labeler
def test_learns_something(learner: Any) -> None:
    trained = fitted(learner)
    own = TRAIN if learner.reads_corpus else DenseGram.of(KERNEL, TRAIN, TRAIN)
    pairs = [
        (right, guess)
        for known, found in zip(TRAIN.labels, trained.predict(own), strict=True)
        for right, guess in zip(known, found, strict=True)
        if right is not None
    ]
    assert sum(right == guess for right, guess in pairs) >= 0.9 * len(pairs)


@every_learner
def test_state_is_json_and_arrays(learner: Any) -> None:
    trained = fitted(learner)
    attributes, arrays = trained.to_state()
    again = learner_from_state(json.loads(json.dumps(attributes)), arrays)
    assert type(again) is type(trained)
    assert again.get_params() == trained.get_params()
    assert all(array.dtype != object for array in arrays.values())
    assert (again.decision_scores(*evidence(learner)) == trained.decision_scores(*evidence(learner))).all()  # type: ignore[attr-defined]


@every_gram_learner
def test_a_stored_gram_gives_the_same_learner(learner: Any, tmp_path: Path) -> None:
    kernel, rows, cols = (KERNEL, TRAIN, NEW) if learner in LEARNERS else (TREE_KERNEL, TREES, NEW_TREES)
    dense = fitted(learner)
    gram = build_gram(kernel, rows, tmp_path / "train.zarr", block_rows=5)
    cross = build_gram(kernel, rows, tmp_path / "cross.zarr", other=cols, block_rows=5)
    stored = learner.fresh().fit(gram, *training(learner)[1:])
    own, groups = evidence(learner)[0], evidence(learner)[1:]
    assert_close(stored.decision_scores(cross, *groups), dense.decision_scores(own, *groups))
    assert stored.predict(cross, *groups) == dense.predict(own, *groups)


@every_shared
def test_many_problems_in_one_pass_equal_separate_fits(learner: Any) -> None:
    gram, labels = DenseGram.of(KERNEL, TRAIN, block_rows=5), TRAIN.labels
    label_sets: list[Any] = [labels, [None, *labels[1:]], labels, [*labels[:3], None, labels[4]]]
    together = [learner.fresh() for _ in label_sets]
    predicted = type(learner).fit_many(together, gram, label_sets)
    for one, own, everything in zip(together, label_sets, predicted, strict=True):
        alone = learner.fresh().fit(gram, own)
        assert everything == alone.predict(gram)
        assert_close(one.decision_scores(gram), alone.decision_scores(gram))
        assert one.traces().keys() == alone.traces().keys()
        for what, trace in alone.traces().items():
            assert len(one.traces()[what]) == len(trace)
            assert_close(one.traces()[what], trace)
    assert learner.pass_columns(4) > 0


@every_labeler
def test_a_model_predicts_without_the_training_corpus(learner: Any, tmp_path: Path) -> None:
    trained = fitted(learner)
    Model.of(trained, TRAIN, KERNEL).save(tmp_path / "model.zarr")
    model = Model.load(tmp_path / "model.zarr")
    assert model.predict(NEW, block_rows=4) == trained.predict(*evidence(learner))
    assert_close(model.decision_scores(NEW, block_rows=4), trained.decision_scores(*evidence(learner)))


@every_ranker
def test_chooses_one_candidate_of_every_group(learner: Any) -> None:
    trained = fitted(learner)
    chosen = trained.predict(*evidence(learner))
    assert all(0 <= candidate < size for candidate, size in zip(chosen, NEW_GROUPS, strict=True))
    assert trained.predict(DenseGram.of(TREE_KERNEL, TREES, TREES), GROUPS) == [0, 0]
    assert trained.decision_scores(*evidence(learner)).shape == (sum(NEW_GROUPS),)


@every_ranker
def test_a_ranker_predicts_without_the_training_corpus(learner: Any, tmp_path: Path) -> None:
    trained = fitted(learner)
    Ranker.of(trained, TREES, TREE_KERNEL).save(tmp_path / "ranker.zarr")
    ranker = Ranker.load(tmp_path / "ranker.zarr")
    assert ranker.choose(NEW_TREES, [[0, 1], [2, 3]]) == trained.predict(*evidence(learner))


def test_every_name_of_the_catalogue_is_a_learner() -> None:
    for name in CATALOGUE:
        found = find_learner(name)
        assert issubclass(found, Learner)
        assert found.name == name
    with pytest.raises(LearnerParameterError) as caught:
        find_learner("labelling-perceptron")
    assert (caught.value.key, caught.value.advice) == ("name", "did you mean 'labeling-perceptron'?")
