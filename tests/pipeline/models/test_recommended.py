"""The pair for people who name none: which kernel and learner, for which corpus."""

import pytest

from gramline.kernels import DagLabeling, Polynomial, PositionKernel, SequenceLabeling, TreeLabeling
from gramline.learners import HiddenMarkovPerceptron, LabelingPerceptron
from gramline.pipeline import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.recommended import described, recommend, recommended_learner

WORDS = [["Ann", "ran"], ["Bob", "saw", "Ann"]]
LABELS = [["B-x", "O"], ["B-x", "O", "B-x"]]
CHILDREN = [[[1], []], [[], [0, 2], []]]
EDGES = [[(0, 1)], [(0, 1), (1, 2)]]


def test_sequences_get_label_chains_on_positions():
    kernel, learner = recommend(Corpus.from_sequences(WORDS, LABELS))
    assert kernel == PositionKernel(Polynomial(2, normalized=True, unit=True))
    assert isinstance(learner, HiddenMarkovPerceptron)
    assert learner.dual
    assert learner.average


def test_trees_and_graphs_get_their_labeling_kernel_with_a_reach():
    trees = recommend(Corpus.from_trees(WORDS, CHILDREN, LABELS))
    graphs = recommend(Corpus.from_dags(WORDS, EDGES, LABELS))
    assert isinstance(trees.kernel, TreeLabeling)
    assert isinstance(graphs.kernel, DagLabeling)
    for kernel, learner in (trees, graphs):
        assert kernel.reach is not None
        assert isinstance(learner, LabelingPerceptron)


def test_a_given_kernel_stays():
    kernel = SequenceLabeling(reach=0.5)
    assert recommend(Corpus.from_sequences(WORDS, LABELS), kernel).kernel == kernel


def test_paths_are_valid_where_the_training_labels_are():
    def constraints(labels):
        return recommended_learner(Corpus.from_sequences(WORDS, labels)).constraints

    assert constraints(LABELS) == "iob2"
    assert constraints([["I-x", "O"], ["B-x", "O", "O"]]) == "none"
    assert constraints([["N", "V"], ["N", "V", "N"]]) == "none"


def test_missing_labels():
    few = Corpus.from_sequences(WORDS, [["A", "B"], [None, "A", "B"]])
    assert recommended_learner(few).unlabeled == "drop"
    many = Corpus.from_sequences(WORDS, [["A", None], [None, "A", "B"]])
    assert isinstance(recommended_learner(many), LabelingPerceptron)


def test_structures_without_a_labeler():
    with pytest.raises(InputError) as caught:
        recommend(Corpus.from_parses(["(S (N they) (V run))"]))
    assert str(caught.value).startswith("there is no recommended labeler for parses; give a kernel and a learner")


def test_bare_words_are_described_by_their_spelling():
    bare = Corpus.from_sequences(WORDS, LABELS)
    corpus = described(bare)
    assert corpus.labels == bare.labels
    assert corpus.recipe.describe() == "lists, spelling features with a window of 1"
    assert "suffix1[1]=n" in corpus.packed().vocabulary.features
    assert described(corpus) is corpus


def test_nodes_are_described_by_their_own_spelling():
    corpus = described(Corpus.from_trees(WORDS, CHILDREN, LABELS))
    assert corpus.kind == "trees"
    features = corpus.packed().vocabulary.features
    assert "suffix1[0]=n" in features
    assert not any("[1]" in name for name in features)
