from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from labeler_samples import NEW, WHOLE_Y, X, Y, labeler
from tolerances import assert_close

from gramline.kernels.errors import KernelWarning
from gramline.kernels.observations.features import Polynomial
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LearnerError, LearnerParameterError, NotFittedError
from gramline.learners.gaussian_process.labeler import GaussianProcessLabeler
from gramline.learners.kinds import CorpusLearner
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.gram import spread_product, stored
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models import labeler as labeler_module
from gramline.pipeline.models import training_gram as training_gram_module
from gramline.pipeline.models.labeler import KernelLabeler
from gramline.pipeline.models.training_choice import Choice


def test_lists_in_labels_out() -> None:
    fitted = labeler().fit(X, Y)
    assert fitted.predict([["a", "dog", "sat"]]) == [["D", "N", "V"]]
    assert fitted.classes_ == ("N", "D", "V")
    assert fitted.score(X, Y) == 1.0
    scores = fitted.predict_scores(NEW)
    assert [part.shape for part in scores] == [(3, 3), (2, 3)]
    train, new = Corpus.from_sequences(X, Y), Corpus.from_sequences(NEW)
    expected = fitted.learner_.decision_scores(DenseGram.of(SequenceLabeling(c=0.7), train, new))  # type: ignore[attr-defined]
    assert_close(np.concatenate(scores), expected)


def test_tokens_may_be_dictionaries_or_feature_sets() -> None:
    observed = [[{"word": word, "length": float(len(word))} for word in line] for line in X]
    fitted = KernelLabeler(SequenceLabeling(observation=Polynomial(normalized=True)), LabelingPerceptron()).fit(
        observed, Y
    )
    assert fitted.predict(observed[:1]) == Y[:1]


def test_a_corpus_in_place_of_lists() -> None:
    corpus = Corpus.from_sequences(X, Y)
    assert labeler().fit(corpus).predict(NEW) == labeler().fit(X, Y).predict(Corpus.from_sequences(NEW))
    relabeled = labeler().fit(Corpus.from_sequences(X), [["Z"] * len(line) for line in X])
    assert relabeled.predict(NEW) == [["Z"] * 3, ["Z"] * 2]


def test_a_store_gives_the_same_labeler(tmp_path: Path) -> None:
    memory = labeler().fit(X, Y)
    stored = labeler(store=tmp_path / "train.zarr", block_rows=4).fit(X, Y)
    assert (stored.learner_.alpha_ == memory.learner_.alpha_).all()  # type: ignore[attr-defined]
    assert stored.predict(NEW) == memory.predict(NEW)
    assert StoredGram.open(tmp_path / "train.zarr").shape == (14, 14)


def test_a_gram_too_large_for_memory_is_computed_for_a_perceptron_that_is_soon_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = labeler().fit(X, Y)
    monkeypatch.setattr(training_gram_module, "DENSE_LIMIT_BYTES", 100)
    monkeypatch.setattr(training_gram_module, "GramBuild", None)
    computed = labeler().fit(X, Y)
    assert computed.gram_note_.startswith("no tile is stored, values are computed: all of them take about 0.0 s")
    assert memory.gram_note_ == ""
    assert (computed.learner_.alpha_ == memory.learner_.alpha_).all()  # type: ignore[attr-defined]
    assert computed.predict(NEW) == memory.predict(NEW)


@pytest.mark.parametrize(("free", "pays", "n_stores"), [(1 << 40, True, 1), (1 << 40, False, 0), (100, True, 0)])
def test_a_learner_gets_a_temporary_store_where_it_is_cheaper_and_the_disk_has_room(
    monkeypatch: pytest.MonkeyPatch, free: int, pays: bool, n_stores: int
) -> None:
    monkeypatch.setattr(training_gram_module, "DENSE_LIMIT_BYTES", 100)
    monkeypatch.setattr(training_gram_module, "free_bytes", lambda _: free)
    monkeypatch.setattr(training_gram_module, "choose_way", lambda *_: Choice(pays, "it was measured"))
    built: list[Path] = []
    build = training_gram_module.GramBuild

    def watched(kernel: Any, corpus: Any, path: Any, *rest: Any, **more: Any) -> Any:
        built.extend([] if path is None else [Path(path)])  # others are only planned
        return build(kernel, corpus, path, *rest, **more)

    monkeypatch.setattr(training_gram_module, "GramBuild", watched)
    fitted = KernelLabeler(SequenceLabeling(c=0.7), KernelZScoreLabeler(ridge=0.1, unlabeled="drop")).fit(X, Y)
    assert fitted.predict(NEW)[0] == ["D", "N", "V"]
    what = "tiles are stored for this training" if n_stores else "no tile is stored, values are computed"
    why = "it was measured" if free > 100 else "the tiles would take more than 50% of the free disk"
    assert fitted.gram_note_ == f"{what}: {why}"
    del fitted
    assert len(built) == n_stores
    assert not any(path.exists() for path in built)


def test_a_temporary_store_stays_as_long_as_the_labeler_needs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    memory = KernelLabeler(SequenceLabeling(c=0.7), GaussianProcessLabeler()).fit(X, Y)
    monkeypatch.setattr(training_gram_module, "DENSE_LIMIT_BYTES", 100)
    fitted = KernelLabeler(SequenceLabeling(c=0.7), GaussianProcessLabeler()).fit(X, Y)
    assert len(list(tmp_path.glob("gramline-*"))) == 1
    assert_close(np.concatenate(fitted.predict_scores(NEW)), np.concatenate(memory.predict_scores(NEW)))
    fitted.save(tmp_path / "model.zarr")
    del fitted
    assert list(tmp_path.glob("gramline-*")) == []
    again = KernelLabeler.load(tmp_path / "model.zarr")
    assert_close(np.concatenate(again.predict_scores(NEW)), np.concatenate(memory.predict_scores(NEW)))


def test_fit_leaves_the_learner_it_was_given_alone() -> None:
    learner = LabelingPerceptron()
    KernelLabeler(SequenceLabeling(), learner).fit(X, Y)
    assert not learner.fitted()


def test_saved_and_loaded(tmp_path: Path) -> None:
    fitted = labeler().fit(X, Y)
    fitted.save(tmp_path / "model.zarr")
    again = KernelLabeler.load(tmp_path / "model.zarr")
    assert again.predict(NEW) == fitted.predict(NEW)
    assert again.kernel == fitted.kernel
    assert again.learner.get_params() == fitted.learner.get_params()
    assert again.classes_ == fitted.classes_
    assert again.fit(X, Y).score(X, Y) == 1.0


class MostFrequent(CorpusLearner):
    """The most frequent label of every symbol: a learner that reads the corpus itself."""

    name: ClassVar[str] = "most-frequent"

    def __init__(self) -> None:
        pass

    def fit(self, corpus: Any) -> MostFrequent:
        packed = corpus.packed()
        self.label_names_ = packed.vocabulary.labels
        self.counts_ = np.zeros((len(packed.vocabulary.symbols), packed.n_labels))
        labeled = packed.labels >= 0
        np.add.at(self.counts_, (packed.symbols[labeled], packed.labels[labeled]), 1)
        return self

    def predict(self, packed: Any) -> list[list[str]]:
        known = np.vstack([self.counts_, np.zeros((len(packed.vocabulary.symbols) - len(self.counts_), 3))])
        flat = [self.label_names_[code] for code in known[packed.symbols].argmax(axis=1)]
        return [flat[a:b] for a, b in zip(packed.starts[:-1], packed.starts[1:], strict=True)]


def test_a_learner_on_features_needs_no_kernel() -> None:
    fitted = KernelLabeler(None, MostFrequent()).fit(X, Y)
    assert fitted.predict(NEW) == [["D", "N", "V"], ["N", "V"]]  # the unknown bird: the most frequent label
    assert fitted.score(X, Y) == 1.0


def test_refusals_say_what_to_do() -> None:
    refusals: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: labeler().predict(NEW), NotFittedError, "this KernelLabeler is not fitted yet"),
        (lambda: labeler().fit(X), LearnerError, "no position has a label"),
        (
            lambda: labeler().fit(X, Y).predict_proba(NEW),
            LearnerError,
            "LabelingPerceptron cannot tell probabilities; a Gaussian-process labeler can",
        ),
    ]
    for action, kind, said in refusals:
        with pytest.raises(kind, match=said):
            action()
    with pytest.raises(LearnerParameterError) as caught:
        KernelLabeler("sequence", LabelingPerceptron()).fit(X, Y)  # type: ignore[arg-type]
    assert str(caught.value) == "kernel must be a kernel such as sequence-labeling, got 'sequence'"
    with pytest.raises(LearnerParameterError) as caught:
        KernelLabeler(SequenceLabeling(), LabelingPerceptron).fit(X, Y)  # type: ignore[arg-type]
    assert caught.value.key == "learner"
    with pytest.raises(LearnerParameterError) as caught:
        KernelLabeler(SequenceLabeling(), LabelingPerceptron(), block_rows=0).fit(X, Y)
    assert caught.value.key == "block_rows"


def test_probabilities_come_one_array_per_structure() -> None:
    fitted = KernelLabeler(SequenceLabeling(c=0.7), GaussianProcessLabeler()).fit(X, Y)
    found = fitted.predict_proba(NEW)
    assert [part.shape for part in found] == [(3, 3), (2, 3)]
    assert_close(np.concatenate(found), fitted.model_.predict_proba(Corpus.from_sequences(NEW)))
    best = [[fitted.classes_[code] for code in part.argmax(axis=1)] for part in found]
    assert best == fitted.predict(NEW)


def test_a_labeler_that_learned_nothing_says_so() -> None:
    draw = np.random.default_rng(0)
    words = [[f"word{draw.integers(10**6)}" for _ in range(5)] for _ in range(40)]
    y = [["A" if draw.random() < 0.7 else "B" for _ in line] for line in words]
    with pytest.warns(UserWarning, match=r"of the labels of its own training structures are right, and 'A' everywhere"):
        KernelLabeler(learner=AlwaysLast()).fit(words, y)
    KernelLabeler().fit(words, y)  # every word is one of a kind, so the training structures at least are learned


class AlwaysLast(CorpusLearner):
    """Predicts the least frequent label."""

    name: ClassVar[str] = "always-last"

    def __init__(self) -> None:
        pass

    def fit(self, corpus: Any) -> AlwaysLast:
        self.label_names_ = corpus.packed().vocabulary.labels
        return self

    def predict(self, packed: Any) -> list[list[str]]:
        return [[self.label_names_[-1]] * int(length) for length in packed.lengths]

    def decision_scores(self, packed: Any) -> Any:
        return np.zeros((packed.n_positions, len(self.label_names_)))


def test_no_structures_have_no_labels() -> None:
    for fitted in (labeler().fit(X, Y), KernelLabeler().fit(X, WHOLE_Y)):
        assert fitted.predict([]) == []
        assert fitted.predict_scores([]) == []
        assert fitted.predict(iter(X[:1])) == Y[:1]
    assert KernelLabeler(SequenceLabeling(c=0.7), GaussianProcessLabeler()).fit(X, Y).predict_proba([]) == []


def test_a_kernel_that_compares_feature_sets_as_a_whole_is_warned_about() -> None:
    observed = [[{"word": word, "place": f"{row}.{k}"} for k, word in enumerate(line)] for row, line in enumerate(X)]
    with pytest.warns(KernelWarning, match="identity compares feature sets as a whole") as caught:
        KernelLabeler(SequenceLabeling(), LabelingPerceptron()).fit(observed, Y)
    assert caught[0].filename == __file__
    KernelLabeler().fit(observed, WHOLE_Y)


@pytest.mark.parametrize(
    "learner", [LabelingPerceptron(rounds=2), KernelZScoreLabeler(ridge=0.1)], ids=["computed", "stored"]
)
def test_the_workers_of_a_client_learn_and_predict(
    learner: Any, dask_client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(training_gram_module, "DENSE_LIMIT_BYTES", 0)
    pays = isinstance(learner, KernelZScoreLabeler)
    monkeypatch.setattr(training_gram_module, "choose_way", lambda *_: Choice(pays, "it was measured"))
    monkeypatch.setattr(stored, "SPREAD_ROWS", 0)
    monkeypatch.setattr(spread_product, "SPREAD_BYTES", 0)
    monkeypatch.setattr(labeler_module, "SPREAD_VALUES", 0)
    corpus = generate_saleslog(12, seed=1)
    kernel = SequenceLabeling(reach=1.0)
    alone = KernelLabeler(kernel, learner, block_rows=64).fit(corpus)
    n_before = dask_client.run_on_scheduler(n_computed)
    shared = KernelLabeler(kernel, learner, block_rows=64, client=dask_client).fit(corpus)
    n_fitted = dask_client.run_on_scheduler(n_computed)
    assert n_fitted > n_before
    np.testing.assert_allclose(shared.predict_scores(corpus)[0], alone.predict_scores(corpus)[0], rtol=1e-6)
    assert dask_client.run_on_scheduler(n_computed) > n_fitted
    assert shared.predict(corpus) == alone.predict(corpus)
    assert shared.score(corpus) == alone.score(corpus)
    in_store = KernelLabeler(kernel, learner, block_rows=64, client=dask_client, store=tmp_path / "a.zarr").fit(corpus)
    assert in_store.predict(corpus) == alone.predict(corpus)


def n_computed(dask_scheduler: Any) -> int:
    return sum(group.state_counts["memory"] for group in dask_scheduler.task_prefixes.values())
