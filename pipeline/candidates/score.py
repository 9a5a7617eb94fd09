"""How good a parse is: labelled constituents shared with the gold tree.

    score = sum_i g_i / 2 * (c_i / p_i + c_i / g_i)  /  sum_i g_i

with g, p, c the numbers of gold, proposed and common constituents of sentence i: precision and recall averaged,
sentences weighted by their gold constituents. A missing parse has p = c = 0 and scores 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gramline.pipeline.corpus.parses import Tree, is_preterminal

Constituent = tuple[str, int, int]


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


def counts(proposed: Tree | None, gold: Tree) -> tuple[int, int, int]:
    """(common, proposed, gold) numbers of constituents."""
    right = constituents(gold)
    left = Counter[Constituent]() if proposed is None else constituents(proposed)
    return (left & right).total(), left.total(), right.total()


def sentence_score(proposed: Tree | None, gold: Tree) -> float:
    """Mean of precision and recall of one sentence; 1 when neither tree has a constituent."""
    common, n_proposed, n_gold = counts(proposed, gold)
    if n_gold == 0:
        return 1.0 if n_proposed == 0 and proposed is not None else 0.0
    return 0.5 * ((common / n_proposed if n_proposed else 0.0) + common / n_gold)


def parse_score(pairs: Iterable[tuple[Tree | None, Tree]]) -> float:
    """Weighted mean over (proposed, gold) sentences, between 0 and 1."""
    total, weights = 0.0, 0
    for proposed, gold in pairs:
        weight = constituents(gold).total()
        total += weight * sentence_score(proposed, gold)
        weights += weight
    return total / weights if weights else 1.0
