"""What prediction from dual weights keeps in memory; its decisions are tested with the learners that make them."""

from __future__ import annotations

import tracemalloc

import numpy as np

from gramline.kernels import SequenceLabeling
from gramline.learners import LabelingPerceptron
from gramline.learners.operators.computed import ComputedGram
from gramline.pipeline.corpus.corpus import Corpus

KERNEL = SequenceLabeling()


def test_weights_are_multiplied_where_they_are_needed() -> None:
    corpus = Corpus.from_sequences([["a", "b"] * 500] * 40, [["X", "Y"] * 500] * 40)
    learner = LabelingPerceptron()
    n_rows = corpus.n_positions
    learner.alpha_, learner.average_alpha_ = np.ones((n_rows, 2), np.int32), np.full((n_rows, 2), 0.25)
    learner.mistakes_, learner.rounds_run_, learner.label_names_ = [1], 1, ("X", "Y")
    learner.label_kernel_, learner.uniform_prior_ = None, True
    gram = ComputedGram(KERNEL, KERNEL.prepare(corpus.packed()))
    expected = learner._columns(gram)
    tracemalloc.start()
    columns = learner._columns(gram)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert columns.tobytes() == expected.tobytes()
    np.testing.assert_array_equal(columns[:, :2], 0.125)
    assert peak < 2 * columns.nbytes
