"""Candidate parses of a treebank as a corpus: the n best of each sentence, each scored against the gold tree.

A parse is as good as the labelled constituents that it shares with the gold tree,

    score = sum_i g_i / 2 * (c_i / p_i + c_i / g_i)  /  sum_i g_i

with g, p, c the numbers of gold, proposed and common constituents of sentence i: precision and recall averaged,
sentences weighted by their gold constituents. A missing parse has p = c = 0 and scores 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gramline.pipeline.candidates.columns import RankingScore, ranking_score
from gramline.pipeline.candidates.grammar import Grammar
from gramline.pipeline.candidates.parser import Parsed, ParseOutcome, Parser
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.parses import Tree, is_preterminal, words
from gramline.pipeline.corpus.readers.brackets import read_brackets
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file

Constituent = tuple[str, int, int]
Progress = Callable[[int], None]


def constituents(tree: Tree) -> Counter[Constituent]:
    """(label, first word, end) of every node that is neither the root nor a tag, with multiplicity."""
    spans: Counter[Constituent] = Counter()
    position = 0
    open_nodes: list[tuple[Tree, int, int]] = [(tree, 1, 0)]  # node, next child, first word
    while open_nodes:
        node, child, first = open_nodes.pop()
        if child < len(node):
            open_nodes.append((node, child + 1, first))
            if isinstance(node[child], str):
                position += 1
            else:
                open_nodes.append((node[child], 1, position))
        elif open_nodes and not is_preterminal(node):
            spans[node[0], first, position] += 1
    return spans


def sentence_score(proposed: Tree, gold: Tree) -> float:
    """Mean of precision and recall of one sentence; 1 when neither tree has a constituent."""
    left, right = constituents(proposed), constituents(gold)
    if not right:
        return 0.0 if left else 1.0
    common = (left & right).total()
    return 0.5 * ((common / left.total() if left else 0.0) + common / right.total())


@dataclass(frozen=True)
class CandidateList:
    """The parses proposed for one gold tree, best first by probability; none when parsing failed."""

    gold: Tree
    outcome: ParseOutcome

    @property
    def trees(self) -> tuple[Tree, ...]:
        return self.outcome.trees

    @property
    def weight(self) -> int:
        """Constituents of the gold tree: what the sentence counts in a parse score."""
        return constituents(self.gold).total()

    @property
    def scores(self) -> list[float]:
        """Score of each candidate against the gold tree, between 0 and 1."""
        return [sentence_score(tree, self.gold) for tree in self.trees]


def propose(
    gold: Sequence[Tree],
    grammar: Grammar,
    n: int = 20,
    seconds: float = np.inf,
    progress: Progress = lambda _n_done: None,
) -> list[CandidateList]:
    """The n best parses of the words of each gold tree; `progress` receives the number of sentences done."""
    parser = Parser(grammar, n)
    lists = []
    for done, tree in enumerate(gold, 1):
        lists.append(CandidateList(tree, parser.parse(words(tree), seconds)))
        progress(done)
    return lists


def propose_held_out(
    gold: Sequence[Tree],
    n: int = 20,
    folds: int = 5,
    *,
    horizontal: int | None = None,
    seconds: float = np.inf,
    progress: Progress = lambda _n_done: None,
) -> list[CandidateList]:
    """Like `propose`, each sentence by a grammar read off the other folds, so that no tree parses itself."""
    if not 2 <= folds <= len(gold):
        raise InputError(f"{len(gold)} trees can be cut into 2 to {len(gold)} folds, not {folds}")
    lists: dict[int, CandidateList] = {}
    for fold in range(folds):
        grammar = Grammar.of([tree for k, tree in enumerate(gold) if k % folds != fold], horizontal=horizontal)
        parser = Parser(grammar, n)
        for k in range(fold, len(gold), folds):
            lists[k] = CandidateList(gold[k], parser.parse(words(gold[k]), seconds))
            progress(len(lists))
    return [lists[k] for k in range(len(gold))]


def candidate_corpus(lists: Sequence[CandidateList]) -> Corpus:
    """All candidates, one structure each, with the columns group (sentence), probability (log), score and weight."""
    rows = [
        (group, number, tree, probability, score, weight)
        for group, candidates in enumerate(lists)
        for weight in [candidates.weight]
        for number, (tree, probability, score) in enumerate(
            zip(candidates.trees, candidates.outcome.scores, candidates.scores, strict=True)
        )
    ]
    if not rows:
        advice = "use more trees for the grammar, or a Markov one (horizontal)"
        raise InputError("no sentence has a parse", advice=advice)
    corpus = Corpus.from_parses([row[2] for row in rows])
    return (
        corpus.with_column("id", [f"{row[0]}.{row[1]}" for row in rows])
        .with_column("group", [row[0] for row in rows])
        .with_column("probability", [row[3] for row in rows])
        .with_column("score", [row[4] for row in rows])
        .with_column("weight", [row[5] for row in rows])
    )


def outcomes(lists: Sequence[CandidateList]) -> dict[str, int]:
    """How many sentences ended in which way."""
    return {status.value: sum(candidates.outcome.status is status for candidates in lists) for status in Parsed}


def candidate_quality(
    lists: Sequence[CandidateList], corpus: Corpus, chosen: Sequence[int] | None = None
) -> RankingScore:
    """The score of the most probable, the best and the chosen candidates of `corpus`, which holds those of `lists`.

    `chosen` counts from 0, over the sentences that have candidates; one without candidates scores 0.
    """
    missing = [float(candidates.weight) for candidates in lists if not candidates.trees]
    return ranking_score(corpus, [0] * (len(lists) - len(missing)) if chosen is None else chosen, missing)


def read_trees(path: str, strip_functions: bool = False, strip_empty: bool = False) -> list[Tree]:
    """Trees of a bracketed file, or of a corpus of parses."""
    require_file(path, "a file of bracketed trees or a corpus of parses")
    if Path(path).suffix == ".parquet":
        if strip_functions or strip_empty:
            raise InputError(f"{path} is a corpus already; functions and empty elements are stripped by corpus import")
        return Corpus.load(path).trees
    return read_brackets(path, strip_functions=strip_functions, strip_empty=strip_empty).trees
