"""What kernels, learners and readers refuse is said in the words of the command line, not in those of Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from python_words import python_words

from gramline.pipeline import Corpus

X, Y = [["the", "dog"], ["a", "cat", "ran"], ["dog"]], [["D", "N"], ["D", "N", "V"], ["N"]]
LEARNERS = ("labeling-perceptron", "hidden-markov-perceptron", "zscore", "kernel-zscore", "gaussian-process")
SETTINGS = (
    ("nothing=1",),
    ("constraints=[1",),
    ("constraints=iterative", "ridge=0"),
    ("constraints=iterative", "loss=hamming"),
    ("moments=dynamic", "solver=cg"),
    ("moments=dynamic", "ridge=-1"),
    ("preconditioner=nystrom", "ridge=auto"),
    ("dual=no",),
    ("unlabeled=1",),
    ("rank=0",),
)
OBSERVATIONS = (
    ("gaussian", None),
    ("gaussian:gamma=-1", "gaussian: gamma must be"),
    ("gaussian:x=1", "gaussian has no parameter 'x'"),
    ("polynomial:degree=0", "polynomial: degree must be"),
    ("polynomial(2)", "there is no"),
    ("Polynomial", "did you mean 'polynomial'?"),
    ("linear:normalized=7", "linear: normalized must be true or false"),
    ("substitution", None),
    ("substitution:blosum", None),
    ("sum", None),
    ("linear +", None),
)
KERNELS = (
    ("sequence-labeling:c=-1", "sequence-labeling: c must be a positive number"),
    ("sequence-labeling:x=1", "sequence-labeling has no parameter 'x'"),
    ("sequence-labeling:reach=far", "sequence-labeling: reach must be"),
    ("position:observation=3", "position: observation must be an observation kernel such as identity"),
    ("tree-labeling", "tree-labeling compares trees, but the corpus holds sequences"),
    ("subset-tree", "subset-tree compares parses"),
    ("SequenceLabeling()", "did you mean 'sequence-labeling'?"),
)
PRIORS = (
    ("uniform:a=1", "uniform has no parameter 'a'; it has none"),
    ("empirical:smoothing=-1", "empirical: smoothing must be"),
    ("tabulated", "tabulated reads a prior table"),
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Corpus.from_sequences(X, Y).save(tmp_path / "train.parquet")
    Corpus.from_sequences(X, [["D", None], ["D", "N", None], ["N"]]).save(tmp_path / "gaps.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("learner", LEARNERS)
def test_of_learners(gramline: Any, learner: str) -> None:
    for settings in SETTINGS:
        extra = [word for setting in settings for word in ("--set", setting)]
        answer = gramline(
            "fit", "train.parquet", "-o", "m.zarr", "--overwrite", "--no-evaluate", "--learner", learner, *extra
        )
        assert answer.code in (0, 2), answer.err
        assert not python_words(answer.err), (settings, answer.err)
    assert (
        f"{learner} has no parameter 'nothing'"
        in gramline(
            "fit", "train.parquet", "-o", "m.zarr", "--overwrite", "--learner", learner, "--set", "nothing=1"
        ).err
    )


@pytest.mark.usefixtures("folder")
def test_of_labels_that_are_missing(gramline: Any) -> None:
    answer = gramline("fit", "gaps.parquet", "-o", "m.zarr", "--learner", "zscore", "--no-evaluate")
    assert answer.code == 2
    assert "set unlabeled to drop" in answer.err
    assert not python_words(answer.err)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("option", "text", "said"),
    [(option, *case) for option, cases in {
        "--observation": OBSERVATIONS, "--kernel": KERNELS, "--prior": PRIORS
    }.items() for case in cases],
)  # fmt: skip
def test_of_kernels(gramline: Any, option: str, text: str, said: str | None) -> None:
    answer = gramline("gram", "plan", "train.parquet", "--inline", option, text)
    assert not python_words(answer.err), answer.err
    if said is not None:
        assert answer.code == 2
        assert said in answer.err


@pytest.mark.usefixtures("folder")
def test_of_models(gramline: Any) -> None:
    assert gramline("gram", "build", "train.parquet", "-o", "g.zarr", "--inline").code == 0
    assert gramline("fit", "g.zarr", "-o", "model.zarr").code == 0
    answer = gramline("predict", "model.zarr", "train.parquet", "--probabilities")
    assert answer.error == "labeling-perceptron cannot tell probabilities; a Gaussian-process labeler can"


def test_python_is_recognised() -> None:
    wrong = [
        "pass unlabeled='drop' to leave them out",
        "Gaussian.__init__() missing 1 required argument",
        "SequenceLabeling.c must be a positive number",
        "an observation kernel such as Identity()",
        "use dual=False for a corpus",
    ]
    assert all(python_words(text) for text in wrong)
    right = "--set 'x' is not of the form key=value; write it like polynomial:degree=2,normalized=true; Linear algebra"
    assert not python_words(right)
