"""`gramline fit` on a file: the pair it takes, what it says of it, and the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.crossval.winner import winner
from gramline.pipeline.models import training_gram
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.stream import LabeledStream


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty sentences in columns, in the current folder."""
    monkeypatch.chdir(tmp_path)
    corpus = generate_saleslog(20, seed=3)
    lines = [
        "".join(f"{word} {label}\n" for word, label in zip(words, labels, strict=True))
        for words, labels in zip(corpus.tokens, corpus.labels, strict=True)
    ]
    path = tmp_path / "train.conll"
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_a_file_alone(gramline: Any, train: Path) -> None:
    answer = gramline("fit", train.name)
    assert (answer.code, answer.err) == (0, "")
    said = " ".join(answer.out.split())
    assert "spelling features with a window of 1" in said
    assert "kernel position(observation=polynomial(normalized=True, unit=True))" in said
    assert "learner hidden-markov-perceptron with rounds=20, dual=True" in said
    assert "right on structures it did not see (3 folds)" in said
    assert "model written to train.model.zarr" in said
    assert max(map(len, answer.out.splitlines())) <= 80
    model = Model.load("train.model.zarr")
    assert model.kernel is not None
    assert model.label_names[0] == "O"  # the most frequent one


def test_what_programs_read(gramline: Any, train: Path) -> None:
    result = gramline("fit", train.name, "-o", "m.zarr", "--json").json
    assert (result["model"], result["learner"]) == ("m.zarr", "hidden-markov-perceptron")
    scores = result["cross_validation"]
    assert scores["folds"] == 3
    assert scores["learned"]["wrong"] < scores["majority"]["wrong"]


def test_parameters_change_the_recommended_learner(gramline: Any, train: Path) -> None:
    options = ("--rounds", "3", "--no-average", "--set", "scale=5", "--no-evaluate", "--json")
    result = gramline("fit", train.name, *options).json
    assert result["cross_validation"] is None
    assert {key: result["params"][key] for key in ("rounds", "average", "scale")} == {
        "rounds": 3,
        "average": False,
        "scale": 5,
    }


def test_another_learner_gets_the_recommended_kernel(gramline: Any, train: Path) -> None:
    result = gramline("fit", train.name, "--learner", "labeling-perceptron", "--rounds", "2", "--json").json
    assert (result["learner"], result["kernel"]["name"]) == ("labeling-perceptron", "position")


def test_another_kernel(gramline: Any, train: Path) -> None:
    options = ("--kernel", "sequence-labeling:reach=0.5", "--observation", "linear:normalized=true", "--rounds", "2")
    result = gramline("fit", train.name, *options, "--json").json
    assert (result["kernel"]["name"], result["kernel"]["reach"]) == ("sequence-labeling", 0.5)


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_kernel_of_little_use_is_noted_once(
    gramline: Any, train: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    monkeypatch.setattr(training_gram, "fits_memory", lambda *_: in_memory)
    options = ("--kernel", "position", "--observation", "identity", "--no-evaluate", "--json")
    corpus = Corpus.read(train, features="spelling", window=1)
    corpus.save("train.parquet")
    answer = gramline("fit", "train.parquet", *options)
    assert answer.code == 0
    assert answer.err.count("identity compares feature sets as a whole") == 1
    built = gramline("gram", "build", "train.parquet", "-o", "g.zarr", "--inline", *options[:4])
    assert answer.err.splitlines()[-1] in built.err.splitlines()  # the same words


def test_a_learner_on_features_has_no_kernel(gramline: Any, train: Path) -> None:
    assert gramline("fit", train.name, "--learner", "zscore", "--set", "ridge=0.1", "--json").json["kernel"] is None
    answer = gramline("fit", train.name, "--learner", "zscore", "--kernel", "position", "-o", "other.zarr")
    assert (answer.code, answer.error) == (2, "zscore reads features and has no kernel; leave --kernel out")


def test_trees_get_their_own_kernel(gramline: Any, train: Path) -> None:
    generate_saleslog(10, seed=1, kind="trees").save(train.with_name("trees.parquet"))
    kernel = gramline("fit", "trees.parquet", "--rounds", "2", "--json").json["kernel"]
    assert kernel["name"] == "tree-labeling"
    assert kernel["reach"] > 0


def test_labels_that_nothing_tells_apart(gramline: Any, train: Path) -> None:
    Corpus.from_sequences([["x", "x"]] * 6, [["A", "A"], ["A", "B"]] * 3).save(train.with_name("same.parquet"))
    answer = gramline("fit", "same.parquet")
    assert answer.code == 0
    assert "no better than the most frequent one" in " ".join(answer.err.split())


def test_the_winner_of_a_run_is_fitted_on_everything(gramline: Any, train: Path) -> None:
    generate_saleslog(12, seed=3).save(train.with_name("train.parquet"))
    assert gramline("gram", "build", "train.parquet", "-o", "g.zarr", "--inline").code == 0
    options = ("--set", "rounds=1,4", "--folds", "2", "--seed", "1", "--inline", "-o", "cv.run")
    assert gramline("cv", "g.zarr", *options).code == 0
    best = winner("cv.run")
    result = gramline("fit", "--from-run", "cv.run", "--json").json
    assert (result["model"], result["score"]) == ("cv.model.zarr", best.score)
    assert result["params"]["rounds"] == best.learner.get_params()["rounds"]
    assert gramline("predict", "cv.model.zarr", "train.parquet").code == 0
    answer = gramline("fit", "train.conll", "--from-run", "cv.run")
    assert (answer.code, "leave SOURCE" in answer.error) == (2, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("train.conll", "-o", "train.conll"), "train.conll is not a model"),
        (("train.conll", "--set", "rounds=none"), "rounds must be a whole number"),
        (("train.conll", "--set", "runds=3"), "has no parameter 'runds'; did you mean 'rounds'"),
        (("train.conll", "--candidates", "x.parquet"), "--candidates has no effect"),
        (("train.conll", "--plan"), "--plan is about the factorisations of gaussian-process"),
        (("bare.parquet",), "bare.parquet has no labels to learn from; give a file with labels"),
        (("nowhere.conll",), "nowhere.conll does not exist"),
    ],
)
def test_what_cannot_be_fitted(gramline: Any, train: Path, options: tuple[str, ...], said: str) -> None:
    Corpus.from_sequences([["a", "b"]]).save(train.with_name("bare.parquet"))
    before = sorted(path.name for path in train.parent.iterdir())
    answer = gramline("fit", *options)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.error
    assert sorted(path.name for path in train.parent.iterdir()) == before


def test_a_kernel_that_is_named_without_observation_kernel_compares_words(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "x.conll").write_text("a X\nb Y\n\nb Y\na X\n")
    fit = ["fit", tmp_path / "x.conll", "--no-evaluate", "-o", tmp_path / "m.zarr", "--overwrite"]
    told = gramline(*fit, "--kernel", "sequence-labeling").out
    assert "tokens as they are" in told
    assert "learner  labeling-perceptron" in told  # a kernel that sees neighbours needs no chain
    (tmp_path / "y.conll").write_text("M H\nK C\n\nK C\nV H\n")
    fit[1] = tmp_path / "y.conll"
    assert gramline(*fit, "--kernel", "position", "--observation", "substitution:blosum62").code == 0
    fit[1] = tmp_path / "x.conll"
    assert "spelling features" in gramline(*fit, "--kernel", "position", "--observation", "linear").out


def test_a_file_is_cross_validated_as_it_is_fitted(
    gramline: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.conll").write_text("ab B-X\nba O\n\nab B-X\nab I-X\n\nba O\n")
    run = tmp_path / "run"
    assert gramline("cv", tmp_path / "x.conll", "--folds", "2", "--inline", "-o", run).code == 0
    (setting,) = json.loads((run / "results.json").read_text())["settings"]
    fitted = gramline("fit", tmp_path / "x.conll", "--no-evaluate", "-o", tmp_path / "m.zarr", "--json").json
    assert setting["kernel"] == fitted["kernel"]
    assert (setting["learner"], setting["params"]) == (
        "hidden-markov-perceptron",
        {"rounds": 20, "dual": True, "constraints": "iob2"},
    )


def test_the_option_that_a_note_names_is_there(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "columns.txt").write_text("the O DT\nAnn B-PER NNP\nruns O VBZ\n\nBob B-PER NNP\nran O VBD\n")
    assert "give --label-column 1" in gramline("fit", "columns.txt", "-o", "wrong.zarr", "--no-evaluate").err
    for name, *rest in (("fit", "-o", "m.zarr", "--no-evaluate"), ("cv", "--folds", "2", "--plan", "--inline")):
        answer = gramline(name, "columns.txt", "--label-column", "1", *rest)
        assert (answer.code, answer.err) == (0, "")
    assert Model.load("m.zarr").label_names == ("O", "B-PER")


def test_the_word_need_not_come_first(gramline: Any, train: Path) -> None:
    """Columns before it change nothing, with or without labels, in a file and in a stream: the model remembers."""
    lines = train.read_text("utf-8").split("\n")
    numbered = [f"{number} {line}" if line else line for number, line in enumerate(lines)]
    unlabeled = "\n".join(line.rpartition(" ")[0] for line in numbered)
    Path("numbered.conll").write_text("\n".join(numbered), "utf-8")
    Path("new.conll").write_text(unlabeled, "utf-8")
    for name, *reading in (("train.conll",), ("numbered.conll", "--word-column", "1")):
        answer = gramline("fit", name, *reading, "--rounds", "2", "--no-evaluate", "-o", f"{name}.zarr")
        assert (answer.code, answer.err) == (0, "")
        assert gramline("corpus", "import", name, *reading, "-o", f"{name}.parquet").code == 0
        assert gramline("cv", name, *reading, "--folds", "2", "--plan", "--inline").code == 0
    assert Corpus.load("numbered.conll.parquet").tokens == Corpus.load("train.conll.parquet").tokens

    given = {"train": lines, "numbered": numbered, "new": unlabeled.split("\n")}
    answers = {}
    models = {"train": "train.conll.zarr", "numbered": "numbered.conll.zarr", "new": "numbered.conll.zarr"}
    for name, model in models.items():
        assert gramline("predict", model, f"{name}.conll", "-o", f"{name}.out.conll").code == 0
        answered = Path(f"{name}.out.conll").read_text("utf-8").split("\n")
        streamed = LabeledStream(Model.load(model), "-", "conll", probabilities=False).answers(given[name])
        assert [line for block in streamed for line in block if line] == [line for line in answered if line]
        answers[name] = [line.split(" ")[-1] for line in answered]
    assert answers["numbered"] == answers["new"] == answers["train"]


@pytest.mark.parametrize("command", ["fit", "cv"])
def test_how_a_file_is_read_means_nothing_where_none_is(gramline: Any, train: Path, command: str) -> None:
    gramline("corpus", "import", train.name, "-o", "c.parquet")
    gramline("gram", "build", "c.parquet", "-o", "c.gram.zarr", "--inline")
    for source, why in (("c.parquet", "c.parquet is a corpus already"), ("c.gram.zarr", "which has its labels")):
        answer = gramline(command, source, "--skip-comments", "-o", "out")
        assert answer.code == 2
        assert "--skip-comments is about files that are imported" in answer.error
        assert why in answer.error


def test_too_few_structures_for_a_score(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "two.conll").write_text("Ann N\nran V\n\nBob N\nsat V\n")
    assert "nobody knows how good the model is" in gramline("fit", "two.conll").err
    assert gramline("fit", "two.conll", "-o", "n.zarr", "--no-evaluate").err == ""


def test_nothing_to_train_on(gramline: Any) -> None:
    answer = gramline("fit")
    assert (answer.code, answer.error.partition(";")[0]) == (2, "there is nothing to train on")
