from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged import resealed
from tolerances import assert_close

from gramline.kernels.base import Kernel
from gramline.kernels.observations.features import Polynomial
from gramline.kernels.packing import Packed
from gramline.kernels.priors import EmpiricalPrior, TabulatedPrior
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LearnerError, NotFittedError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError, StoreDamagedError, StoreError, StoreTakenError
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.models.model import Model

WORDS = ["up", "down", "left", "right", "on", "off"]


def sentences(seed: int, count: int, *, labeled: bool = True, prior: bool = False, unseen: bool = False) -> Corpus:
    """Random words; the label hangs on the word and the one before it, so that some positions are never mistaken."""
    draw = np.random.default_rng(seed)
    words = [*WORDS, "new"] if unseen else WORDS
    X = [[str(word) for word in draw.choice(words, size=draw.integers(1, 6))] for _ in range(count)]
    y = [
        ["O" if word in ("up", "down") else ("A" if k and line[k - 1] == "up" else "B") for k, word in enumerate(line)]
        for line in X
    ]
    table = [draw.dirichlet(np.ones(3), size=len(line)) for line in X]
    return Corpus.from_sequences(
        X, y if labeled else None, prior=table if prior else None, labels=["A", "B", "O"] if prior or labeled else None
    )


KERNELS = [
    SequenceLabeling(c=0.8),
    SequenceLabeling(c=0.5, gap=0.5, observation=Polynomial(degree=2)),
    SequenceLabeling(c=0.8, prior=EmpiricalPrior(smoothing=0.5)),
    SequenceLabeling(c=0.8, prior=TabulatedPrior()),
    SequenceLabeling(c=0.8, label_kernel=((1.0, 0.3, 0.0), (0.3, 1.0, 0.0), (0.0, 0.0, 1.0))),
]


def trained(kernel: Kernel, corpus: Corpus, **params: Any) -> LabelingPerceptron:
    return LabelingPerceptron(**{"rounds": 5, **params}).fit(DenseGram.of(kernel, corpus), corpus.labels)


@pytest.mark.parametrize("kernel", KERNELS, ids=["plain", "gap", "empirical", "tabulated", "label-kernel"])
@pytest.mark.parametrize("average", [False, True], ids=["last", "average"])
def test_a_saved_model_predicts_like_the_learner(kernel: Any, average: bool, tmp_path: Path) -> None:
    has_table = isinstance(kernel.prior, TabulatedPrior)
    train = sentences(1, 12, prior=has_table)
    new = sentences(2, 9, labeled=False, prior=has_table, unseen=True)
    learner = trained(kernel, train, average=average)
    Model.of(learner, train, kernel).save(tmp_path / "model.zarr")
    model = Model.load(tmp_path / "model.zarr")
    assert model.kernel == kernel
    assert model.label_names == ("A", "B", "O")
    assert 0 < len(model.support) < len(train), "only structures with weight are kept"
    cross = DenseGram.of(kernel, train, new)
    for block_rows in (5, 8, None):
        assert_close(model.decision_scores(new, block_rows=block_rows), learner.decision_scores(cross))
        assert model.predict(new, block_rows=block_rows) == learner.predict(cross)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[2]], ids=["plain", "empirical"])
def test_a_store_has_all_that_a_model_needs(kernel: Any, tmp_path: Path) -> None:
    train, new = sentences(1, 12), sentences(2, 9, labeled=False, unseen=True)
    gram = build_gram(kernel, train, tmp_path / "gram.zarr", block_rows=9)
    learner = LabelingPerceptron(rounds=5).fit(gram, gram.labels)
    model = Model.of(learner, gram.row_corpus, gram.kernel)
    assert model.predict(new) == trained(kernel, train).predict(DenseGram.of(kernel, train, new))
    assert_close(model.decision_scores(new), learner.decision_scores(DenseGram.of(kernel, train, new)))


def test_prediction_holds_one_tile_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    train, new = sentences(1, 12), sentences(2, 9, labeled=False)
    model = Model.of(trained(KERNELS[0], train), train, KERNELS[0])
    shapes: list[tuple[int, int]] = []
    compute = SequenceLabeling.tile

    def watched(self: SequenceLabeling, rows: Packed, cols: Packed, *rest: Any) -> Any:
        shapes.append((rows.n_positions, cols.n_positions))
        return compute(self, rows, cols, *rest)

    monkeypatch.setattr(SequenceLabeling, "tile", watched)
    model.predict(new, block_rows=6)
    assert max(max(shape) for shape in shapes) <= 6
    assert sum(rows * cols for rows, cols in shapes) <= model.support.n_positions * new.n_positions


def test_a_model_from_packed_corpora_and_without_mistakes() -> None:
    corpus = Corpus.from_sequences([["a", "b"]], [["x", "x"]])
    learner = trained(KERNELS[0], corpus)
    model = Model.of(learner, corpus.packed(), KERNELS[0])
    assert learner.mistakes_ == [0]
    assert len(model.support) == 0
    new = Corpus.from_sequences([["b"], ["c", "a"]]).packed(like=model.support)
    assert model.predict(new) == [["x"], ["x", "x"]]
    assert not model.decision_scores(new).any()


def test_the_description_is_small_and_json() -> None:
    train = sentences(1, 12)
    told = json.loads(json.dumps(Model.of(trained(KERNELS[1], train), train, KERNELS[1]).describe()))
    assert told["learner"] == "labeling-perceptron"
    assert told["params"]["rounds"] == 5
    assert told["kernel"]["gap"] == 0.5
    assert told["labels"] == ["A", "B", "O"]
    assert told["kind"] == "sequences"


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    train = sentences(1, 12)
    kernel = KERNELS[0]
    learner = trained(kernel, train)
    model = Model.of(learner, train, kernel)
    trees = Corpus.from_trees([["a", "b"]], [[[1], []]])
    strange = Corpus.from_sequences([["zebra"]]).packed()
    place, notes = tmp_path / "model.zarr", tmp_path / "notes.zarr"
    model.save(place)
    notes.mkdir()
    (notes / "notes.txt").write_text("hello")
    refusals: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: Model.of(LabelingPerceptron(), train, kernel), NotFittedError, "call fit first"),
        (lambda: Model.of(learner, train), LearnerError, "needs the kernel"),
        (
            lambda: Model.of(learner, train.select(range(3)), kernel),
            LearnerError,
            "give the corpus that its Gram matrix was built from",
        ),
        (lambda: model.predict(trees), InputError, "the model is for sequences, but the corpus holds trees"),
        (lambda: model.predict(strange), InputError, "other symbols than the model"),
        (lambda: model.predict_proba(train), LearnerError, "LabelingPerceptron cannot tell probabilities"),
        (lambda: model.save(place), StoreTakenError, "exists already"),
        (
            lambda: model.save(notes, overwrite=True),
            StoreError,
            "is not a model but a folder of something else",
        ),
        (lambda: Model.load(tmp_path / "nothing.zarr"), StoreError, "does not exist"),
    ]
    for action, kind, said in refusals:
        with pytest.raises(kind, match=said):
            action()
    assert (notes / "notes.txt").read_text() == "hello"
    model.save(place, overwrite=True)
    assert Model.load(place).predict(train) == model.predict(train)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "something else"}, "is not a model"),
        ({"version": 99}, "is a model of format 99, but this version of gramline reads formats 1 to 2"),
        ({"kernel": {"name": "no-such-kernel"}}, "damaged model .*no-such-kernel"),
        ({"learner": {"name": "no-such-learner"}}, "damaged model .*no-such-learner"),
        ({"learner": {"name": "labeling-perceptron"}}, "damaged model .*'params'"),
        ({"support": {"kind": "clouds"}}, "damaged model .*clouds"),
        ({"cost": {"tiles_read": "many"}}, "damaged model .*tiles_read"),
    ],
)
def test_a_damaged_model_is_refused_in_one_sentence(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    train = sentences(1, 12)
    Model.of(trained(KERNELS[0], train), train, KERNELS[0]).save(tmp_path / "model.zarr")
    resealed(tmp_path / "model.zarr", change)
    with pytest.raises(StoreError, match=message) as caught:
        Model.load(tmp_path / "model.zarr")
    assert "\n" not in str(caught.value)


def test_a_damaged_array_is_refused(tmp_path: Path) -> None:
    train = sentences(1, 12)
    Model.of(trained(KERNELS[0], train), train, KERNELS[0]).save(tmp_path / "model.zarr")
    chunk = next(
        path
        for path in (tmp_path / "model.zarr" / "learner.alpha_").rglob("*")
        if "c" in path.parts[-3:] and path.is_file()
    )
    content = bytearray(chunk.read_bytes())
    content[3] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(StoreDamagedError) as caught:
        Model.load(tmp_path / "model.zarr")
    assert caught.value.url == str(tmp_path / "model.zarr")
    assert "learner.alpha_" in caught.value.problem
