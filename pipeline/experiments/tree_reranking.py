"""Reranking the n best parses of a treebank grammar with the subset-tree kernel: the voted perceptron and its rivals.

Ten random splits of the trees into training and test sentences. Training candidates come from grammars that did not
see their sentence, test candidates from the grammar of all training trees; the best-scoring candidate of a training
sentence counts as the correct one. A sentence that the grammar cannot parse scores 0 before and after. The weight of
log probabilities, where it is open, is chosen on held-out training sentences. Support vector machines have normalized
kernels only, which C = 1 suits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.structures.subset_tree import SubsetTree
from gramline.learners.candidates.ranker import CandidateRanker
from gramline.learners.margins.ranking import RankingSVM
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.ranking import RankingPerceptron
from gramline.pipeline.candidates.columns import Groups, RankingScore, log_probabilities
from gramline.pipeline.candidates.corpus import (
    CandidateList,
    candidate_corpus,
    candidate_quality,
    outcomes,
    propose,
    propose_held_out,
)
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.brackets import read_brackets
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.models.ranker_training import TrainingCandidates

KERNELS = (
    SubsetTree(decay=0.5),
    SubsetTree(decay=0.3),
    SubsetTree(decay=0.3, normalized=True),
    SubsetTree(decay=1.0, max_depth=2),
)
LEARNERS: tuple[CandidateRanker, ...] = (
    RankingPerceptron(passes=1),
    RankingPerceptron(passes=5),
    RankingPerceptron(passes=5, average=True),
    RankingPerceptron(passes=5, average=True, log_probability="auto"),
)
MACHINES: tuple[CandidateRanker, ...] = (RankingSVM(C=1.0), RankingSVM(C=1.0, log_probability="auto"))
TRAINING_PART = 0.8
PAPER_REDUCTION = 0.20  # "a relative reduction of about 20 %" over the paper's own splits


def tree_reranking(run: Run) -> Sequence[ResultTable]:
    """PCFG, oracle and reranked parse scores with mean and deviation over the splits."""
    trees = [tree for name in ("train", "dev") for tree in read_brackets(run.file(f"atis/{name}.trees")).trees]
    kernels, splits, n_best = (KERNELS[2:3], 2, 5) if run.quick else (KERNELS, 10, 20)
    if run.quick:
        trees = trees[:120]
    cut, failures = round(TRAINING_PART * len(trees)), 0
    methods = [(kernel, learner) for kernel in kernels for learner in _learners(kernel)]
    grammar_scores, oracle_scores, reranked = np.empty(splits), np.empty(splits), np.empty((len(methods), splits))
    for split in range(splits):
        run.say(f"split {split + 1} of {splits}")
        order = np.random.default_rng([run.seed, split]).permutation(len(trees))
        train, test = [trees[k] for k in order[:cut]], [trees[k] for k in order[cut:]]
        proposed = propose_held_out(train, n_best, folds=10)
        tested = propose(test, Grammar.of(train), n_best)
        failures += len(tested) - outcomes(tested)["parsed"]
        qualities = _reranked(kernels, candidate_corpus(proposed), tested)
        grammar_scores[split], oracle_scores[split] = qualities[0].first, qualities[0].oracle
        reranked[:, split] = [quality.chosen for quality in qualities]
    rows: list[Row] = [
        ("PCFG", "", *_spread(grammar_scores), None),
        (f"oracle of {n_best}-best", "", *_spread(oracle_scores), _reduction(grammar_scores, oracle_scores)),
    ]
    for (kernel, learner), scores in zip(methods, reranked, strict=True):
        names = _kernel_name(kernel), _learner_name(learner)
        rows.append((*names, *_spread(scores), _reduction(grammar_scores, scores)))
    rows.append(("paper", "voted, its own splits", None, None, PAPER_REDUCTION))
    return [
        ResultTable(
            f"Parse score on ATIS, {splits} random splits",
            ("method", "learner", "score", "deviation", "error reduction"),
            tuple(rows),
            (
                "score: precision and recall of constituents averaged, sentences weighted by their gold constituents",
                "splits, grammar and candidates are ours: the paper's n-best lists and its splits are not published",
                f"{failures / (splits * (len(trees) - cut)):.1%} of the test sentences have no parse and score 0 "
                "before and after",
            ),
        )
    ]


def _reranked(kernels: Sequence[SubsetTree], proposed: Corpus, tested: Sequence[CandidateList]) -> list[RankingScore]:
    """Score of every kernel with every learner, in this order."""
    known, test = TrainingCandidates.without(proposed, ()), candidate_corpus(tested)
    members, likely = Groups.of(test).members, log_probabilities(test)
    scores = []
    for kernel in kernels:
        gram, cross = DenseGram.of(kernel, proposed), DenseGram.of(kernel, proposed, test)
        for learner in _learners(kernel):
            fitted = learner.fresh().fit(gram, known.groups, **known.evidence(learner, None))
            chosen = fitted.predict(cross, members, likely)
            scores.append(candidate_quality(tested, test, chosen))
    return scores


def _learners(kernel: SubsetTree) -> tuple[CandidateRanker, ...]:
    return (*LEARNERS, *MACHINES) if kernel.normalized else LEARNERS


def _spread(scores: NDArray[np.float64]) -> tuple[float, float]:
    return float(scores.mean()), float(scores.std(ddof=1))


def _reduction(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Part of the error that is gone."""
    return float((after.mean() - before.mean()) / (1 - before.mean()))


def _kernel_name(kernel: SubsetTree) -> str:
    depth = "" if kernel.max_depth is None else f", depth {kernel.max_depth}"
    return f"decay {kernel.decay:g}{depth}" + (", normalized" if kernel.normalized else "")


def _learner_name(learner: CandidateRanker) -> str:
    likely = ", log probability" if learner.log_probability == "auto" else ""
    if not isinstance(learner, RankingPerceptron):
        return f"{learner.name}{likely}"
    kind = "averaged" if learner.average else "voted"
    return f"{kind}, {learner.passes} pass" + ("es" if learner.passes > 1 else "") + likely
