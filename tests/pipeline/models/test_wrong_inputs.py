"""What a newcomer gets wrong in Python with models: every door says in one sentence what is wrong, and where.

Other doors: test_wrong_corpora, test_wrong_builds, test_wrong_learners.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
    Identity,
    SequenceLabeling,
    TabulatedPrior,
    TreeLabeling,
)
from gramline.learners import (
    LabelingPerceptron,
    RankingPerceptron,
)
from gramline.pipeline import (
    Corpus,
    KernelLabeler,
    Model,
    Ranker,
    StoredGram,
    export_gram,
    verify_gram,
)

NAN = float("nan")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of everything that can be at a path."""
    return one_of_everything(tmp_path_factory.mktemp("doors"))


DOORS: Calls = {
    "fit": {
        "X None": (lambda _: KernelLabeler().fit(None, LABELS), "X must be a list of structures, got NoneType"),
        "X a string": (lambda _: KernelLabeler().fit("the cat", LABELS), "X must be a list of structures, got str"),
        "X a number": (lambda _: KernelLabeler().fit(3, LABELS), "X must be a list of structures, got int"),
        "X an array without axes": (
            lambda _: KernelLabeler().fit(np.array(3), LABELS),
            "X must be a list of structures, got ndarray",
        ),
        "sentences as strings": (
            lambda _: KernelLabeler().fit(["the cat"], [["D", "N"]]),
            "structure 0: tokens must be a list, got the string 'the cat'",
        ),
        "words as numbers": (
            lambda _: KernelLabeler().fit([["a", 2]], [["D", "N"]]),
            "structure 0, position 1: a token is a string, a mapping from feature name to value or a collection",
        ),
        "X a mapping": (lambda _: KernelLabeler().fit({"a": ["b"]}, LABELS), "X must be a list of structures, got"),
        "sentence a mapping": (
            lambda _: KernelLabeler().fit([["a"], {"a": "b"}], [["D"], ["D"]]),
            "structure 1: tokens must be a list, got a dict (\"{'a': 'b'}\")",
        ),
        "X empty": (lambda _: KernelLabeler().fit([], []), "the corpus is empty"),
        "sentence empty": (lambda _: KernelLabeler().fit([["a"], []], [["D"], []]), "structure 1: no positions"),
        "sentence None": (lambda _: KernelLabeler().fit([None], [["D"]]), "structure 0: tokens must be a list, got"),
        "word None": (lambda _: KernelLabeler().fit([["a", None]], [["D", "N"]]), "structure 0, position 1: a token"),
        "word NaN": (lambda _: KernelLabeler().fit([["a", NAN]], [["D", "N"]]), "structure 0, position 1: a token is"),
        "feature NaN": (
            lambda _: KernelLabeler().fit([["a", {"size": NAN}]], [["D", "N"]]),
            "structure 0, position 1: feature 'size' is nan",
        ),
        "X a Gram matrix": (lambda _: KernelLabeler().fit(GRAM, LABELS), "X must be a list of structures, got"),
        "X a path": (lambda f: KernelLabeler().fit(f / "a.conll"), "X must be a list of structures, got PosixPath"),
        "y missing": (lambda _: KernelLabeler().fit(WORDS), "no position has a label"),
        "y short": (lambda _: KernelLabeler().fit(WORDS, LABELS[:1]), "there are 3 structures, but labels for 1"),
        "y row short": (
            lambda _: KernelLabeler().fit(WORDS, [LABELS[0], ["D"], LABELS[2]]),
            "structure 1: 1 labels for 3 positions",
        ),
        "y a number": (lambda _: KernelLabeler().fit(WORDS, 3), "labels must be one list of strings per structure,"),
        "y a string": (lambda _: KernelLabeler().fit(WORDS, "DNV"), "labels must be one list of strings per"),
        "y flat": (lambda _: KernelLabeler().fit(WORDS, ["D", "N", "V"]), "structure 0: labels must be a list, got"),
        "y numbers": (
            lambda _: KernelLabeler().fit(WORDS, [[0, 1], [0, 1, 2], [0, 1]]),
            "structure 0, position 0: the label is 0",
        ),
        "y a mapping": (lambda _: KernelLabeler().fit(WORDS, {0: ["D"]}), "labels must be one list of strings per"),
        "y a set": (lambda _: KernelLabeler().fit([["a"]], [{"D"}]), "structure 0: labels must be a list, got a set"),
        "y all None": (lambda _: KernelLabeler().fit(WORDS, [None] * 3), "no position has a label"),
        "y nested": (lambda _: KernelLabeler().fit([["a"]], [[["D"]]]), "structure 0, position 0: the label is ['D']"),
        "corpus without labels": (lambda _: KernelLabeler().fit(CORPUS.without_labels()), "no position has a label"),
        "corpus and short y": (lambda _: KernelLabeler().fit(CORPUS, LABELS[:1]), "there are 3 structures, but"),
        "corpus and strange y": (
            lambda _: KernelLabeler().fit(CORPUS, [*LABELS[:2], ["D", "Q"]]),
            "structure 2, position 1: the label 'Q' is not among the given labels (D, N, V)",
        ),
        "another kind": (lambda _: KernelLabeler(KERNEL, ONE_ROUND).fit(TREES), "SequenceLabeling compares"),
        "a tree kernel on lists": (
            lambda _: KernelLabeler(TreeLabeling()).fit(WORDS, LABELS),
            "TreeLabeling compares trees",
        ),
        "features twice": (
            lambda _: KernelLabeler(features="spelling").fit([[{"a": 1}]], [["D"]]),
            "features='spelling' describes words, but these tokens have features already",
        ),
    },
    "labeler": {
        "kernel a name": (
            lambda _: KernelLabeler("sequence-labeling").fit(WORDS, LABELS),
            "kernel must be a kernel such as sequence-labeling, got 'sequence-labeling'",
        ),
        "kernel a class": (
            lambda _: KernelLabeler(SequenceLabeling).fit(WORDS, LABELS),
            "kernel must be a kernel such as sequence-labeling,",
        ),
        "kernel an observation": (
            lambda _: KernelLabeler(Identity()).fit(WORDS, LABELS),
            "kernel must be a kernel such as sequence-labeling, got Identity(normalized=False)",
        ),
        "swapped": (
            lambda _: KernelLabeler(ONE_ROUND, KERNEL).fit(WORDS, LABELS),
            "kernel must be a kernel such as sequence-labeling, got LabelingPerceptron(rounds=1)",
        ),
        "learner a class": (
            lambda _: KernelLabeler(KERNEL, LabelingPerceptron).fit(WORDS, LABELS),
            "learner must be a learner such as labeling-perceptron,",
        ),
        "unknown features": (
            lambda _: KernelLabeler(features="speling").fit(WORDS, LABELS),
            "features must be one of auto, token, words, spelling, got 'speling'",
        ),
        "block_rows 0": (
            lambda _: KernelLabeler(block_rows=0).fit(WORDS, LABELS),
            "block_rows must be a whole number of at least 1, got 0",
        ),
        "block_rows a word": (
            lambda _: KernelLabeler(block_rows="10").fit(WORDS, LABELS),
            "block_rows must be a whole number of at least 1, got '10'",
        ),
        "store a number": (
            lambda _: KernelLabeler(KERNEL, ONE_ROUND, store=3).fit(WORDS, LABELS),
            "expected a path, got int",
        ),
        "store a file": (
            lambda f: KernelLabeler(KERNEL, ONE_ROUND, store=f / "a.conll").fit(WORDS, LABELS),
            "FOLDER/a.conll is not a store but a file",
        ),
        "store a model": (
            lambda f: KernelLabeler(KERNEL, ONE_ROUND, store=f / "a.model").fit(WORDS, LABELS),
            "FOLDER/a.model is not a store but a model",
        ),
        "store of another kernel": (
            lambda f: KernelLabeler(SequenceLabeling(c=0.9), ONE_ROUND, store=f / "a.zarr").fit(WORDS, LABELS),
            "FOLDER/a.zarr holds another Gram matrix (kernel.c: 0.5 instead of 0.9)",
        ),
        "client an address": (
            lambda f: KernelLabeler(KERNEL, ONE_ROUND, store=f / "b.zarr", client="tcp://x:1").fit(WORDS, LABELS),
            "client must be a Dask client, got 'tcp://x:1'",
        ),
        "a ranker": (
            lambda _: KernelLabeler(KERNEL, RankingPerceptron()).fit(WORDS, LABELS),
            "RankingPerceptron ranks candidates and labels nothing",
        ),
        "rounds 0": (
            lambda _: KernelLabeler(KERNEL, LabelingPerceptron(rounds=0)).fit(WORDS, LABELS),
            "rounds must be a whole number of at least 1, got 0",
        ),
        "no prior": (
            lambda _: KernelLabeler(SequenceLabeling(prior=TabulatedPrior())).fit(WORDS, LABELS),
            "TabulatedPrior reads a prior table, but the corpus carries none",
        ),
        "misspelled": (lambda _: KernelLabeler().set_params(kernal=KERNEL), "KernelLabeler has no parameter 'kernal'"),
        "misspelled inside": (
            lambda _: KernelLabeler(KERNEL).set_params(kernel__cc=1),
            "KernelLabeler.kernel has no parameter 'cc'",
        ),
        "misspelled in the learner": (
            lambda _: KernelLabeler(KERNEL, ONE_ROUND).set_params(learner__round=1),
            "LabelingPerceptron has no parameter 'round'",
        ),
        "negative inside": (
            lambda _: KernelLabeler(KERNEL).set_params(kernel__c=-1),
            "SequenceLabeling.c must be a positive number (1e-150 to 1e150), got -1",
        ),
        "nothing inside": (lambda _: KernelLabeler().set_params(kernel__c=1), "KernelLabeler.kernel is None, which"),
    },
    "predict": {
        "unfitted": (lambda _: KernelLabeler().predict(WORDS), "this KernelLabeler is not fitted yet"),
        "scores unfitted": (lambda _: KernelLabeler().predict_scores(WORDS), "this KernelLabeler is not fitted yet"),
        "score unfitted": (lambda _: KernelLabeler().score(WORDS, LABELS), "this KernelLabeler is not fitted yet"),
        "None": (lambda _: LABELER.predict(None), "a model labels a list of sentences or a Corpus, got NoneType"),
        "scores of None": (lambda _: LABELER.predict_scores(None), "a model labels a list of sentences or a Corpus,"),
        "scores of a number": (lambda _: LABELER.predict_scores(3), "a model labels a list of sentences or a Corpus,"),
        "a path": (lambda _: LABELER.predict("a.conll"), "a model labels a list of sentences or a Corpus, got str"),
        "the class": (lambda _: LABELER.predict(Corpus), "expected a corpus, got type"),
        "an array without axes": (lambda _: LABELER.predict(np.array(3)), "a model labels a list of sentences or a"),
        "strings": (lambda _: LABELER.predict(["the cat"]), "structure 0: tokens must be a list, got the string 'the"),
        "numbers": (lambda _: LABELER.predict([[1, 2]]), "structure 0, position 0: a token is a string, a mapping"),
        "trees": (lambda _: LABELER.predict(TREES), "the model is for sequences, but the corpus holds trees"),
        "other features": (
            lambda _: LABELER.predict(CORPUS.with_features("spelling")),
            "the structures were made otherwise than those the model learned from: features spelling instead of",
        ),
        "no probabilities": (lambda _: LABELER.predict_proba(WORDS), "LabelingPerceptron cannot tell probabilities"),
        "score without labels": (lambda _: LABELER.score(WORDS), "no position has a gold label"),
        "score of short labels": (lambda _: LABELER.score(WORDS, LABELS[:2]), "there are 3 structures, but labels"),
        "score of a number": (lambda _: LABELER.score(WORDS, 3), "labels must be one list of strings per structure,"),
        "blocks by word": (
            lambda _: LABELER.model_.predict(CORPUS, block_rows="2"),
            "block_rows must be a whole number of at least 1, got '2'",
        ),
    },
    "paths": {
        "load nothing": (lambda f: KernelLabeler.load(f / "no.model"), "FOLDER/no.model does not exist"),
        "load a corpus": (lambda f: KernelLabeler.load(f / "a.parquet"), "FOLDER/a.parquet is not a model but a file"),
        "load a Gram matrix": (lambda f: KernelLabeler.load(f / "a.zarr"), "FOLDER/a.zarr is not a model but a store"),
        "load a folder": (lambda f: KernelLabeler.load(f / "folder"), "FOLDER/folder is not a model but an empty"),
        "load None": (lambda _: KernelLabeler.load(None), "expected a path, got NoneType"),
        "load a number": (lambda _: Model.load(3), "expected a path, got int"),
        "load bytes": (lambda _: Model.load(b"a.model"), "expected a path, got bytes"),
        "load a list": (lambda _: Ranker.load(["a"]), "expected a path, got list"),
        "load a labeler": (lambda _: Model.load(LABELER), "expected a path, got KernelLabeler"),
        "load an empty path": (lambda _: Model.load(""), "the path is empty"),
        "load a zero byte": (lambda _: Model.load("a\0b"), "'a\\x00b' is no path: it has a zero byte in it"),
        "load a long path": (lambda _: Model.load("x" * 5000), "the path "),
        "load a model as ranker": (lambda f: Ranker.load(f / "a.model"), "FOLDER/a.model is not a ranker but a model"),
        "save over a model": (lambda f: LABELER.save(f / "a.model"), "FOLDER/a.model exists already"),
        "save over a corpus": (
            lambda f: LABELER.save(f / "a.parquet", overwrite=True),
            "FOLDER/a.parquet is not a model but a file",
        ),
        "save over a Gram matrix": (
            lambda f: LABELER.save(f / "a.zarr", overwrite=True),
            "FOLDER/a.zarr is not a model but a store",
        ),
        "save to None": (lambda _: LABELER.save(None), "expected a path, got NoneType"),
        "save to a zero byte": (lambda _: LABELER.save("a\0b"), "'a\\x00b' is no path: it has a zero byte in it"),
        "save below a file": (lambda f: LABELER.save(f / "a.conll" / "b"), "FOLDER/a.conll/b cannot be written or"),
        "save unfitted": (lambda f: KernelLabeler().save(f / "b.model"), "this KernelLabeler is not fitted yet"),
        "open a model": (lambda f: StoredGram.open(f / "a.model"), "FOLDER/a.model is not a store but a model"),
        "Gram matrix of a path": (lambda f: StoredGram(f / "a.zarr"), "StoredGram holds an open store, got PosixPath"),
        "verify None": (lambda _: verify_gram(None), "expected a path, got NoneType"),
        "verify a file": (lambda f: verify_gram(f / "a.conll"), "FOLDER/a.conll is not a store but a file"),
        "export a Gram matrix": (
            lambda f: export_gram(StoredGram.open(f / "a.zarr"), f / "b.npy"),
            "expected a path, got StoredGram",
        ),
        "read nothing": (lambda f: LABELER.model_.read(f / "no.conll"), "there is no corpus file at FOLDER/no.conll"),
        "read a number": (lambda _: LABELER.model_.read(3), "expected a path, got int"),
    },
}


@cases(DOORS)
def test_one_sentence_says_what_and_where(folder: Path, group: str, case: str) -> None:
    check_refused(DOORS, group, case, folder)
