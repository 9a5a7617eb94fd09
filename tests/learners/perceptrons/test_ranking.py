"""RankingPerceptron against its literal definition, for every block size."""

import json

import numpy as np
import pytest
from oracles import ranking_perceptron as oracle
from tolerances import assert_close

from gramline.kernels import SubsetTree
from gramline.learners.catalogue import learner_from_state
from gramline.learners.errors import GroupError, LearnerError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.layout import select_rows
from gramline.learners.perceptrons import ranking as module
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.build import build_gram

WAYS = {"voted": {}, "averaged": {"average": True}, "plain": {"vote": False}}


class CountingGram(DenseGram):
    """Counts the tiles that are read."""

    n_reads = 0

    def tile(self, i, j):
        self.n_reads += 1
        return super().tile(i, j)

    def select(self, rows, cols):
        return select_rows(self.layout, lambda keys: ((key, self.tile(*key)) for key in keys), rows, cols)


class Problem:
    """Whole-number Gram matrices of few dimensions, so that ties are common; some groups have one candidate only."""

    def __init__(self, seed, scale=1):
        draw = np.random.default_rng(seed)
        self.sizes = [int(size) for size in draw.integers(1, 5, size=9)]
        self.new_sizes = [int(size) for size in draw.integers(1, 5, size=6)]
        rows = draw.integers(-1, 3, size=(sum(self.sizes), 4)) * scale
        cols = draw.integers(-1, 3, size=(sum(self.new_sizes), 4)) * scale
        self.gram, self.cross = rows @ rows.T, rows @ cols.T

    @property
    def groups(self):
        return consecutive(self.sizes)

    @property
    def new_groups(self):
        return consecutive(self.new_sizes)

    def operators(self, block_rows=None):
        n, m = self.cross.shape
        return (
            CountingGram(self.gram.astype(float), [1] * n, block_rows=block_rows),
            CountingGram(self.cross.astype(float), [1] * n, [1] * m, block_rows=block_rows),
        )


def consecutive(sizes):
    ends = np.cumsum(sizes).tolist()
    return [list(range(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


@pytest.mark.parametrize("block_rows", [1, 3, 7, None])
@pytest.mark.parametrize("passes", [1, 3, 9])
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_literal_definition(seed, passes, block_rows, monkeypatch):
    monkeypatch.setattr(module, "HYPOTHESES", 3)
    monkeypatch.setattr(module, "SLAB_BYTES", 1000)
    problem = Problem(seed)
    gram, cross = problem.operators(block_rows)
    hypotheses = oracle.train(problem.gram.tolist(), problem.groups, passes)
    mean = oracle.average(hypotheses)
    learner = RankingPerceptron(passes=passes).fit(gram, problem.sizes)
    assert learner.counts_.tolist() == [count for _, count in hypotheses]
    assert sum(learner.mistakes_) == len(hypotheses)

    table = problem.cross.tolist()
    voted = [oracle.choose_by_votes(table, hypotheses, problem.groups, columns) for columns in problem.new_groups]
    averaged = [oracle.choose(table, mean, problem.groups, columns) for columns in problem.new_groups]
    plain = [oracle.choose(table, hypotheses[-1][0], problem.groups, columns) for columns in problem.new_groups]
    for way, expected in (("voted", voted), ("averaged", averaged), ("plain", plain)):
        learner.set_params(**({"vote": True, "average": False} | WAYS[way]))
        assert learner.predict(cross, problem.new_sizes) == expected
    n_columns = problem.cross.shape[1]
    last = [float(oracle.function(table, hypotheses[-1][0], problem.groups, x)) for x in range(n_columns)]
    assert_close(learner.decision_scores(cross), last)
    learner.set_params(average=True)
    assert_close(
        learner.decision_scores(cross),
        [float(oracle.function(table, mean, problem.groups, x)) for x in range(n_columns)],
    )


@pytest.mark.parametrize("seed", range(6))
def test_decisions_do_not_depend_on_blocks_when_sums_are_rounded(seed):
    problem = Problem(seed, scale=1)
    found = set()
    for block_rows in (1, 2, 5, None):
        gram, _ = problem.operators(block_rows)
        gram.matrix = gram.matrix * 0.1  # ties stay ties, but sums of tenths are rounded
        learner = RankingPerceptron(passes=4).fit(gram, problem.sizes)
        found.add((tuple(learner.updates_.ravel().tolist()), tuple(learner.counts_.tolist())))
    hypotheses = oracle.train(problem.gram.tolist(), problem.groups, 4)
    assert [counts for _, counts in found] == [tuple(count for _, count in hypotheses)]


def test_index_lists_in_any_order_mean_the_same():
    problem = Problem(5)
    gram, cross = problem.operators(4)
    order = np.random.default_rng(0).permutation(gram.shape[0])
    place = np.argsort(order)
    shuffled = DenseGram(gram.matrix[np.ix_(order, order)], [1] * len(order), block_rows=4)
    crossed = DenseGram(cross.matrix[order], [1] * len(order), [1] * cross.shape[1])
    one = RankingPerceptron(passes=3).fit(gram, problem.sizes)
    two = RankingPerceptron(passes=3).fit(shuffled, [[int(place[row]) for row in group] for group in problem.groups])
    assert two.weights_.tolist() == one.weights_[order].tolist()
    assert two.predict(crossed, problem.new_groups) == one.predict(cross, problem.new_sizes)


def test_reads_each_column_of_tiles_once_per_batch_with_a_mistake():
    n_groups = 40
    features = (
        np.repeat([[3.0, 0.0], [0.0, 1.0]], n_groups, axis=0).reshape(2, n_groups, 2).swapaxes(0, 1).reshape(-1, 2)
    )
    gram = CountingGram(features @ features.T, [1] * (2 * n_groups), block_rows=10)
    learner = RankingPerceptron(passes=5).fit(gram, [2] * n_groups)
    assert learner.mistakes_ == [1, 0]
    # 4 batches of 2 x 2 blocks, 3 tiles of which are stored, in each of two passes; the first batch has a mistake, and
    # one tile brings it to each of the 6 other blocks
    assert gram.n_reads == 2 * 4 * 3 + 6
    assert learner.counts_.tolist() == [5 * n_groups]


def test_voting_reads_each_needed_tile_once():
    problem = Problem(2)
    gram, cross = problem.operators(5)
    learner = RankingPerceptron(passes=2).fit(gram, problem.sizes)
    learner.predict(cross, problem.new_sizes)
    assert 0 < cross.n_reads <= cross.layout.n_tiles


def test_vote_shares_add_up_to_one_per_group():
    problem = Problem(3)
    gram, cross = problem.operators()
    learner = RankingPerceptron(passes=2).fit(gram, problem.sizes)
    shares = learner.decision_scores(cross, problem.new_sizes)
    for columns, chosen in zip(problem.new_groups, learner.predict(cross, problem.new_sizes), strict=True):
        assert np.isclose(shares[columns].sum(), 1)
        assert shares[columns].argmax() == chosen


def test_lone_candidates_teach_nothing_and_are_chosen():
    gram = DenseGram(np.eye(3), [1, 1, 1])
    learner = RankingPerceptron(passes=2).fit(gram, [1, 1, 1])
    assert learner.mistakes_ == [0]
    assert learner.predict(gram, [1, 2]) == [0, 0]
    assert learner.decision_scores(gram).tolist() == [0, 0, 0]


@pytest.mark.parametrize("way", WAYS)
def test_state_and_support_give_the_same_predictions(way):
    problem = Problem(1)
    gram, cross = problem.operators()
    learner = RankingPerceptron(passes=2, **WAYS[way]).fit(gram, problem.sizes)
    expected = learner.predict(cross, problem.new_sizes)
    attributes, arrays = learner.to_state()
    again = learner_from_state(json.loads(json.dumps(attributes)), arrays)
    assert again.predict(cross, problem.new_sizes) == expected
    rows = np.flatnonzero(learner.support())
    smaller = DenseGram(cross.matrix[rows], [1] * len(rows), [1] * cross.shape[1])
    assert learner.restricted(rows).predict(smaller, problem.new_sizes) == expected
    with pytest.raises(LearnerError, match=f"row {rows[0]} is needed to predict"):
        learner.restricted(rows[1:])


def test_a_stored_gram_of_parses_teaches_the_same(tmp_path):
    pair = ["(S (NP they) (VP (V run)))", "(S (NP they) (VP run))", "(S (NP you) (VP (V see)))", "(S (NP you) (V see))"]
    train, new = Corpus.from_parses(pair * 5), Corpus.from_parses(["(S (V see) (NP we))", "(S (NP we) (VP (V see)))"])
    kernel = SubsetTree(decay=0.5)
    stored = build_gram(kernel, train, tmp_path / "train.zarr", block_rows=7)
    cross = build_gram(kernel, train, tmp_path / "cross.zarr", other=new, block_rows=7)
    learner = RankingPerceptron(passes=2).fit(stored, [2] * 10)
    dense = RankingPerceptron(passes=2).fit(DenseGram.of(kernel, train), [2] * 10)
    assert learner.updates_.tolist() == dense.updates_.tolist()
    assert learner.counts_.tolist() == dense.counts_.tolist()
    assert learner.predict(cross, [2]) == dense.predict(DenseGram.of(kernel, train, new), [2]) == [1]


def test_wrong_input_is_refused():
    gram = DenseGram(np.eye(4), [1] * 4)
    for groups, number, sentence in (
        ([2, 1], None, "the groups hold 3 candidates, but the Gram matrix has 4"),
        (None, None, "groups must list the candidates of every sentence, got None"),
        (b"\2\2", None, r"groups must list the candidates of every sentence, got b'\x02\x02'"),
        ({2: "first"}, None, "groups must list the candidates of every sentence, got {2: 'first'}"),
        ([4, 0], 1, "group 1: there is no candidate"),
        ([[0, 1], []], 1, "group 1: there is no candidate"),
        ([[0, 4]], 0, "group 0: there is no row 4; the Gram matrix has 4 of them"),
        ([[0, 1], [0, -1]], 1, "group 1: there is no row -1; the Gram matrix has 4 of them"),
        ([[0.5, 1.0]], 0, "group 0: candidates are row numbers, got [0.5, 1.0]"),
    ):
        with pytest.raises(GroupError) as error:
            RankingPerceptron().fit(gram, groups)
        assert (error.value.group, str(error.value)) == (number, sentence)
