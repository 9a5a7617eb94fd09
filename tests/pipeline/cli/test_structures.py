"""Every kind of structure from a file through all commands, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged import resealed
from tolerances import assert_close

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.dags.labeling import DagLabeling
from gramline.kernels.observations.features import Linear
from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.kernels.trees.labeling import TreeLabeling
from gramline.learners.errors import LearnerParameterError
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline import StoredGram, build_gram
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.models.labeler import KernelLabeler
from gramline.pipeline.storage.groups import read_attributes

LABELED = {"trees": "tree-labeling", "dags": "dag-labeling"}
WHOLE = {"parses": "subset-tree", "tagged": "tagging"}
PARAMETERS = {"trees": "c=0.7", "dags": "c=0.6", "parses": "decay=0.3", "tagged": "decay=0.5"}


def corpus_of(kind: str, n: int, seed: int) -> Corpus:
    if kind != "tagged":
        return generate_saleslog(n, seed, kind)
    draw = np.random.default_rng(seed)
    return Corpus.from_tagged(
        [[(str(word), "NV"[len(str(word)) % 2]) for word in draw.choice(["a", "bb", "c"], 6)] for _ in range(n)]
    )


@pytest.mark.parametrize("kind", [*LABELED, *WHOLE])
def test_plan_build_verify_append_and_export(gramline: Any, kind: str, tmp_path: Path) -> None:
    first, more, whole = (tmp_path / f"{name}.parquet" for name in ("first", "more", "whole"))
    everything = corpus_of(kind, 9, 3)
    everything.save(whole)
    everything.select(range(6)).save(first)
    everything.select(range(6, 9)).save(more)
    kernel = f"{(LABELED | WHOLE)[kind]}:{PARAMETERS[kind]}"
    planned = gramline("gram", "plan", first, "--kernel", kernel, "--inline", "--json")
    assert planned.code == 0, planned.err
    n_rows = everything.n_positions if kind in LABELED else len(everything)
    gram = tmp_path / "g.zarr"
    block_rows = str(max(3, int(everything.lengths.max())) if kind in LABELED else 4)
    built = gramline(
        "gram", "build", first, "-o", gram, "--inline", "--kernel", kernel, "--block-rows", block_rows, "--json"
    )
    assert built.code == 0, built.err
    grown = gramline("gram", "append", gram, more, "--inline", "--json").json
    assert grown["shape"] == [n_rows, n_rows]
    assert grown["reused"] == built.json["n_tiles"]
    assert gramline("gram", "verify", gram, "--inline", "--json").code == 0
    assert gramline("gram", "status", gram, "--json").json["kernel"]["name"] == (LABELED | WHOLE)[kind]
    assert gramline("gram", "export", gram, tmp_path / "g.npy").code == 0
    parameter, _, value = PARAMETERS[kind].partition("=")
    record: Kernel = from_dict({"name": (LABELED | WHOLE)[kind], parameter: float(value)}, Kernel)
    assert_close(np.load(tmp_path / "g.npy"), record.gram(everything))
    cross = gramline("gram", "build", first, "--other", more, "-o", tmp_path / "x.zarr", "--inline", "--kernel", kernel)
    assert cross.code == 0, cross.err


def test_a_store_of_a_kernel_that_is_refused_by_now_can_be_read_and_exported(gramline: Any, tmp_path: Path) -> None:
    """Earlier versions took a decay above 1."""
    gram, corpus, exported = tmp_path / "g.zarr", tmp_path / "c.parquet", tmp_path / "g.npy"
    corpus_of("parses", 5, 3).save(corpus)
    values = build_gram(SubsetTree(decay=0.5), Corpus.load(corpus), gram, block_rows=2).to_numpy()
    spec = read_attributes(str(gram))[0]["spec"]
    resealed(gram, {"spec": spec | {"kernel": spec["kernel"] | {"decay": 1.5}}})
    assert "subset-tree(decay=1.5)" in gramline("gram", "status", gram).out
    assert gramline("gram", "export", gram, exported).code == 0
    np.testing.assert_array_equal(np.load(exported), values)
    np.testing.assert_array_equal(StoredGram.open(gram).to_numpy(), values)
    for command in (
        ("gram", "verify", gram, "--inline"),
        ("gram", "append", gram, corpus, "--inline"),
        ("fit", gram, "-o", tmp_path / "m.zarr"),
        ("cv", gram),
    ):
        answer = gramline(*command)
        assert answer.code == 2
        assert answer.error == (
            f"the kernel of {gram} cannot be made here: SubsetTree.decay must be a number above 0 and at most 1, got "
            "1.5; its values can be read and exported, for all else rebuild it with a kernel that this version of "
            "gramline takes"
        )


@pytest.mark.parametrize("kind", [*LABELED, *WHOLE])
def test_a_corpus_has_a_kernel_of_its_own_by_default(gramline: Any, kind: str, tmp_path: Path) -> None:
    corpus_of(kind, 2, 1).save(tmp_path / "c.parquet")
    built = gramline("gram", "build", tmp_path / "c.parquet", "-o", tmp_path / "g.zarr", "--inline", "--json")
    assert built.json["kernel"]["name"] == (LABELED | WHOLE)[kind]
    wrong = gramline(
        "gram", "build", tmp_path / "c.parquet", "-o", tmp_path / "h.zarr", "--inline", "--kernel", "sequence-labeling"
    )
    assert wrong.code == 2
    assert f"sequence-labeling compares sequences, but the corpus holds {kind}" in wrong.error


@pytest.mark.parametrize(
    ("kind", "learner"),
    [("trees", "labeling-perceptron"), ("dags", "labeling-perceptron"), ("trees", "kernel-zscore")],
)
def test_fit_predict_and_evaluate(gramline: Any, kind: str, learner: str, tmp_path: Path) -> None:
    train, new = tmp_path / "train.parquet", tmp_path / "new.parquet"
    for path, n, seed in ((train, "12", "1"), (new, "4", "2")):
        made = gramline("corpus", "generate", "saleslog", "--kind", kind, "--sentences", n, "--seed", seed, "-o", path)
        assert made.code == 0
    gram, model = tmp_path / "g.zarr", tmp_path / "m.zarr"
    options = ("--c", "0.8", "--observation", "polynomial:degree=2,normalized=true", "--inline")
    assert gramline("gram", "build", train, "-o", gram, *options).code == 0
    fitted = gramline("fit", gram, "-o", model, "--learner", learner, "--json")
    assert fitted.code == 0, fitted.err
    assert (fitted.json["kind"], fitted.json["kernel"]["name"]) == (kind, LABELED[kind])
    shown = [json.loads(line) for line in gramline("predict", model, new).out.splitlines()]
    assert [record["tokens"] for record in shown] == Corpus.load(new).tokens
    scores = gramline("evaluate", model, new, "--json").json
    assert scores["positions"] == Corpus.load(new).n_positions
    assert scores["accuracy"] > 0.4


@pytest.mark.parametrize(("kind", "kernel"), [("trees", TreeLabeling), ("dags", DagLabeling)])
def test_a_labeler_of_trees_and_graphs(kind: str, kernel: Any, tmp_path: Path) -> None:
    train, new = generate_saleslog(20, 1, kind), generate_saleslog(6, 2, kind)
    labeler = KernelLabeler(kernel(c=0.8, observation=Linear(normalized=True)), LabelingPerceptron(rounds=8))
    labeler.fit(train)
    assert labeler.score(train) > 0.9
    assert labeler.score(new) > 0.5
    stored = KernelLabeler(labeler.kernel, LabelingPerceptron(rounds=8), store=tmp_path / "g.zarr", block_rows=64)
    assert stored.fit(train).predict(new) == labeler.predict(new)
    labeler.save(tmp_path / "m.zarr")
    loaded = KernelLabeler.load(tmp_path / "m.zarr")
    assert loaded.predict(new) == labeler.predict(new)
    assert [scores.shape for scores in loaded.predict_scores(new)] == [(n, 13) for n in new.lengths]


@pytest.mark.parametrize("kind", LABELED)
def test_cross_validation_of_trees_and_graphs(gramline: Any, kind: str, tmp_path: Path) -> None:
    generate_saleslog(6, 1, kind).save(tmp_path / "c.parquet")
    options = ("--folds", "2", "--inline", "--cache", tmp_path / "cache", "-o", tmp_path / "run", "--json")
    answer = gramline("cv", tmp_path / "c.parquet", *options)
    assert answer.code == 0, answer.err
    assert LABELED[kind] in answer.out


def test_a_labeler_does_not_rank() -> None:
    with pytest.raises(LearnerParameterError, match="ranks candidates and labels nothing; train it with"):
        KernelLabeler(SubsetTree(), RankingPerceptron()).fit(generate_saleslog(2, 1, "parses"))


CONLLU = """1\tbig\t_\tADJ\t_\t_\t2\tamod\t_\t_
2\tdogs\t_\tNOUN\t_\t_\t3\tnsubj\t_\tNER=X
3\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_

"""


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("d.conllu", CONLLU, "trees"),
        ("d.jsonl", '{"tokens": ["a", "b", "c"], "edges": [[0, 1], [0, 2]], "labels": ["X", "Y", null]}\n', "dags"),
        ("d.jsonl", '{"tokens": ["a", "b"], "tags": ["X", "Y"]}\n', "tagged"),
        ("d.mrg", "(S (NP they) (VP run))\n(S (NP we) (VP run))\n", "parses"),
    ],
)
def test_files_of_every_kind_become_gram_matrices(
    gramline: Any, name: str, content: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    corpus = tmp_path / "c.parquet"
    assert gramline("corpus", "import", tmp_path / name, "-o", corpus, "--json").json["kind"] == kind
    assert kind in gramline("corpus", "show", corpus).out
    built = gramline("gram", "build", corpus, "-o", tmp_path / "g.zarr", "--inline", "--json")
    assert built.code == 0, built.err
    assert built.json["n_present"] == 1
