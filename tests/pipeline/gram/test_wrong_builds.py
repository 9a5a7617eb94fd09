"""What a newcomer gets wrong in Python where Gram matrices are built and learners are compared: one sentence each."""

from __future__ import annotations

from pathlib import Path

import pytest
from wrong_calls import (
    CORPUS,
    GRAM,
    KERNEL,
    LABELER,
    LABELS,
    ONE_ROUND,
    TREES,
    WORDS,
    Calls,
    cases,
    check_refused,
    one_of_everything,
)

from gramline.kernels import (
    EmpiricalPrior,
    SequenceLabeling,
    TreeLabeling,
)
from gramline.learners import (
    DenseGram,
    LabelingPerceptron,
    RankingPerceptron,
    ZScoreLabeler,
    evaluate,
)
from gramline.pipeline import (
    Corpus,
    append_gram,
    build_gram,
    cross_validate,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything that can be at a path."""
    return one_of_everything(tmp_path_factory.mktemp("doors"))


DOORS: Calls = {
    "build_gram": {
        "kernel a name": (lambda f: build_gram("sequence", CORPUS, f / "b.zarr"), "expected a kernel such as"),
        "kernel a class": (
            lambda f: build_gram(SequenceLabeling, CORPUS, f / "b.zarr"),
            "expected a kernel such as SequenceLabeling(),",
        ),
        "corpus a list": (lambda f: build_gram(KERNEL, WORDS, f / "b.zarr"), "expected a corpus, got list"),
        "corpus a path": (lambda f: build_gram(KERNEL, "a.parquet", f / "b.zarr"), "expected a corpus, got str"),
        "swapped": (lambda f: build_gram(CORPUS, KERNEL, f / "b.zarr"), "expected a kernel such as"),
        "another kind": (
            lambda f: build_gram(TreeLabeling(), CORPUS, f / "b.zarr"),
            "TreeLabeling compares trees, but the corpus holds sequences",
        ),
        "columns a list": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", other=WORDS),
            "expected a corpus, got list",
        ),
        "columns of another kind": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", other=TREES),
            "the corpus holds trees but is to be compared with sequences",
        ),
        "no path": (lambda _: build_gram(KERNEL, CORPUS, None), "a build without a path is only planned"),
        "path a number": (lambda _: build_gram(KERNEL, CORPUS, 3), "expected a path, got int"),
        "dtype": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", dtype="float16"),
            "dtype must be one of float64, float32, got 'float16'",
        ),
        "block_rows 0": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", block_rows=0),
            "block_rows must be a whole number of at least 1, got 0",
        ),
        "block_rows 1": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", block_rows=1),
            "structure 1 has 3 rows, more than a block of 1",
        ),
        "block_rows a word": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", block_rows="8"),
            "block_rows must be a whole number of at least 1, got '8'",
        ),
        "compression": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", compression="zip"),
            "compression must be one of none, lz4, zstd, got 'zip'",
        ),
        "limit_bytes 0": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", limit_bytes=0),
            "tile (0, 0) needs 4 MB, more than the 0 MB a worker thread may use",
        ),
        "limit_bytes a word": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", limit_bytes="1GB"),
            "limit_bytes must be a whole number of at least 0, got '1GB'",
        ),
        "retries -1": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", retries=-1),
            "retries must be a whole number of at least 0, got -1",
        ),
        "retries a word": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", retries="2"),
            "retries must be a whole number of at least 0, got '2'",
        ),
        "client an address": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", client="tcp://x:1"),
            "client must be a Dask client, got 'tcp://x:1'",
        ),
        "executor a name": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", executor="inline"),
            "executor must run tasks, as InlineExecutor() does, got 'inline'",
        ),
        "progress a number": (
            lambda f: build_gram(KERNEL, CORPUS, f / "b.zarr", progress=3),
            "progress must be a function of an event, got 3",
        ),
        "no labels to count": (
            lambda f: build_gram(SequenceLabeling(prior=EmpiricalPrior()), CORPUS.without_labels(), f / "b.zarr"),
            "EmpiricalPrior counts training labels, but no position of the training corpus has one",
        ),
        "append to nothing": (lambda f: append_gram(f / "no.zarr", CORPUS), "FOLDER/no.zarr does not exist"),
        "append to a model": (lambda f: append_gram(f / "a.model", CORPUS), "FOLDER/a.model is not a store but a"),
        "append a list": (lambda f: append_gram(f / "a.zarr", WORDS), "expected a corpus, got list"),
        "append None": (lambda f: append_gram(f / "a.zarr", None), "expected a corpus, got NoneType"),
        "append another kind": (lambda f: append_gram(f / "a.zarr", TREES), "the corpus holds trees but is to be"),
        "append an unknown label": (
            lambda f: append_gram(f / "a.zarr", Corpus.from_sequences([["a", "b"]], [["D", "Q"]])),
            "structure 0, position 1: FOLDER/a.zarr has no label 'Q' (D, N, V)",
        ),
        "append by a client's address": (
            lambda f: append_gram(f / "a.zarr", CORPUS, client="tcp://x:1"),
            "client must be a Dask client, got 'tcp://x:1'",
        ),
        "append with retries of a word": (
            lambda f: append_gram(f / "a.zarr", CORPUS, retries="x"),
            "retries must be a whole number of at least 0, got 'x'",
        ),
    },
    "cross_validate": {
        "learner a name": (lambda _: cross_validate("perceptron", GRAM, LABELS), "expected a learner such as"),
        "learner a class": (
            lambda _: cross_validate(LabelingPerceptron, GRAM, LABELS),
            "expected a learner such as LabelingPerceptron(),",
        ),
        "a labeler": (lambda _: cross_validate(LABELER, GRAM, LABELS), "expected a learner such as"),
        "a ranker": (
            lambda _: cross_validate(RankingPerceptron(), GRAM, LABELS),
            "ranking-perceptron chooses candidates",
        ),
        "a bare matrix": (
            lambda _: cross_validate(ONE_ROUND, GRAM.matrix, LABELS),
            "expected a Gram matrix, got ndarray",
        ),
        "lists": (lambda _: cross_validate(ONE_ROUND, WORDS, LABELS), "expected a Gram matrix, got list"),
        "a corpus": (lambda _: cross_validate(ONE_ROUND, CORPUS, LABELS), "labeling-perceptron learns from a Gram"),
        "a Gram matrix of features": (
            lambda _: cross_validate(ZScoreLabeler(), GRAM, LABELS),
            "zscore learns from a corpus: it reads features, but was given a DenseGram",
        ),
        "labels short": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS[:2]), "there are 3 structures, but labels"),
        "labels None": (lambda _: cross_validate(ONE_ROUND, GRAM, None), "labels must be one list of strings per"),
        "folds 1": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 1), "3 structures can be cut into 2 to 3"),
        "folds 99": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 99), "3 structures can be cut into 2 to 3"),
        "folds a word": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, "5"), "folds must be a number, Folds or"),
        "folds None": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, None), "folds must be a number, Folds or"),
        "folds flat": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [0, 1]), "fold 0 must be a list of"),
        "folds out of range": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [[0], [7]]),
            "fold 1 holds out structure 7, but the corpus has 0 to 2",
        ),
        "folds negative": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [[0], [-1]]),
            "fold 1 holds out structure -1, but the corpus has 0 to 2",
        ),
        "folds of words": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [["a"], ["b"]]),
            "fold 0 must be a list of structure numbers, got ['a']",
        ),
        "a fold empty": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [[0], []]), "fold 1 holds out no structure"),
        "nothing to train on": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, [[0, 1, 2]]),
            "fold 0 holds out every structure, so nothing is left to train on",
        ),
        "seed a word": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, seed="a"),
            "seed must be a whole number of at least 0, got 'a'",
        ),
        "seed -1": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, seed=-1),
            "seed must be a whole number of at least 0, got -1",
        ),
        "seed a fraction": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, seed=1.5),
            "seed must be a whole number of at least 0, got 1.5",
        ),
        "settings empty": (lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, []), "settings is empty"),
        "settings a word": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, "rounds"),
            "settings must be a list of dictionaries, or one of lists, got 'rounds'",
        ),
        "settings a number": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, 3),
            "settings must be a list of dictionaries, or one of lists, got 3",
        ),
        "settings of words": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, ["rounds"]),
            "a setting is a dictionary of parameters, got 'rounds'",
        ),
        "settings without lists": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, {"rounds": 3}),
            "settings of rounds must be a list of values to try, got 3",
        ),
        "settings misspelled": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, {"round": [3]}),
            "LabelingPerceptron has no parameter 'round'",
        ),
        "settings by number": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, [{1: 2}]),
            "the name of a parameter is a string, got 1",
        ),
        "settings out of range": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, {"rounds": [0]}),
            "rounds must be a whole number of at least 1, got 0",
        ),
        "progress a number": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 2, progress=3),
            "progress must be a function, got 3",
        ),
        "labels that leak": (
            lambda _: cross_validate(
                ONE_ROUND, DenseGram.of(SequenceLabeling(prior=EmpiricalPrior()), CORPUS), LABELS, 2
            ),
            "an empirical prior was counted from the labels of all structures, so held-out labels would leak",
        ),
        "metric unknown": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 3).table("acc"),
            "there is no metric 'acc'",
        ),
        "setting unknown": (
            lambda _: cross_validate(ONE_ROUND, GRAM, LABELS, 3).compare(0, 5),
            "there is no setting 5",
        ),
    },
    "evaluate": {
        "gold None": (lambda _: evaluate(None, LABELS), "gold labels must be one list of strings per structure, got"),
        "gold a string": (lambda _: evaluate("DN", LABELS), "gold labels must be one list of strings per structure,"),
        "gold a corpus": (lambda _: evaluate(CORPUS, LABELS), "gold labels must be one list of strings per"),
        "gold numbers": (lambda _: evaluate([[0, 1]], [[0, 1]]), "structure 0, position 0: the gold label is 0"),
        "gold flat": (lambda _: evaluate(["D", "N"], ["D", "N"]), "structure 0: 'D' is no list of gold labels"),
        "predicted a number": (lambda _: evaluate(LABELS, 3), "predicted labels must be one list of strings per"),
        "predicted short": (lambda _: evaluate(LABELS, LABELS[:2]), "there are gold labels for 3 structures, but"),
        "predicted row short": (
            lambda _: evaluate(LABELS, [LABELS[0], ["D"], LABELS[2]]),
            "structure 1: there are 3 gold labels, but 1 predictions",
        ),
        "predicted a set": (lambda _: evaluate([["D"]], [{"D"}]), "structure 0: {'D'} is no list of predicted labels"),
        "predicted nested": (lambda _: evaluate([["D"]], [[["D"]]]), "structure 0, position 0: the predicted label"),
        "prediction missing": (lambda _: evaluate([["D", "N"]], [["D", None]]), "structure 0, position 1: there is a"),
        "nothing": (lambda _: evaluate([], []), "no position has a gold label"),
        "dummy a list": (lambda _: evaluate(LABELS, LABELS, dummy=["O"]), "the dummy label is a string, or None"),
    },
}


@cases(DOORS)
def test_one_sentence_says_what_and_where(folder: Path, group: str, case: str) -> None:
    check_refused(DOORS, group, case, folder)
