"""A saved ranker chooses what its learner chooses, from a forest where there is one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged import resealed

from gramline.kernels.base import Kernel
from gramline.kernels.structures.forest import WeightedForest
from gramline.kernels.structures.forest_sequence import ForestSequence
from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.kernels.structures.tagging import Tagging
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.errors import LearnerError
from gramline.learners.margins.ranking import RankingSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.candidates.columns import Groups, ranking_score
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError, StoreError, StoreTakenError
from gramline.pipeline.gram.append import append_gram
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.models import ranker as ranker_module
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker
from gramline.pipeline.models.ranker_training import fit_ranker, forest_speed, training_notes
from gramline.pipeline.models.saved import SavedLearner, save_learner
from gramline.pipeline.storage.places import RANKER


def phrase(draw: random.Random, depth: int) -> list[Any]:
    label = draw.choice("AB")
    if depth == 0:
        return [label, draw.choice("xyz")]
    return [label, *(phrase(draw, depth - 1) for _ in range(draw.randint(1, 2)))]


def parses(seed: int, n_groups: int) -> Corpus:
    """Groups of four random trees, the score of each the part of its words that are x."""
    draw = random.Random(seed)
    trees = [phrase(draw, 3) for _ in range(4 * n_groups)]
    scores = [str(tree).count("'x'") / max(1, sum(str(tree).count(f"'{word}'") for word in "xyz")) for tree in trees]
    corpus = Corpus.from_parses(trees).with_column("group", [f"s{k // 4}" for k in range(len(trees))])
    return corpus.with_column("score", scores).with_column("probability", [-draw.random() for _ in trees])


def tagged(seed: int, n_groups: int) -> Corpus:
    draw = random.Random(seed)
    sentences = [[(draw.choice("ab"), draw.choice("NV")) for _ in range(5)] for _ in range(3 * n_groups)]
    corpus = Corpus.from_tagged(sentences).with_column("group", [k // 3 for k in range(len(sentences))])
    corpus = corpus.with_column("score", [sum(tag == "N" for _, tag in pairs) / 5 for pairs in sentences])
    return corpus.with_column("probability", [-draw.random() for _ in sentences])


LEARNERS = [
    RankingPerceptron(passes=3),
    RankingPerceptron(passes=3, average=True),
    RankingPerceptron(passes=3, vote=False),
    RankingSVM(C=0.1),
    RankingPerceptron(passes=3, log_probability=0.7),
    RankingSVM(C=0.1, log_probability="auto"),
]
NAMES = ["voted", "averaged", "plain", "svm", "voted with log P", "svm with log P"]


@pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)
@pytest.mark.parametrize(
    "kernel", [SubsetTree(0.4), SubsetTree(0.3, normalized=True), SubsetTree(1.0, 2), Tagging(0.5)]
)
def test_a_saved_ranker_chooses_what_its_learner_chooses(
    learner: CandidateRanker, kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tagged if isinstance(kernel, Tagging) else parses
    train, new = make(1, 14), make(2, 9)
    gram = build_gram(kernel, train, tmp_path / "gram.zarr", block_rows=9)
    fitted = learner.fresh()
    ranker = fit_ranker(fitted, gram, [train])
    ranker.save(tmp_path / "ranker.zarr")
    loaded = Ranker.load(tmp_path / "ranker.zarr")
    groups = Groups.of(new).members
    known = new.column("probability")
    expected = fitted.predict(DenseGram.of(kernel, train, new), groups, known)
    assert len(set(expected)) > 1
    for one in (ranker, loaded):
        assert one.choose(new) == expected
        assert one.choose(new.packed(like=one.support), groups[::-1], known) == expected[::-1]
    monkeypatch.setattr(ranker_module, "CHANGES", 1)
    assert loaded.choose(new) == expected, "one group at a time"
    expected_form = ForestSequence if learner.is_voting else WeightedForest
    assert loaded.forest is None if isinstance(kernel, Tagging) else isinstance(loaded.forest, expected_form)


def test_the_description_tells_how_much_smaller_the_forest_is(tmp_path: Path) -> None:
    train = parses(1, 14)
    learner = RankingPerceptron(passes=2)
    ranker = fit_ranker(learner, build_gram(SubsetTree(0.4), train, tmp_path / "gram.zarr"), [train])
    told = json.loads(json.dumps(ranker.describe()))
    assert (told["learner"], told["kernel"]["decay"], told["kind"]) == ("ranking-perceptron", 0.4, "parses")
    assert told["hypotheses"] == sum(learner.mistakes_)
    forest = told["forest"]
    assert forest["trees"] == learner.support().sum()
    assert forest["subtrees"] < forest["nodes"] == told["support_positions"]
    assert forest["ratio"] == pytest.approx(forest["nodes"] / forest["subtrees"])
    assert len(ranker.support) == 0, "the forest stands for the trees"
    measured = forest_speed(ranker, learner, train.packed())
    assert measured is not None
    assert measured.forest_seconds > 0 < measured.ratio


def test_appended_candidates_are_trained_on_too(tmp_path: Path) -> None:
    whole = parses(1, 14)
    first, second = whole.select(range(40)), whole.select(range(40, 56))
    kernel = SubsetTree(0.4)
    build_gram(kernel, first, tmp_path / "gram.zarr", block_rows=16)
    gram = append_gram(tmp_path / "gram.zarr", second)
    ranker = fit_ranker(RankingPerceptron(), gram, [first, second])
    at_once = fit_ranker(RankingPerceptron(), build_gram(kernel, whole, tmp_path / "whole.zarr"), [whole])
    assert ranker.choose(parses(2, 9)) == at_once.choose(parses(2, 9))
    for given, said in (
        ([first], "has 56 candidates, but the corpora given have 40; give all"),
        ([second, first], "candidate corpus 0 is not the one that the Gram matrix was built from"),
    ):
        with pytest.raises(InputError, match=said):
            fit_ranker(RankingPerceptron(), gram, given)


def test_the_best_of_a_group_counts_as_correct() -> None:
    corpus = Corpus.from_tagged([[("a", "N")]] * 5).with_column("group", ["p", "q", "p", "q", "p"])
    corpus = corpus.with_column("score", [0.5, 1.0, 0.9, 1.0, 0.9]).with_column("weight", [1, 3, 1, 3, 1])
    groups = Groups.of(corpus)
    assert (groups.names, groups.members) == (["p", "q"], [[0, 2, 4], [1, 3]])
    assert groups.correct_first(corpus) == [[2, 0], [1]], "candidates as good as the best are not held against it"
    score = ranking_score(corpus, [2, 1])
    assert (score.chosen, score.first, score.oracle) == pytest.approx((3.9 / 4, 3.5 / 4, 3.9 / 4))
    assert (score.n_groups, score.best_chosen) == (2, 1.0)
    assert score.error_reduction == pytest.approx(0.8)
    assert ranking_score(corpus, [0, 0], missing=[4.0]).chosen == pytest.approx(3.5 / 8)


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    train = parses(1, 5)
    kernel = SubsetTree(0.4)
    learner = RankingPerceptron().fit(DenseGram.of(kernel, train), Groups.of(train).correct_first(train))
    ranker = Ranker.of(learner, train, kernel)
    plain = Corpus.from_parses(train.trees)
    half_grouped = plain.with_column("group", [0, None, *range(18)])
    half_scored = train.with_column("score", [0.1, 0.2, None, *[0.5] * 17])
    place, notes = tmp_path / "ranker.zarr", tmp_path / "notes"
    ranker.save(place)
    notes.write_text("hello")
    refusals: list[tuple[Callable[[], object], type[Exception], str]] = [
        (
            lambda: Ranker.of(learner, train.select(range(3)), kernel),
            LearnerError,
            "trained on 20 candidates, but the corpus has 3",
        ),
        (lambda: ranker.choose(tagged(1, 2)), InputError, "the ranker is for parses, but the corpus holds tagged"),
        (lambda: ranker.choose(train.packed()), InputError, "packed candidates have no groups"),
        (lambda: ranker.choose(plain), InputError, "no column 'group'; `gramline corpus candidates`"),
        (
            lambda: Groups.of(half_grouped),
            InputError,
            r"^structure 1: the candidate has no group; give every candidate",
        ),
        (lambda: Groups.of(train).correct_first(half_scored), InputError, "structure 2: the score must be a number"),
        (lambda: ranker.save(place), StoreTakenError, "exists already"),
        (lambda: ranker.save(notes, overwrite=True), StoreError, "is not a model but a file; choose another path, or"),
        (lambda: Model.load(place), StoreError, "is not a model but a ranker"),
    ]
    for action, kind, said in refusals:
        with pytest.raises(kind, match=said):
            action()
    assert notes.read_text() == "hello"
    ranker.save(place, overwrite=True)
    described = (tmp_path / "ranker.zarr" / "zarr.json").read_text()
    for change, said in (
        ({"format": "gramline model"}, "is not a ranker"),
        ({"version": 9}, "a ranker of format 9, but this version of gramline reads formats 1 to 2"),
        ({"kernel": {"name": "tagging"}}, "damaged ranker .*Tagging compares tagged, but the corpus holds parses"),
        ({"learner": {"name": "nothing"}}, "damaged ranker .*nothing"),
    ):
        (tmp_path / "ranker.zarr" / "zarr.json").write_text(described)
        resealed(tmp_path / "ranker.zarr", change)
        with pytest.raises(StoreError, match=said):
            Ranker.load(tmp_path / "ranker.zarr")


@pytest.mark.parametrize(
    ("kernel", "more", "said"),
    [
        (
            Tagging(),
            {"forest": {"productions": np.zeros(1)}},
            "a forest belongs to the subset-tree kernel, not to tagging",
        ),
        (None, {}, "a ranker needs the kernel of its Gram matrix"),
    ],
)
def test_parts_that_do_not_belong_together(
    tmp_path: Path, kernel: Kernel | None, more: dict[str, Any], said: str
) -> None:
    train = tagged(1, 4)
    learner = RankingPerceptron().fit(DenseGram.of(Tagging(), train), Groups.of(train).correct_first(train))
    saved = SavedLearner(learner, kernel, train.packed(), more)
    save_learner(tmp_path / "ranker.zarr", RANKER, saved, overwrite=False)
    with pytest.raises(StoreError, match=rf"damaged ranker \({said}\); train it again"):
        Ranker.load(tmp_path / "ranker.zarr")


def test_an_open_weight_is_chosen_by_score_and_said(tmp_path: Path) -> None:
    whole = parses(1, 20)
    first, second = whole.select(range(40)), whole.select(range(40, 80))
    kernel = SubsetTree(0.4, normalized=True)
    build_gram(kernel, first, tmp_path / "gram.zarr", block_rows=16)
    gram = append_gram(tmp_path / "gram.zarr", second)
    learner = RankingSVM(log_probability="auto")
    ranker = fit_ranker(learner.fresh(), gram, [first, second], development=1)
    choice = ranker.learner.weight_choice_
    assert choice["n_held_out"] == 10
    assert 0 < choice["most_probable"] < 1, "scores, not the share of best candidates"
    ranker.save(tmp_path / "ranker.zarr")
    loaded = Ranker.load(tmp_path / "ranker.zarr")
    assert loaded.learner.log_probability_ == choice["weights"][int(np.argmax(choice["values"]))]
    assert loaded.describe()["log_probability"] == loaded.learner.log_probability_
    notes = training_notes(loaded, [first, second])
    assert notes == loaded.learner.notes()
    assert "10 held-out groups" in notes[0]
    every = fit_ranker(learner.fresh(), gram, [first, second])
    assert every.learner.weight_choice_["n_held_out"] == 20
    for given, development, said in (
        (RankingSVM(), 0, 'which is not "auto"'),
        (learner, 2, "there is no candidate corpus 2; there are 2, from 0"),
    ):
        with pytest.raises(InputError, match=said):
            fit_ranker(given.fresh(), gram, [first, second], development=development)


def test_log_probabilities_are_needed_where_they_count(tmp_path: Path) -> None:
    train = parses(1, 14)
    gram = build_gram(SubsetTree(0.4), train, tmp_path / "gram.zarr")
    bare = Corpus.from_parses(train.trees).with_column("group", train.column("group"))
    bare = bare.with_column("score", train.column("score"))
    fit_ranker(RankingSVM(C=0.1), gram, [bare]).choose(bare)
    with pytest.raises(InputError, match="no column 'probability'"):
        fit_ranker(RankingSVM(log_probability=0.5), gram, [bare])
    ranker = fit_ranker(RankingSVM(C=0.1, log_probability=0.5), gram, [train])
    with pytest.raises(InputError, match="no column 'probability'"):
        ranker.choose(bare)
    with pytest.raises(LearnerError, match=r"weight 0\.5 in the scores of candidates, but none are given"):
        ranker.choose(train.packed(), Groups.of(train).members)


def test_a_ranker_that_does_worse_than_the_first_candidates_says_so(tmp_path: Path) -> None:
    train = parses(1, 14)
    order = np.lexsort((-np.array(train.column("score")), np.arange(len(train)) // 4))
    best_first = train.select(order)
    ranker = fit_ranker(
        RankingPerceptron(), build_gram(SubsetTree(0.4, 1), best_first, tmp_path / "g.zarr"), [best_first]
    )
    (note,) = training_notes(ranker, [best_first])
    assert note.startswith("the candidates chosen in training groups score 0.")
    assert "less than the most probable ones (" in note
    assert "(log_probability=auto)" in note


def test_a_weight_that_is_no_number_is_damage(tmp_path: Path) -> None:
    train = parses(1, 4)
    ranker = fit_ranker(
        RankingSVM(log_probability=0.5), build_gram(SubsetTree(0.4), train, tmp_path / "g.zarr"), [train]
    )
    ranker.learner.log_probability_ = "much"  # type: ignore[assignment]
    ranker.save(tmp_path / "ranker.zarr")
    with pytest.raises(StoreError, match="the weight of log probabilities is 'much', no number of at least 0"):
        Ranker.load(tmp_path / "ranker.zarr")
