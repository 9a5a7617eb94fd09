"""What a newcomer gets wrong in Python with kernels, learners and matrices in memory: one sentence each."""

from __future__ import annotations

import numpy as np
from wrong_calls import CORPUS, GRAM, KERNEL, LABELER, LABELS, TREES, WORDS, Calls, cases, check_refused

from gramline.kernels import (
    EmpiricalPrior,
    Gaussian,
    Identity,
    Linear,
    Polynomial,
    SequenceLabeling,
    SubsetTree,
    Substitution,
    Sum,
    Tagging,
    TreeLabeling,
    UniformPrior,
    with_reach,
)
from gramline.learners import (
    DenseGram,
    GaussianProcessLabeler,
    HiddenMarkovPerceptron,
    KernelCRF,
    KernelZScoreLabeler,
    LabelingPerceptron,
    LabelingSVM,
    RankingPerceptron,
    RankingSVM,
    StructuredSVM,
    ZScoreLabeler,
)
from gramline.pipeline import (
    Corpus,
    Model,
    fit_ranker,
)

PARSES = Corpus.from_parses(["(S (A a))"])
NAN = float("nan")
EYE = np.eye(3)


DOORS: Calls = {
    "kernels": {
        "c -1": (lambda: SequenceLabeling(c=-1), "SequenceLabeling.c must be a positive number (1e-150 to 1e150),"),
        "c a word": (lambda: SequenceLabeling(c="1"), "SequenceLabeling.c must be a positive number (1e-150 to"),
        "c NaN": (lambda: SequenceLabeling(c=NAN), "SequenceLabeling.c must be a finite number, got nan"),
        "c None": (lambda: SequenceLabeling(c=None), "SequenceLabeling.c must be a positive number (1e-150 to"),
        "observation a name": (
            lambda: SequenceLabeling(observation="identity"),
            "SequenceLabeling.observation must be an observation kernel such as identity, got 'identity'",
        ),
        "observation a class": (lambda: SequenceLabeling(observation=Identity), "SequenceLabeling.observation must"),
        "observation a kernel": (lambda: SequenceLabeling(observation=KERNEL), "SequenceLabeling.observation must"),
        "prior a class": (lambda: SequenceLabeling(prior=UniformPrior), "SequenceLabeling.prior must be a prior"),
        "label kernel not square": (
            lambda: SequenceLabeling(label_kernel=[[1, 0]]),
            "SequenceLabeling.label_kernel must be a square matrix, got shape (1, 2)",
        ),
        "label kernel indefinite": (
            lambda: SequenceLabeling(label_kernel=[[0, 1], [1, 0]]),
            "SequenceLabeling.label_kernel is not positive semidefinite (smallest eigenvalue -1)",
        ),
        "label kernel NaN": (lambda: SequenceLabeling(label_kernel=[[NAN]]), "SequenceLabeling.label_kernel"),
        "label kernel ragged": (
            lambda: SequenceLabeling(label_kernel=[[1], [0, 1]]),
            "SequenceLabeling.label_kernel must be a square matrix of numbers: setting an array element with a",
        ),
        "degree 0": (lambda: Polynomial(degree=0), "Polynomial.degree must be a whole number of at least 1, got 0"),
        "degree a fraction": (lambda: Polynomial(degree=1.5), "Polynomial.degree must be a whole number of at"),
        "gamma -1": (lambda: Gaussian(gamma=-1), "Gaussian.gamma must be a number above 0, got -1"),
        "gamma a word": (lambda: Gaussian(gamma="auto"), "Gaussian.gamma must be a number above 0, got 'auto'"),
        "gamma an array": (lambda: Gaussian(gamma=np.ones(2)), "Gaussian.gamma must be a number above 0, got"),
        "normalized a word": (lambda: Linear(normalized="yes"), "Linear.normalized must be true or false, got 'yes'"),
        "table unknown": (lambda: Substitution(table="blosum63"), "Substitution.table must be one of blosum45,"),
        "table of another size": (
            lambda: Substitution(symbols=("a",), matrix=[[1, 0], [0, 1]]),
            "Substitution.matrix has 2 rows for 1 symbols",
        ),
        "sum of kernels": (lambda: Sum(KERNEL, KERNEL), "Sum.first must be an observation kernel such as identity,"),
        "decay 0": (lambda: SubsetTree(decay=0), "SubsetTree.decay must be a number above 0 and at most 1, got 0"),
        "depth a fraction": (lambda: SubsetTree(max_depth=1.5), "SubsetTree.max_depth must be a whole number of at"),
        "gap -1": (lambda: Tagging(gap=-1), "Tagging.gap must be a number between 0 and 1, got -1"),
        "smoothing 0": (lambda: EmpiricalPrior(smoothing=0), "EmpiricalPrior.smoothing must be a positive number"),
        "reach of a name": (lambda: with_reach("sequence", CORPUS), "expected a kernel such as SequenceLabeling(),"),
        "reach on lists": (lambda: with_reach(KERNEL, WORDS), "expected a corpus, got list"),
    },
    "learners": {
        "fit on lists": (lambda: LabelingPerceptron().fit(WORDS, LABELS), "expected a Gram matrix, got list"),
        "fit on a bare matrix": (
            lambda: GaussianProcessLabeler().fit(GRAM.matrix, LABELS),
            "expected a Gram matrix, got ndarray",
        ),
        "fit on None": (lambda: KernelZScoreLabeler().fit(None, LABELS), "expected a Gram matrix, got NoneType"),
        "fit on a rectangle": (
            lambda: LabelingPerceptron().fit(DenseGram.of(KERNEL, CORPUS, CORPUS), LABELS),
            "a learner trains on a square Gram matrix, but this one is rectangular, 7 x 7",
        ),
        "fit without labels": (lambda: LabelingPerceptron().fit(GRAM, None), "labels must be one list of strings"),
        "fit on numbers": (
            lambda: LabelingPerceptron().fit(GRAM, [[0, 1], [0, 1, 2], [0, 1]]),
            "structure 0, position 0: the label is 0",
        ),
        "fit on an unknown label": (
            lambda: LabelingPerceptron().fit(GRAM, [*LABELS[:2], ["D", "Q"]]),
            "structure 2, position 1: the label 'Q' is unknown to the Gram matrix, which knows D, N, V",
        ),
        "features of lists": (lambda: ZScoreLabeler().fit(WORDS), "expected a corpus, got list"),
        "features of a Gram matrix": (lambda: ZScoreLabeler().fit(GRAM), "expected a corpus, got DenseGram"),
        "features of trees": (lambda: ZScoreLabeler().fit(TREES), "this learner labels sequences, but the corpus"),
        "no labels": (
            lambda: HiddenMarkovPerceptron().fit(CORPUS.without_labels()),
            "structure 0, position 0: there is no label, but chains learn from whole label paths",
        ),
        "unfitted": (lambda: GaussianProcessLabeler().predict(GRAM), "this GaussianProcessLabeler is not fitted yet"),
        "unfitted features": (lambda: ZScoreLabeler().predict(CORPUS), "this ZScoreLabeler is not fitted yet"),
        "predict of lists": (lambda: LABELER.learner_.predict(WORDS), "expected a Gram matrix, got list"),
        "predict of a corpus": (lambda: LABELER.learner_.predict(CORPUS), "expected a Gram matrix, got Corpus"),
        "predict of other rows": (
            lambda: LABELER.learner_.predict(DenseGram(np.eye(2), [2], [2])),
            "the Gram matrix to predict from has 2 rows, but training had 7",
        ),
        "rounds a word": (
            lambda: LabelingPerceptron(rounds="3").fit(GRAM, LABELS),
            "rounds must be a whole number of at least 1, got '3'",
        ),
        "unlabeled unknown": (
            lambda: ZScoreLabeler(unlabeled="skip").fit(CORPUS),
            "unlabeled must be one of error, drop, got 'skip'",
        ),
        "misspelled": (lambda: LabelingPerceptron().set_params(round=3), "LabelingPerceptron has no parameter"),
        "groups too large": (
            lambda: RankingPerceptron().fit(DenseGram(EYE, [1, 1, 1]), [2, 2]),
            "the groups hold 4 candidates, but the Gram matrix has 3",
        ),
        "groups a word": (
            lambda: RankingPerceptron().fit(DenseGram(EYE, [1, 1, 1]), "ab"),
            "groups must list the candidates of every sentence, got 'ab'",
        ),
        "log probabilities left out": (
            lambda: RankingSVM(log_probability=0.5).fit(DenseGram(EYE, [1, 1, 1]), [3]),
            "log probabilities have the weight 0.5 in the scores of candidates, but none are given",
        ),
        "C of a machine of positions": (
            lambda: LabelingSVM(C=0).fit(GRAM, LABELS),
            "C must be a number above 0, or auto, got 0",
        ),
        "C of a machine of chains": (
            lambda: StructuredSVM(C=-1.0).fit(GRAM, LABELS),
            "C must be a number above 0, or auto, got -1.0",
        ),
        "penalty 0": (
            lambda: KernelCRF(penalty=0).fit(GRAM, LABELS),
            "penalty must be a number above 0, or auto, got 0",
        ),
        "a label the machine never saw": (
            lambda: StructuredSVM().fit(GRAM, LABELS).score_paths(GRAM, [*LABELS[:2], ["D", "Q"]]),
            "structure 2, position 1: the model does not know 'Q'; it knows D, N, V",
        ),
        "features of a machine without labels": (
            lambda: StructuredSVM(dual=False).fit(CORPUS.without_labels()),
            "no position has a label",
        ),
        "not positive semidefinite": (
            lambda: KernelCRF().fit(DenseGram(-EYE, [1, 2]), [["D"], ["D", "N"]]),
            "structure 0, position 0: the Gram matrix is not positive semidefinite: k(x, x) is -1; use a kernel, or",
        ),
        "C of a ranker": (
            lambda: RankingSVM(C=0).fit(DenseGram(EYE, [1, 1, 1]), [3]),
            "C must be a number above 0, got 0",
        ),
        "rank without a Gram matrix": (
            lambda: fit_ranker(RankingPerceptron(), SubsetTree(), [PARSES]),
            "a ranker is trained on a stored Gram matrix, got SubsetTree(decay=1.0, max_depth=None,",
        ),
        "model of nothing": (lambda: Model.of(None, CORPUS, KERNEL), "expected a fitted learner such as"),
        "model of a class": (
            lambda: Model.of(LabelingPerceptron, CORPUS, KERNEL),
            "expected a fitted learner such as LabelingPerceptron(),",
        ),
        "model of lists": (lambda: Model.of(LABELER.learner_, WORDS, KERNEL), "expected a corpus, got list"),
        "model of a kernel's name": (
            lambda: Model.of(LABELER.learner_, CORPUS, "k"),
            "expected a kernel such as SequenceLabeling(), got 'k'",
        ),
        "model of another corpus": (
            lambda: Model.of(LABELER.learner_, Corpus.from_sequences([["a"]]), KERNEL),
            "the learner was trained on 7 rows, but the corpus has 1",
        ),
        "model unfitted": (
            lambda: Model.of(LabelingPerceptron(), CORPUS, KERNEL),
            "this LabelingPerceptron is not fitted yet",
        ),
    },
    "DenseGram": {
        "matrix None": (lambda: DenseGram(None, [3]), "the matrix has shape (), but the lengths add up to (3, 3)"),
        "matrix of words": (lambda: DenseGram([["a"]], [1]), "the matrix contains a value that is not a finite"),
        "matrix ragged": (lambda: DenseGram([[1], [1, 2]], [2]), "the matrix must be a table of numbers with rows"),
        "matrix NaN": (lambda: DenseGram([[NAN]], [1]), "the matrix contains a value that is not a finite number"),
        "matrix complex": (lambda: DenseGram([[1j]], [1]), "the matrix contains a value that is not a finite number"),
        "matrix flat": (lambda: DenseGram([1, 2, 3], [3]), "the matrix has shape (3,), but the lengths add up to"),
        "not symmetric": (lambda: DenseGram([[1, 2], [0, 1]], [2]), "the matrix is not symmetric: (0, 1) is 2, but"),
        "lengths too few": (lambda: DenseGram(EYE, [2]), "the matrix has shape (3, 3), but the lengths add up to"),
        "lengths a number": (lambda: DenseGram(EYE, 3), "lengths must list how many positions each structure has,"),
        "lengths None": (lambda: DenseGram(EYE, None), "lengths must list how many positions each structure has,"),
        "lengths of words": (lambda: DenseGram(EYE, ["a"]), "lengths must list how many positions each structure"),
        "lengths of fractions": (lambda: DenseGram(EYE, [1.5, 1.5]), "lengths must list how many positions each"),
        "lengths negative": (lambda: DenseGram(EYE, [-1, 4]), "structure 0 has -1 positions"),
        "lengths ragged": (lambda: DenseGram(EYE, [[1], [1, 1]]), "lengths must list how many positions each"),
        "columns too few": (lambda: DenseGram(EYE, [3], [2]), "the matrix has shape (3, 3), but the lengths add up"),
        "names twice": (lambda: DenseGram(EYE, [3], label_names=["A", "A"]), "the label 'A' is listed twice"),
        "names a string": (lambda: DenseGram(EYE, [3], label_names="AB"), "label_names must be a list of strings,"),
        "names numbers": (lambda: DenseGram(EYE, [3], label_names=[1, 2]), "label_names must be a list of strings,"),
        "prior of another length": (
            lambda: DenseGram(EYE, [3], row_prior=[[1.0]]),
            "row_prior has shape (1, 1), but there are 3 positions",
        ),
        "prior of no distribution": (
            lambda: DenseGram(EYE, [3], row_prior=[[1.0, 1.0]] * 3),
            "row_prior of row 0 has values from 1 to 1 and the sum 2",
        ),
        "prior of words": (
            lambda: DenseGram(EYE, [3], row_prior=[["a", "b"]] * 3),
            "row_prior must be a table of numbers with rows of one length",
        ),
        "prior ragged": (
            lambda: DenseGram(EYE, [3], row_prior=[[1.0], [0.5, 0.5], [1.0]]),
            "row_prior must be a table of numbers with rows of one length",
        ),
        "prior without names": (
            lambda: DenseGram(EYE, [3], label_names=["A", "B"], row_prior=[[1.0]] * 3),
            "row_prior has 1 columns, but there are 2 labels",
        ),
        "label kernel a word": (lambda: DenseGram(EYE, [3], label_kernel="x"), "label_kernel must be a square"),
        "diagonal of words": (
            lambda: DenseGram(EYE, [3], [3], col_diagonal=["a"] * 3),
            "col_diagonal must be a table of numbers with rows of one length",
        ),
        "diagonal short": (lambda: DenseGram(EYE, [3], [3], col_diagonal=[1]), "col_diagonal has shape (1,), but"),
        "block_rows a word": (lambda: DenseGram(EYE, [3], block_rows="2"), "block_rows must be a whole number of"),
        "block_rows 2": (lambda: DenseGram(EYE, [3], block_rows=2), "structure 0 has 3 rows, more than a block of 2"),
        "block_rows a fraction": (
            lambda: DenseGram(EYE, [1, 1, 1], block_rows=1.5),
            "block_rows must be a whole number of at least 1, got 1.5",
        ),
        "of a name": (lambda: DenseGram.of("k", CORPUS), "expected a kernel such as SequenceLabeling(), got 'k'"),
        "of a class": (lambda: DenseGram.of(SequenceLabeling, CORPUS), "expected a kernel such as"),
        "of an observation": (lambda: DenseGram.of(Linear(), CORPUS), "expected a kernel such as"),
        "of lists": (lambda: DenseGram.of(KERNEL, WORDS), "expected a corpus, got list"),
        "of another kind": (lambda: DenseGram.of(TreeLabeling(), CORPUS), "TreeLabeling compares trees, but the"),
        "of columns of another kind": (
            lambda: DenseGram.of(KERNEL, CORPUS, TREES),
            "the corpus holds trees but is to be compared with sequences",
        ),
    },
}


@cases(DOORS)
def test_one_sentence_says_what_and_where(group: str, case: str) -> None:
    check_refused(DOORS, group, case)
