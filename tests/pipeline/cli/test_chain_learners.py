"""Chain labelers from the command line to a saved model and back: Z-score, kernel Z-score, Hidden Markov perceptron."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.kernels import SequenceLabeling
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline import KernelLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.models.model import Model

KERNEL = SequenceLabeling(c=0.5)
CASES = {  # options of fit, the same learner, what it learns from
    "zscore": (["--set", "ridge=0.3", "--set", "loss=hamming"], ZScoreLabeler(0.3, loss="hamming"), "corpus"),
    "zscore, constraints": (["--set", "constraints=iterative"], ZScoreLabeler(constraints="iterative"), "corpus"),
    "kernel-zscore": (["--set", "ridge=0.2"], KernelZScoreLabeler(0.2), "gram"),
    "hidden-markov-perceptron": (["--rounds", "4", "--average"], HiddenMarkovPerceptron(4, average=True), "corpus"),
    "hidden-markov-perceptron, dual": (["--set", "dual=true"], HiddenMarkovPerceptron(dual=True), "gram"),
    "kernel-crf": (["--set", "penalty=0.3"], KernelCRF(0.3), "gram"),
    "kernel-crf, features": (["--set", "dual=false", "--set", "penalty=0.3"], KernelCRF(0.3, dual=False), "corpus"),
}
every_learner = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    path = tmp_path / "new.parquet"
    X = [["the", "cat"], ["a", "dog", "sees", "the", "unicorn"]]
    Corpus.from_sequences(X, [["D", "N"], ["D", "N", "V", "D", "N"]]).save(path)
    return path


@every_learner
def test_fit_predict_evaluate_and_the_same_in_python(
    gramline: Any, corpus: Path, gram: Path, new: Path, tmp_path: Path, name: str
) -> None:
    options, learner, source = CASES[name]
    model = tmp_path / "m.zarr"
    chosen = ["--learner", name.partition(",")[0], *options]
    quiet = ["--no-evaluate"] if source == "corpus" else []
    trained = gramline("fit", corpus if source == "corpus" else gram, "-o", model, *chosen, *quiet, "--json")
    assert (trained.code, trained.err) == (0, "")
    assert trained.json["learner"] == name.partition(",")[0]
    told = gramline("predict", model, new, "--json").json
    predicted = [record["labels"] for record in told["predictions"]]
    labeler = KernelLabeler(KERNEL if source == "gram" else None, learner).fit(Corpus.load(corpus))
    unseen = Corpus.load(new).without_labels()
    assert labeler.predict(unseen) == predicted
    saved = Model.load(model)
    assert saved.decision_scores(unseen) == pytest.approx(labeler.model_.decision_scores(unseen))
    right = sum(
        a == b
        for found, gold in zip(predicted, Corpus.load(new).labels, strict=True)
        for a, b in zip(found, gold, strict=True)
    )
    assert gramline("evaluate", model, new, "--json").json["accuracy"] == pytest.approx(right / 7)
    assert right >= 5  # all but the unknown word and one more


@every_learner
def test_cross_validation(gramline: Any, corpus: Path, gram: Path, tmp_path: Path, name: str) -> None:
    options, _, source = CASES[name]
    settings = [part for option in options if "=" in option for part in ("--set", option)]
    learner = ["--learner", name.partition(",")[0], *settings]
    folds = ["--folds", "2", "--seed", "1", "--inline", "--json"]
    answer = gramline("cv", corpus if source == "corpus" else gram, *learner, *folds, "-o", tmp_path / "run")
    assert (answer.code, answer.err) == (0, "")
    (setting,) = answer.json["settings"]
    assert len(setting["scores"]["accuracy"]["folds"]) == 2


@pytest.mark.parametrize(
    ("learner", "options", "said"),
    [
        ("zscore", ["ridge=-1"], "ridge must be a number of at least 0, or auto, got -1"),
        ("zscore", ["transition_ridge=-0.5"], "transition_ridge must be a number of at least 0"),
        ("zscore", ["loss=hinge"], "loss must be one of none, hamming"),
        ("zscore", ["moments=sampled", "n_paths=1"], "n_paths must be a whole number of at least 2"),
        ("zscore", ["constraints=iterative", "loss=hamming"], "iterative constraints go with the loss none"),
        ("kernel-zscore", ["ridge=-1"], "ridge must be a number above 0, a list of them, or auto, got -1"),
        ("kernel-zscore", ["ridge=0"], "ridge must be a number above 0"),
        ("hidden-markov-perceptron", ["rounds=0"], "rounds must be a whole number of at least 1"),
    ],
)
def test_parameters_that_cannot_be(
    gramline: Any, corpus: Path, gram: Path, tmp_path: Path, learner: str, options: list[str], said: str
) -> None:
    source = gram if learner == "kernel-zscore" else corpus
    settings = [part for option in options for part in ("--set", option)]
    answer = gramline("fit", source, "-o", tmp_path / "m.zarr", "--learner", learner, *settings)
    assert answer.code == 2
    assert said in answer.error
    assert not (tmp_path / "m.zarr").exists()


@pytest.mark.parametrize("learner", ["zscore", "hidden-markov-perceptron", "kernel-zscore"])
def test_unlabeled_training_data(gramline: Any, tmp_path: Path, learner: str) -> None:
    path, source = tmp_path / "holes.parquet", tmp_path / "holes.parquet"
    Corpus.from_sequences([["the", "dog"], ["a", "cat"]], [["D", "N"], ["D", None]]).save(path)
    if learner == "kernel-zscore":
        source = tmp_path / "g.zarr"
        assert gramline("gram", "build", path, "-o", source, "--inline").code == 0
    answer = gramline("fit", source, "-o", tmp_path / "m.zarr", "--learner", learner)
    assert answer.code == 2
    assert "structure 1, position 1: there is no label" in answer.error
    kept = gramline("fit", source, "-o", tmp_path / "m.zarr", "--learner", learner, "--set", "unlabeled=drop")
    assert kept.code == 0


def test_no_labels_at_all(gramline: Any, tmp_path: Path) -> None:
    path = tmp_path / "bare.parquet"
    Corpus.from_sequences([["the", "dog"]]).save(path)
    answer = gramline("fit", path, "-o", tmp_path / "m.zarr", "--learner", "zscore")
    assert answer.code == 2
    assert "has no labels to learn from" in answer.error


def test_a_solve_that_did_not_converge_is_not_trusted(gramline: Any, gram: Path, tmp_path: Path) -> None:
    few = ["--set", "max_iterations=1", "--set", "preconditioner=none", "--set", "tolerance=1e-12"]
    answer = gramline("fit", gram, "-o", tmp_path / "m.zarr", "--learner", "kernel-zscore", *few)
    assert answer.code == 2
    assert "did not converge (max_iterations after 1 iterations" in answer.error
    assert not (tmp_path / "m.zarr").exists()


@pytest.mark.parametrize("dual", [False, True])
def test_structures_that_are_left_out_are_told(gramline: Any, tmp_path: Path, dual: bool) -> None:
    corpus, gram = tmp_path / "x.parquet", tmp_path / "x.gram.zarr"
    Corpus.from_sequences([["a", "b"], ["b"], ["a"]], [["A", None], ["B"], ["A"]]).save(corpus)
    assert gramline("gram", "build", corpus, "-o", gram, "--inline").code == 0
    options = ["--learner", "hidden-markov-perceptron", "--set", f"dual={str(dual).lower()}", "--set", "unlabeled=drop"]
    answer = gramline("fit", gram if dual else corpus, "-o", tmp_path / "m.zarr", *options)
    assert answer.code == 0
    first, *others = answer.err.splitlines()
    assert first == "note: 1 of 3 structures have an unlabeled position and are left out"
    assert [note for note in others if "too few structures to hold some of them out" not in note] == []
    assert ("kept" in answer.out) == dual  # weights of features need no structures


def test_a_job_file_says_how_the_corpus_of_a_chain_is_read(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("the D\ndog N\n\na D\ncat N\n\n")
    job = tmp_path / "job.toml"
    job.write_text(
        '[corpus]\npath = "train.conll"\n[features]\nfeatures = "spelling"\n'
        '[learner]\nname = "zscore"\n[model]\npath = "m.zarr"\n'
    )
    answer = gramline("fit", "--job", job)
    assert answer.code == 0, answer.err
    assert Model.load(tmp_path / "m.zarr").label_names == ("D", "N")
