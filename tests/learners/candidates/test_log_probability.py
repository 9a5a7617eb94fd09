"""The weight of log probabilities: in every score, and chosen on held-out groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import ranking_perceptron as oracle
from tolerances import assert_close

from gramline.learners.candidates.log_probability import STEPS, WeightChoice
from gramline.learners.errors import GroupError, LearnerError, LearnerParameterError
from gramline.learners.margins.ranking import RankingSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.ranking import RankingPerceptron

RANKERS: dict[str, Any] = {
    "voted": RankingPerceptron(passes=2),
    "averaged": RankingPerceptron(passes=2, average=True),
    "plain": RankingPerceptron(passes=2, vote=False),
    "svm": RankingSVM(C=1.0),
}
every_ranker = pytest.mark.parametrize("name", RANKERS)


class Candidates:
    """Groups of three. What makes a candidate right is half in its features and half in its log probability."""

    def __init__(self, seed: int, n_groups: int = 30, share: float = 0.5) -> None:
        draw = np.random.default_rng(seed)
        self.features = draw.normal(size=(3 * n_groups, 3))
        self.log_probabilities = draw.normal(size=3 * n_groups)
        worth = (1 - share) * self.features[:, 0] + share * self.log_probabilities
        self.groups = []
        for first in range(0, 3 * n_groups, 3):
            best = first + int(worth[first : first + 3].argmax())
            self.groups.append([best, *(row for row in range(first, first + 3) if row != best)])

    def gram(self, other: Candidates | None = None, block_rows: int | None = None) -> DenseGram:
        columns = self.features if other is None else other.features
        lengths = None if other is None else [1] * len(columns)
        return DenseGram(self.features @ columns.T, [1] * len(self.features), lengths, block_rows=block_rows)

    def right(self, learner: Any, train: Candidates) -> float:
        members = [sorted(group) for group in self.groups]
        chosen = learner.predict(train.gram(self), members, self.log_probabilities)
        return float(np.mean([own[k] == group[0] for own, k, group in zip(members, chosen, self.groups, strict=True)]))


@every_ranker
def test_a_weight_of_zero_is_the_ranker_without_it(name: str) -> None:
    train, new = Candidates(0), Candidates(1)
    plain = RANKERS[name].fresh().fit(train.gram(), train.groups)
    given = RANKERS[name].fresh().fit(train.gram(), train.groups, log_probabilities=train.log_probabilities)
    assert given.log_probability_ == plain.log_probability_ == 0.0
    assert_close(given.decision_scores(train.gram(new)), plain.decision_scores(train.gram(new)))


@every_ranker
def test_it_is_a_part_of_every_score(name: str) -> None:
    train, new = Candidates(0), Candidates(1)
    learner = RANKERS[name].fresh().set_params(log_probability=0.7)
    learner.fit(train.gram(), train.groups, log_probabilities=train.log_probabilities)
    cross, zeros = train.gram(new), np.zeros(len(new.features))
    with_it, without = (learner.decision_scores(cross, None, known) for known in (new.log_probabilities, zeros))
    assert_close(with_it - without, 0.7 * new.log_probabilities)
    huge = learner.fresh().set_params(log_probability=1e9)
    huge.fit(train.gram(), train.groups, log_probabilities=train.log_probabilities)
    columns = [sorted(group) for group in new.groups]
    likely = [int(new.log_probabilities[own].argmax()) for own in columns]
    assert huge.predict(cross, columns, new.log_probabilities) == likely


@pytest.mark.parametrize("block_rows", [None, 4])
def test_the_perceptron_is_the_literal_one_with_offsets(block_rows: int | None) -> None:
    """Whole numbers, so that the literal one computes exactly: log P is one more feature, whose weight stays."""
    draw = np.random.default_rng(3)
    features, known = draw.integers(-2, 3, size=(24, 3)), draw.integers(-4, 1, size=24)
    gram, groups = features @ features.T, [list(range(first, first + 3)) for first in range(0, 24, 3)]
    expected = oracle.train(gram.tolist(), groups, 3, offsets=(2 * known).tolist())
    learner = RankingPerceptron(passes=3, log_probability=2).fit(
        DenseGram(gram.astype(float), [1] * 24, block_rows=block_rows), groups, log_probabilities=known
    )
    assert learner.counts_.tolist() == [count for _, count in expected]
    assert sum(learner.mistakes_) == len(expected)


@every_ranker
def test_where_nothing_is_learned_the_most_probable_one_is_chosen(name: str) -> None:
    train = DenseGram(np.eye(2), [1, 1])
    learner = RANKERS[name].fresh().set_params(log_probability=5.0)
    learner.fit(train, [2], log_probabilities=[0.0, -9.0])
    assert learner.predict(DenseGram(np.zeros((2, 3)), [1, 1], [1, 1, 1]), [3], [-2.0, -1.0, -3.0]) == [1]


@every_ranker
@pytest.mark.parametrize("block_rows", [None, 7])
def test_auto_chooses_a_weight_that_serves_new_groups(name: str, block_rows: int | None) -> None:
    train, new = Candidates(0), Candidates(1, 60)
    fitting = (train.gram(block_rows=block_rows), train.groups)
    chosen = RANKERS[name].fresh().set_params(log_probability="auto")
    chosen.fit(*fitting, log_probabilities=train.log_probabilities)
    plain = RANKERS[name].fresh().fit(*fitting)
    choice = WeightChoice(**chosen.weight_choice_)
    assert choice.weights[0] == 0.0 < chosen.log_probability_ == choice.weight
    assert len(choice.weights) == len(choice.values) == len(STEPS) + 1
    assert choice.n_held_out == 30
    assert new.right(chosen, train) > new.right(plain, train)
    assert chosen.notes()[-1].startswith(f"log probabilities have the weight {choice.weight:.3g}, the best for 30")


@every_ranker
def test_auto_leaves_out_what_says_nothing(name: str) -> None:
    train = Candidates(0, share=0.0)
    learner = RANKERS[name].fresh().set_params(log_probability="auto")
    learner.fit(train.gram(), train.groups, log_probabilities=np.full(90, -1.0))
    assert (learner.log_probability_, learner.weight_choice_["weights"]) == (0.0, [0.0])
    learner.fit(train.gram(), train.groups, log_probabilities=train.log_probabilities)
    choice = WeightChoice(**learner.weight_choice_)
    assert choice.values[0] > choice.values[-1], "features decide here"


def test_named_groups_and_their_worth_choose() -> None:
    train = Candidates(0)
    learner = RankingSVM(log_probability="auto")
    learner.fit(train.gram(), train.groups, log_probabilities=train.log_probabilities, development=[3, 1, 28])
    assert learner.weight_choice_["n_held_out"] == 3
    # the least probable candidates are worth most: whatever is correct, log P must not count
    worth = -train.log_probabilities
    learner.fit(train.gram(), train.groups, log_probabilities=train.log_probabilities, worth=worth)
    assert learner.log_probability_ == 0.0


def test_a_note_says_where_the_most_probable_ones_would_be_better() -> None:
    choice = WeightChoice([0.0, 1.0], [0.5, 0.6], 0.7, 40)
    weight, worse = choice.notes()
    assert weight == "log probabilities have the weight 1, the best for 40 held-out groups (0: 0.5000, 1: 0.6000)"
    assert worse.startswith(
        "the candidates chosen in held-out groups score 0.6000, less than the most probable ones (0.7000)"
    )
    assert len(WeightChoice([0.0, 1.0], [0.5, 0.7], 0.7, 40).notes()) == 1


def test_wrong_input_is_refused() -> None:
    train = Candidates(0, 4)
    gram, known = train.gram(), train.log_probabilities
    fit = RankingSVM(log_probability="auto").fit
    refusals: list[tuple[Any, str]] = [
        (
            lambda: fit(gram, train.groups),
            "log probabilities have the weight auto in the scores of candidates, but none",
        ),
        (
            lambda: fit(gram, train.groups, log_probabilities=known[:3]),
            r"one number for each of 12 candidates, got the shape \(3,\)",
        ),
        (lambda: fit(gram, train.groups, log_probabilities=[*known[:11], -np.inf]), "candidate 11 has -inf"),
        (
            lambda: fit(gram, train.groups, log_probabilities="many"),
            "must be a list with one number per candidate, got 'many'",
        ),
        (lambda: fit(gram, train.groups, log_probabilities=["a"] * 12), "log_probabilities must be numbers"),
        (
            lambda: fit(gram, train.groups, log_probabilities=known, worth=[1.0]),
            "worth must be one number for each of 12",
        ),
    ]
    for action, said in refusals:
        with pytest.raises(LearnerError, match=said):
            action()
    for development, said in (
        ([4], r"numbers of groups from 0 to 3, got \[4\]"),
        ([], r"got \[\]"),
        ("ab", "got 'ab'"),
        (range(4), "holds out every group"),
    ):
        with pytest.raises(GroupError, match=said):
            fit(gram, train.groups, log_probabilities=known, development=development)
    with pytest.raises(GroupError, match="needs groups to hold out, but there is 1; give a number"):
        fit(gram, train.groups[:1], log_probabilities=known)
    fitted = RankingSVM(log_probability=0.5).fit(gram, train.groups, log_probabilities=known)
    with pytest.raises(LearnerError, match=r"weight 0.5 in the scores of candidates, but none are given"):
        fitted.predict(gram, [3] * 4)
    for bad in (-1, "some", None, True):
        with pytest.raises(LearnerParameterError) as caught:
            RankingSVM(log_probability=bad).fit(gram, train.groups, log_probabilities=known)  # type: ignore[arg-type]
        assert caught.value.key == "log_probability"
