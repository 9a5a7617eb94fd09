"""Cross-validation: equal to fits on the training part alone, no leakage, paired comparisons, refusals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ttest_rel

from gramline.kernels import EmpiricalPrior, SequenceLabeling
from gramline.learners.errors import LabelError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.kinds import CorpusLearner
from gramline.learners.metrics import evaluate
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds, k_fold
from gramline.pipeline.crossval.training import hide
from gramline.pipeline.crossval.validate import CrossValidation, cross_validate, grid
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.store import TileStore

KERNEL = SequenceLabeling(c=0.7)
WORDS, LABELS = list("stuvw"), ["A", "B", "O"]


def corpus(seed: int = 0, n: int = 12) -> Corpus:
    rng = np.random.default_rng(seed)
    X = [list(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(n)]
    y = [[LABELS[(WORDS.index(word) + rng.integers(0, 2)) % 3] for word in sequence] for sequence in X]
    return Corpus.from_sequences(X, y, labels=LABELS)


@pytest.fixture(scope="module")
def data() -> tuple[Corpus, DenseGram]:
    found = corpus()
    return found, DenseGram.of(KERNEL, found, block_rows=8)


@pytest.fixture(scope="module")
def result(data: tuple[Corpus, DenseGram]) -> CrossValidation:
    settings = grid({"rounds": [1, 5], "average": [False, True]})
    return cross_validate(LabelingPerceptron(), data[1], data[0].labels, 3, settings, seed=4)


def test_every_fold_equals_a_fit_on_its_training_part_alone(
    data: tuple[Corpus, DenseGram], result: CrossValidation
) -> None:
    for number, setting in enumerate(result.settings):
        for fold, held in enumerate(result.folds.held_out):
            train, test = data[0].select(result.folds.training(fold)), data[0].select(held)
            learner = LabelingPerceptron(**setting).fit(DenseGram.of(KERNEL, train), train.labels)
            expected = learner.predict(DenseGram.of(KERNEL, train, test))
            assert result.predictions[number][fold] == expected
            accuracy = evaluate(test.labels, expected).accuracy
            assert result.table("accuracy")[number, fold] == accuracy


def test_held_out_labels_change_nothing_but_the_scores(data: tuple[Corpus, DenseGram], result: CrossValidation) -> None:
    held = result.folds.held_out[0]
    labels = [list(structure) for structure in data[0].labels]
    for k in held:
        labels[k] = ["O"] * len(labels[k])
    changed = cross_validate(LabelingPerceptron(rounds=5, average=False), data[1], labels, [held.tolist()])
    assert changed.predictions[0][0] == result.predictions[2][0]


def test_summary_and_best_come_from_the_table(result: CrossValidation) -> None:
    table = result.table("f1")
    summary = result.summary()
    assert [row["f1"]["mean"] for row in summary] == pytest.approx(table.mean(axis=1).tolist())
    assert [row["f1"]["deviation"] for row in summary] == pytest.approx(table.std(axis=1, ddof=1).tolist())
    assert result.best("f1") == int(table.mean(axis=1).argmax())
    assert result.table("hamming_loss") == pytest.approx(1 - result.table("accuracy"))


def test_paired_comparison_is_the_paired_t_test(result: CrossValidation) -> None:
    table = result.table("accuracy")
    ours, theirs = result.compare(0, 3), ttest_rel(table[0], table[3])
    assert (ours.t, ours.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert result.compare(1, 1).p == 1.0


class Majority(CorpusLearner):
    """A learner on explicit features: always the most frequent training label."""

    name = "majority"

    def __init__(self) -> None:
        pass

    def fit(self, corpus: Any) -> Majority:
        flat = [label for structure in corpus.labels for label in structure]
        self.label_ = max(sorted(set(flat)), key=flat.count)
        return self

    def predict(self, corpus: Any) -> list[list[str]]:
        assert all(label is None for structure in corpus.labels for label in structure)
        return [[self.label_] * length for length in corpus.lengths.tolist()]


def test_learners_on_features_train_on_the_structures_of_the_fold(data: tuple[Corpus, DenseGram]) -> None:
    found = cross_validate(Majority(), data[0], data[0].labels, 3)
    for fold in range(3):
        flat = [label for k in found.folds.training(fold) for label in data[0].labels[k]]
        assert {label for rows in found.predictions[0][fold] for label in rows} == {
            max(sorted(set(flat)), key=flat.count)
        }


def test_an_empirical_prior_is_refused(data: tuple[Corpus, DenseGram]) -> None:
    gram = DenseGram.of(SequenceLabeling(prior=EmpiricalPrior()), data[0])
    with pytest.raises(InputError, match="would leak"):
        cross_validate(LabelingPerceptron(), gram, data[0].labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"folds": 13}, "12 structures can be cut into 2 to 12 folds"),
        ({"folds": k_fold(6, 2)}, "folds over 6"),
        ({"folds": Folds(12, (np.arange(11),)), "hide": 11}, "fold 0 has no label to train on"),
        ({"folds": Folds(12, (np.array([3]),)), "hide": 3}, "fold 0 has no label to test on"),
        ({"settings": []}, "settings is empty"),
        ({"settings": [{"round": 3}]}, "no parameter 'round'"),
        ({"settings": {"rounds": 3}}, "settings of rounds must be a list of values to try, got 3"),
        ({"folds": [[0, 1], [2, 3, 2]]}, "fold 1 holds out structure 2 twice"),
        ({"folds": [[0.9], [1.2]]}, "fold 0 must be a list of structure numbers"),
        ({"settings": {"rounds": {1: "few", 9: "many"}}}, "settings of rounds must be a list of values to try, got {"),
        ({"folds": {0: [1, 2], 1: [3]}}, "folds must be a number, Folds or lists"),
        ({"folds": "x"}, "folds must be a number, Folds or lists"),
        ({"folds": None}, "folds must be a number, Folds or lists"),
    ],
)
def test_what_makes_no_sense_is_refused(
    data: tuple[Corpus, DenseGram], arguments: dict[str, Any], message: str
) -> None:
    labels = [list(structure) for structure in data[0].labels]
    hidden = arguments.pop("hide", None)
    if hidden is not None:
        labels[hidden] = [None] * len(labels[hidden])
    with pytest.raises(ValueError, match=message):
        cross_validate(LabelingPerceptron(), data[1], labels, **arguments)


def test_a_structure_without_any_label_may_be_none(data: tuple[Corpus, DenseGram]) -> None:
    labels: list[Any] = [list(structure) for structure in data[0].labels]
    labels[3] = [None] * len(labels[3])
    expected = cross_validate(LabelingPerceptron(), data[1], labels, folds=3).predictions
    labels[3] = None
    assert cross_validate(LabelingPerceptron(), data[1], labels, folds=np.int64(3)).predictions == expected


def test_forty_problems_read_the_tiles_of_the_hungriest_fit_and_the_union_of_changes(tmp_path: Path) -> None:
    from gramline.pipeline.gram.build import build_gram
    from gramline.pipeline.gram.stored import StoredGram

    class Watched(StoredGram):
        """Remembers in which round which block was told of which changes."""

        def __init__(self, store: TileStore) -> None:
            super().__init__(store)
            self.asked: set[tuple[int, int, int]] = set()  # round, block that is visited, block that changed
            self.round = 0

        def tile(self, i: int, j: int) -> NDArray[Any]:
            self.round += i == j == 0
            return super().tile(i, j)

        def column_blocks(self, j: int, rows: Sequence[int] | None = None) -> Iterator[tuple[int, NDArray[Any]]]:
            assert rows is not None
            self.asked |= {(self.round, j, row) for row in rows}
            return super().column_blocks(j, rows)

    found = corpus(3, 30)
    store = build_gram(KERNEL, found, tmp_path / "g.zarr", block_rows=12).store
    settings = [{"rounds": rounds} for rounds in range(1, 9)]
    together = Watched(store)
    result = cross_validate(LabelingPerceptron(), together, found.labels, 5, settings, seed=1)
    assert len(result.results) == 40
    asked: set[tuple[int, int, int]] = set()
    rounds = 0
    for fold in range(5):
        alone = Watched(store)
        held = set(result.folds.held_out[fold].tolist())
        labels = [None if k in held else row for k, row in enumerate(found.labels)]
        learner = LabelingPerceptron(rounds=8).fit(alone, labels)
        asked |= alone.asked
        rounds = max(rounds, learner.rounds_run_)
    n = store.layout.rows.n_blocks
    assert n > 4
    assert together.tile_reads == rounds * n + len(asked) + n * (n + 1) // 2
    assert len(asked) <= rounds * n * (n - 1)


def test_held_out_labels_changed_at_random_change_no_training_weight(data: tuple[Corpus, DenseGram]) -> None:
    rng = np.random.default_rng(8)
    folds = k_fold(12, 3, seed=2)
    fitted: list[list[Any]] = []
    for shuffle in (False, True):
        found = []
        for fold in range(3):
            labels = [list(row) for row in data[0].labels]
            for k in folds.held_out[fold] if shuffle else ():
                labels[k] = [str(label) for label in rng.choice(LABELS, len(labels[k]))]
            masked = hide(labels, folds.hidden(fold))
            learners: list[Any] = [LabelingPerceptron(rounds=3), KernelZScoreLabeler(ridge=0.2, unlabeled="drop")]
            found += [learner.fit(data[1], masked) for learner in learners]
        fitted.append(found)
    for before, after in zip(*fitted, strict=True):
        for name in before.row_arrays:
            assert np.array_equal(getattr(before, name), getattr(after, name))


def test_learners_that_know_probabilities_tell_how_sure_they_are(data: tuple[Corpus, DenseGram]) -> None:
    result = cross_validate(GaussianProcessLabeler(max_sweeps=5), data[1], data[0].labels, 3, seed=4)
    for fold, held in enumerate(result.folds.held_out):
        outcome = result.outcomes[0][fold]
        alone = GaussianProcessLabeler(max_sweeps=5).fit(data[1], hide(data[0].labels, held))
        everything = alone.predict_proba(data[1])
        starts = data[1].layout.rows.structure_starts
        assert outcome.confidence is not None
        for place, k in enumerate(held):
            assert outcome.predicted[place] == alone.predict(data[1])[k]
            expected = everything[starts[k] : starts[k] + len(outcome.predicted[place])].max(axis=1)
            assert outcome.confidence[place] == pytest.approx(expected.tolist())
        assert outcome.traces["bound"] == pytest.approx(alone.elbo_trace_)


def test_a_learner_given_the_wrong_source_or_labels_is_refused(data: tuple[Corpus, DenseGram]) -> None:
    labels = data[0].labels
    refusals: list[tuple[Any, Any, Any, type[Exception], str]] = [
        (LabelingPerceptron(), data[0], labels, InputError, "learns from a Gram matrix, but was given a Corpus"),
        (Majority(), data[1], labels, InputError, "learns from a corpus"),
        (LabelingPerceptron(), data[1], labels[1:], LabelError, "12 structures, but labels for 11"),
        (LabelingPerceptron(), data[1], None, LabelError, "labels must be one list of strings per structure, got None"),
        ("perceptron", data[1], labels, InputError, "expected a learner such as"),
    ]
    for learner, source, given, kind, said in refusals:
        with pytest.raises(kind, match=said):
            cross_validate(learner, source, given)
