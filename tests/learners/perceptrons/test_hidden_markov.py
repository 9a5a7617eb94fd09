import json
import re

import numpy as np
import pytest
from oracles import hidden_markov_perceptron as oracle
from sklearn.base import clone
from tolerances import assert_close

from gramline.learners.errors import LabelError, LearnerError, NotFittedError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons import hidden_markov_loops
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.token_features import feature_matrix
from gramline.pipeline.corpus.corpus import Corpus


def sentences(lengths, seed, n_names=5, n_labels=3, integers=True):
    """Dictionaries of features and label codes with some connection."""
    random = np.random.default_rng(seed)
    X, y = [], []
    for length in lengths:
        labels = random.integers(n_labels, size=length).tolist()
        tokens = []
        for label in labels:
            names = [name for name in range(n_names) if random.random() < 0.4]
            token = {f"f{name}": float(random.integers(1, 3)) if integers else random.normal() for name in names}
            token[f"is{label if random.random() < 0.8 else 0}"] = 1.0
            tokens.append(token)
        X.append(tokens)
        y.append(labels)
    return X, y


def corpus(X, y=None):
    names = sorted({f"L{code}" for path in y or [] for code in path})  # the code of a label is its number
    return Corpus.from_sequences(X, None if y is None else [[f"L{code}" for code in path] for path in y], labels=names)


TRAIN = sentences([4, 1, 5, 2, 3, 4], 0)
NEW = sentences([3, 1, 5], 1)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 30])
def test_weights_are_those_of_the_definition(average, rounds):
    X, y = TRAIN
    last, mean, mistakes = oracle.train(X, y, 3, rounds)
    emission, transition = mean if average else last
    model = HiddenMarkovPerceptron(rounds=rounds, average=average).fit(corpus(X, y))
    for label in range(3):
        for column, name in enumerate(model.feature_names_):
            assert abs(model.emission_[label, column] - emission[label, name]) < 1e-9
        for following in range(3):
            assert abs(model.transition_[label, following] - transition[label, following]) < 1e-9
    run = len(model.mistakes_)
    assert model.mistakes_ == mistakes[:run]
    assert not any(mistakes[run:]), "it stops only after a round without a mistake"
    guesses = [[f"L{code}" for code in oracle.decode(sentence, emission, transition, 3)] for sentence in NEW[0]]
    assert model.predict(corpus(NEW[0])) == guesses


def test_hand_computed():
    """First visit: all scores 0, so 'A A' is guessed for 'x y' = 'A B'; second visit: right already."""
    model = HiddenMarkovPerceptron(rounds=5).fit(Corpus.from_sequences([["x", "y"]], [["A", "B"]]))
    # position 0 is right and cancels; 'y' moves from A to B; the transition A -> B gains, A -> A loses
    assert model.feature_names_ == ["x", "y"]
    assert model.emission_.tolist() == [[0, -1], [0, 1]]
    assert model.transition_.tolist() == [[-1, 1], [0, 0]]
    assert model.mistakes_ == [1, 0]
    assert model.predict(Corpus.from_sequences([["x", "y", "y"]])) == [["A", "B", "B"]]


def grams(block_rows):
    train, new = corpus(*TRAIN), corpus(NEW[0])
    packed = train.packed()
    F = feature_matrix(packed, len(packed.vocabulary.features)).toarray()
    other = new.packed(like=packed)
    H = feature_matrix(other, len(other.vocabulary.features)).toarray()[:, : F.shape[1]]
    names = packed.vocabulary.labels
    return (
        DenseGram(F @ F.T, train.lengths, label_names=names, block_rows=block_rows),
        DenseGram(F @ H.T, train.lengths, new.lengths, label_names=names, block_rows=block_rows),
        F,
    )


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("block_rows", [5, 8, 100])
@pytest.mark.parametrize("rounds", [1, 3, 20])
def test_dual_form_with_the_linear_kernel_is_the_primal(average, block_rows, rounds):
    train, new = corpus(*TRAIN), corpus(NEW[0])
    gram, cross, F = grams(block_rows)
    primal = HiddenMarkovPerceptron(rounds, average).fit(train)
    dual = HiddenMarkovPerceptron(rounds, average, dual=True, scale=1).fit(gram, train.labels)
    assert_close(F.T @ dual.dual_, primal.emission_.T)
    assert_close(dual.transition_, primal.transition_)
    assert dual.mistakes_ == primal.mistakes_
    assert dual.predict(cross) == primal.predict(new)
    assert_close(dual.decision_scores(cross), primal.decision_scores(new))


@pytest.mark.parametrize("seed", range(12))
def test_rounding_decides_no_tie(seed):
    """Tenths are not exact, so equal scores differ by what the order of the sums left of them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 5, size=6)
    F = random.integers(0, 4, size=(lengths.sum(), 4)) / 10
    y = [[f"L{code}" for code in random.integers(3, size=length)] for length in lengths]
    rows = iter([{f"f{k}": value for k, value in enumerate(row)} for row in F])
    names = sorted({label for path in y for label in path})  # as a Gram matrix without names orders them
    X = [[next(rows) for _ in path] for path in y]
    primal = HiddenMarkovPerceptron(6).fit(Corpus.from_sequences(X, y, labels=names))
    for block_rows in (4, 7, 100):
        gram = DenseGram(F @ F.T, lengths, block_rows=block_rows)
        dual = HiddenMarkovPerceptron(6, dual=True, scale=1).fit(gram, y)
        assert dual.mistakes_ == primal.mistakes_
        assert_close(dual.transition_, primal.transition_)
        assert_close((F.T @ dual.dual_).T, primal.emission_)


def test_means_of_thirds_tie_like_the_whole_numbers_they_are():
    """After three visits: 'q r q' and 'r q r' both score 5/3, and q, the lower last label, wins."""
    X, y = [["w", "v", "v"], ["w", "w", "v", "v"], ["w", "v", "u"]], [list("qqr"), list("qppq"), list("rrq")]
    model = HiddenMarkovPerceptron(rounds=1, average=True).fit(Corpus.from_sequences(X, y, labels=list("pqr")))
    assert np.rint(3 * model.emission_).tolist() == [[-1, -4, -2], [1, 0, 1], [0, 4, 1]]
    assert np.rint(3 * model.transition_).tolist() == [[-4, 1, 0], [1, -3, 3], [0, 1, 1]]
    assert model.predict(Corpus.from_sequences([["new", "new", "w"]])) == [["q", "r", "q"]]


def test_unknown_features_are_ignored():
    model = HiddenMarkovPerceptron().fit(corpus(*TRAIN))
    strange = [[{**token, "never seen": 5.0} for token in sentence] for sentence in NEW[0]]
    assert model.predict(corpus(strange)) == model.predict(corpus(NEW[0]))
    nothing = Corpus.from_sequences([[{"never seen": 1.0}] * 2])
    assert not model.decision_scores(nothing).any()


def test_structures_without_all_labels_are_an_error_or_left_out():
    X, y = TRAIN
    holed = [[f"L{code}" for code in path] for path in y]
    holed[2] = [*holed[2][:-1], None]
    data = Corpus.from_sequences(X, holed, labels=["L0", "L1", "L2"])
    with pytest.raises(LabelError) as error:
        HiddenMarkovPerceptron().fit(data)
    assert (error.value.structure, error.value.position) == (2, 4)
    rest = [k for k in range(len(X)) if k != 2]
    expected = HiddenMarkovPerceptron(average=True).fit(corpus([X[k] for k in rest], [y[k] for k in rest]))
    primal = HiddenMarkovPerceptron(average=True, unlabeled="drop").fit(data)
    assert primal.predict(corpus(NEW[0])) == expected.predict(corpus(NEW[0]))
    gram, cross, _ = grams(6)
    dual = HiddenMarkovPerceptron(average=True, dual=True, unlabeled="drop", scale=1).fit(gram, holed)
    assert_close(dual.transition_, primal.transition_)
    assert dual.predict(cross) == primal.predict(corpus(NEW[0]))
    assert not dual.support()[5 + 0 : 5 + 5].any()


def test_the_two_forms_are_not_mixed_up():
    gram, cross, _ = grams(8)
    train = corpus(*TRAIN)
    primal, dual = HiddenMarkovPerceptron(), HiddenMarkovPerceptron(dual=True)
    no_gram = "reads a corpus, but was given a Gram matrix; set dual to true"
    for call, sentence in (
        (lambda: primal.fit(gram, train.labels), no_gram),
        (lambda: primal.fit(train).predict(cross), no_gram),
        (lambda: dual.fit(train), "reads a Gram matrix, but was given a corpus; set dual to false for a corpus"),
        (lambda: dual.fit(gram), "the dual form learns from a Gram and labels; call fit(gram, labels)"),
        (lambda: primal.fit(train, train.labels), "a corpus carries its labels; call fit(corpus)"),
    ):
        with pytest.raises(LearnerError, match=re.escape(sentence)):
            call()
    assert HiddenMarkovPerceptron().reads_corpus
    assert not HiddenMarkovPerceptron(dual=True).reads_corpus


def test_state_and_parameters():
    with pytest.raises(NotFittedError):
        HiddenMarkovPerceptron().predict(corpus(NEW[0]))
    gram, cross, _ = grams(8)
    for model, data in (
        (HiddenMarkovPerceptron(average=True).fit(corpus(*TRAIN)), corpus(NEW[0])),
        (HiddenMarkovPerceptron(dual=True).fit(gram, corpus(*TRAIN).labels), cross),
    ):
        attributes, arrays = model.to_state()
        again = HiddenMarkovPerceptron.from_state(json.loads(json.dumps(attributes)), arrays)
        assert again.predict(data) == model.predict(data)
        assert clone(model).get_params() == model.get_params()


def test_interpreted_equals_compiled(monkeypatch):
    from gramline.learners.perceptrons import hidden_markov as module
    from gramline.learners.perceptrons import hidden_markov_training

    gram, _, _ = grams(8)
    train = corpus(*TRAIN)
    primal, dual = (
        HiddenMarkovPerceptron(3).fit(train),
        HiddenMarkovPerceptron(3, dual=True, scale=1).fit(gram, train.labels),
    )
    monkeypatch.setattr(hidden_markov_loops, "update_transitions", hidden_markov_loops.update_transitions.py_func)
    monkeypatch.setattr(module, "primal_round", module.primal_round.py_func)
    monkeypatch.setattr(hidden_markov_training, "dual_block", hidden_markov_training.dual_block.py_func)
    assert_close(HiddenMarkovPerceptron(3).fit(train).emission_, primal.emission_)
    assert_close(HiddenMarkovPerceptron(3, dual=True, scale=1).fit(gram, train.labels).dual_, dual.dual_)


def test_learns_a_rule_of_transitions():
    """The token says nothing; labels alternate."""
    X = [["t"] * length for length in (4, 6, 3)]
    y = [[str(k % 2) for k in range(length)] for length in (4, 6, 3)]
    model = HiddenMarkovPerceptron(rounds=20).fit(Corpus.from_sequences(X, y))
    assert model.predict(Corpus.from_sequences([["t"] * 7])) == [[str(k % 2) for k in range(7)]]


@pytest.mark.parametrize(("typical", "scale"), [(0.5, 40.0), (1.0, 20.0), (5.0, 1.0), (50.0, 1.0), (100.0, 0.2)])
def test_the_scale_brings_the_mean_diagonal_to_where_transitions_and_kernel_both_count(typical, scale):
    labels = [["A", "B"], ["A"]]
    matrix = typical * np.array([[0.5, 0.1, 0.2], [0.1, 1.0, 0.0], [0.2, 0.0, 1.5]])
    model = HiddenMarkovPerceptron(3, dual=True).fit(DenseGram(matrix, [2, 1]), labels)
    assert model.scale_ == pytest.approx(scale)
    scaled = HiddenMarkovPerceptron(3, dual=True, scale=1).fit(DenseGram(scale * matrix, [2, 1]), labels)
    assert_close(model.dual_, scaled.dual_)
    assert_close(model.transition_, scaled.transition_)
    cross = DenseGram(matrix, [2, 1], [2, 1])
    assert_close(model.decision_scores(cross), scaled.decision_scores(DenseGram(scale * matrix, [2, 1], [2, 1])))


def test_a_kernel_that_is_zero_has_no_scale():
    model = HiddenMarkovPerceptron(2, dual=True).fit(DenseGram(np.zeros((2, 2)), [2]), [["A", "B"]])
    assert model.scale_ == 1.0
