"""`gramline cv` on rankers: folds of whole groups, the first candidates beside them, and the winner trained."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gramline.pipeline.candidates.columns import Groups, ranking_score
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.ranking import solve_ranking
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.models.ranker import Ranker


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    """Fifteen groups of three, whose right candidates have an x below A; the first of a group is right in a third."""
    draw = np.random.default_rng(0)
    trees, groups, scores, known = [], [], [], []
    for group in range(15):
        right = int(draw.integers(3))
        for k in range(3):
            word = "x" if k == right else draw.choice(["y", "z"])
            trees.append(["S", ["A", word], ["B", str(draw.choice(["x", "y"]))]])
            groups.append(group)
            scores.append(1.0 if k == right else 0.25)
            known.append(-1.0 - k - draw.random())
    corpus = Corpus.from_parses(trees).with_column("group", groups).with_column("score", scores)
    corpus.with_column("probability", known).save(tmp_path / "c.parquet")
    return tmp_path


CV = ("--kernel", "subset-tree:decay=0.5,normalized=true", "--folds", "3", "--seed", "1", "--inline")


def test_settings_and_the_first_candidates_in_one_table(gramline: Any, candidates: Path) -> None:
    command = ("cv", candidates / "c.parquet", "--learner", "ranking-svm", "--set", "C=0.01,10", *CV)
    command = (*command, "--set", "log_probability=0,auto", "-o", candidates / "c.run", "--cache", candidates / "cache")
    answer = gramline(*command)
    assert answer.code == 0, answer.err
    for expected in (
        "15 groups, 45 candidates, 3 folds",
        "* ranking-svm (C=",
        "= first candidates",
        "= best candidates",
    ):
        assert expected in answer.out
    told = gramline(*command, "--json").json
    assert told["problems"] == {"total": 12, "solved_before": 12}
    assert "nothing was trained" in gramline(*command).out
    assert told["settings"][told["best"]]["scores"]["score"]["mean"] == 1.0
    assert told["first"]["score"]["mean"] < 0.8
    assert told["oracle"]["score"]["mean"] == 1.0
    assert told["folds"]["held_out"] == [5, 5, 5]
    # the predictions give the scores again, and no group is parted
    corpus = Corpus.load(candidates / "c.parquet")
    chosen = pq.read_table(candidates / "c.run" / "predictions.parquet").to_pylist()
    for number, setting in enumerate(told["settings"]):
        for fold, value in enumerate(setting["scores"]["score"]["folds"]):
            own = [row for row in chosen if (row["setting"], row["fold"]) == (number, fold)]
            rows = [row for one in own for row in Groups.of(corpus).members[int(one["group"])]]
            assert ranking_score(corpus.select(rows), [one["candidate"] for one in own]).chosen == pytest.approx(value)
    values = pq.read_table(candidates / "c.run" / "results.parquet").to_pylist()
    assert len(values) == 4 * 3 * 2
    assert json.loads((candidates / "c.run" / "results.json").read_text())["kind"] == "ranking"
    refused = gramline("report", candidates / "c.run")
    assert (refused.code, "is a run of rankers, which has no page" in refused.error) == (2, True)
    # the winner, trained on all groups
    assert gramline("fit", "--from-run", candidates / "c.run", "-o", candidates / "r.zarr", "--inline").code == 0
    ranker = Ranker.load(candidates / "r.zarr")
    assert ranker.learner.get_params()["C"] == told["settings"][told["best"]]["params"]["C"]
    assert ranking_score(corpus, ranker.choose(corpus)).chosen == 1.0


def test_a_stored_matrix_and_a_job_file_say_the_same(gramline: Any, candidates: Path) -> None:
    corpus, store = candidates / "c.parquet", candidates / "g.zarr"
    assert gramline("gram", "build", corpus, "-o", store, *CV[:2], "--inline").code == 0
    by_store = gramline(
        *("cv", store, "--corpus", corpus, "--learner", "ranking-perceptron", "--set", "passes=1,3"),
        *("-o", candidates / "s.run", "--json", *CV[2:]),
    ).json
    job = candidates / "job.toml"
    job.write_text(
        """
        [corpus]
        path = "c.parquet"
        [kernel]
        name = "subset-tree"
        decay = 0.5
        normalized = true
        [learner]
        name = "ranking-perceptron"
        passes = [1, 3]
        [folds]
        count = 3
        seed = 1
        [output]
        path = "j.run"
        """.replace("\n        ", "\n")
        .replace("c.parquet", str(corpus))
        .replace("j.run", str(candidates / "j.run"))
    )
    by_file = gramline("cv", job, "--inline", "--json").json
    assert [row["scores"] for row in by_store["settings"]] == [row["scores"] for row in by_file["settings"]]


def test_an_interrupted_run_goes_on(gramline: Any, candidates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gramline.pipeline.crossval import solve

    calls: list[str] = []

    def stops(task: Any) -> Any:
        calls.append(task.digest)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve_ranking(task)

    monkeypatch.setattr(solve, "solve_ranking", stops)
    command = ("cv", candidates / "c.parquet", "--learner", "ranking-perceptron", "-o", candidates / "i.run", *CV)
    assert gramline(*command, "--cache", candidates / "cache").code != 0
    assert len(RunFolder(candidates / "i.run").finished()) == 1
    assert gramline(*command, "--cache", candidates / "cache", "--json").json["problems"]["solved_before"] == 1
    assert len(calls) == 4


def test_a_score_below_the_first_candidates_is_noted(gramline: Any, candidates: Path) -> None:
    corpus = Corpus.load(candidates / "c.parquet")
    order = np.lexsort((-np.array(corpus.column("score")), np.array(corpus.column("group"))))
    noise = corpus.select(order).trees
    draw = np.random.default_rng(1)
    worse = Corpus.from_parses([noise[k] for k in draw.permutation(len(noise))])
    for name in ("group", "score", "probability"):
        worse = worse.with_column(name, corpus.select(order).column(name))
    worse.save(candidates / "w.parquet")
    command = ("cv", candidates / "w.parquet", "--learner", "ranking-perceptron", *CV, "--cache", candidates / "cache")
    answer = gramline(*command, "-o", candidates / "w.run")
    assert "the candidates chosen in held-out groups by the best setting score" in answer.err
    gram = candidates / "w.zarr"
    assert gramline("gram", "build", candidates / "w.parquet", "-o", gram, *CV[:2], "--inline").code == 0
    fitting = ("fit", gram, "-o", candidates / "w.model", "--learner", "ranking-svm", "--set", "log_probability=auto")
    fitted = gramline(*fitting, "--candidates", candidates / "w.parquet")
    assert "log probabilities have the weight" in fitted.err


def test_refusals_are_one_line(gramline: Any, candidates: Path) -> None:
    corpus = candidates / "c.parquet"
    (candidates / "folds.json").write_text("[[0, 1], [2, 3]]")
    ranking = ("--learner", "ranking-svm", *CV)
    plain = candidates / "plain.parquet"
    Corpus.from_parses([["S", ["A", "x"]]] * 9).save(plain)
    labels = ("--kernel", "sequence-labeling")
    for command, said in (
        (("cv", corpus, *ranking, "--metric", "f1"), "rankers are compared by the score of the chosen candidates"),
        (("cv", corpus, *ranking, "--inner", "3"), "rankers have no nested selection"),
        (("cv", corpus, *ranking, "--plan"), "nobody knows how long rankers train"),
        (("cv", corpus, *ranking, "--folds-file", candidates / "folds.json"), "some candidates of group 0"),
        (("cv", corpus, *ranking, "--set", "C=-1"), "C must be a number above 0"),
        (("cv", corpus, *ranking, "--set", "log_probability=some"), "log_probability must be"),
        (("cv", corpus, *ranking, "--folds", "16"), "15 groups can be cut into 2 to 15 folds, not 16"),
        (("cv", plain, *ranking), "no column 'group'"),
        (("cv", corpus, "--learner", "ranking-svm", *labels), "compares sequences"),
    ):
        answer = gramline(*command, "-o", candidates / "x.run", "--cache", candidates / "cache")
        assert (answer.code, said in answer.error) == (2, True), answer.error
    assert gramline("gram", "build", corpus, "-o", candidates / "g.zarr", *CV[:2], "--inline").code == 0
    fitting = (
        "fit",
        candidates / "g.zarr",
        "-o",
        candidates / "r.zarr",
        "--candidates",
        corpus,
        "--learner",
        "ranking-svm",
    )
    assert "--development is one of the corpora given as --candidates" in gramline(*fitting, "--development", "x").error
    bare = gramline("cv", candidates / "g.zarr", *ranking[:2], "-o", candidates / "x.run").error
    assert "rankers learn from candidates, whose groups and scores are in their corpus; give it (--corpus)" in bare
