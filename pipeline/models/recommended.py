"""The kernel and the learner for people who name none: measured on corpora that nobody tuned them for.

Sequences: positions compared by ((cosine + 1) / 2)^2 of their features, and label chains learned by the averaged dual
perceptron, which sees neighbours through its transitions. Trees and graphs: the labeling kernel of the structure, with
the reach at which neighbours make half of the matrix, and the averaged labeling perceptron.
`gramline reproduce defaults` measures both beside a CRF on the same features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gramline.kernels.base import Kernel
from gramline.kernels.dags.labeling import DagLabeling
from gramline.kernels.observations.features import Linear, Polynomial
from gramline.kernels.positions import PositionKernel
from gramline.kernels.reach import with_reach
from gramline.kernels.trees.labeling import TreeLabeling
from gramline.learners.chains.constraints import follows_iob2
from gramline.learners.estimator import Learner
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError

FEATURES, WINDOW = "spelling", 1  # of words that come without features
CHAIN_ROUNDS, NODE_ROUNDS = 20, 10  # measured: 20 rounds of label chains were never worse than 10 by more than noise


class Recommendation(NamedTuple):
    """A kernel and a learner, and what to tell people about them."""

    kernel: Kernel
    learner: Learner


def recommend(corpus: Corpus, kernel: Kernel | None = None) -> Recommendation:
    """The pair for a labeled corpus; a kernel that is given stays."""
    chosen = recommended_kernel(corpus) if kernel is None else kernel
    return Recommendation(chosen, recommended_learner(corpus, chosen))


def recommended_kernel(corpus: Corpus) -> Kernel:
    """The kernel for the structures of a corpus."""
    makers: dict[str, Callable[[], Kernel]] = {
        "sequences": lambda: PositionKernel(Polynomial(2, normalized=True, unit=True)),
        "trees": lambda: with_reach(TreeLabeling(observation=Linear(normalized=True)), corpus),
        "dags": lambda: with_reach(DagLabeling(observation=Linear(normalized=True)), corpus),
    }
    if corpus.kind not in makers:
        raise InputError(
            f"there is no recommended labeler for {corpus.kind}",
            advice="give a kernel and a learner; parses and tagged sentences are for rankers",
        )
    return makers[corpus.kind]()


def recommended_learner(corpus: Corpus, kernel: Kernel | None = None) -> Learner:
    """The learner for the labels of a corpus: label chains on sequences, single positions on trees and graphs.

    A position without a label can be left out by itself only where there is no chain. A kernel that sees neighbours
    needs no chain, and its values differ by orders of magnitude, beside which transitions have no one scale.
    """
    is_chain = corpus.kind == "sequences"
    n_complete = sum(None not in path for path in corpus.labels)
    chosen: Learner
    if is_chain and isinstance(kernel, PositionKernel | None) and 2 * n_complete >= len(corpus):
        chosen = HiddenMarkovPerceptron(CHAIN_ROUNDS, dual=True)
        chosen.set_params(unlabeled="error" if n_complete == len(corpus) else "drop")
    else:
        chosen = LabelingPerceptron(NODE_ROUNDS)
    return chosen.set_params(constraints="iob2") if is_chain and follows_iob2(corpus.labels) else chosen


def described(corpus: Corpus) -> Corpus:
    """Words without features get those of their spelling, and of their neighbours' in a sequence."""
    is_bare = corpus.kind in ("sequences", "trees", "dags") and not corpus.has_features
    return corpus.with_features(FEATURES, WINDOW) if is_bare else corpus
