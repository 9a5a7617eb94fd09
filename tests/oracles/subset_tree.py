"""The subset-tree kernel by writing out every fragment of every tree, as nested tuples."""

from collections import Counter
from itertools import product


def fragments_at(node):
    """Fragments rooted at `node` as (fragment, productions, depth); a node without children roots none."""
    if len(node) == 1:
        return []
    choices = []
    for child in node[1:]:
        if isinstance(child, str):
            choices.append([(("word", child), 0, 0)])
        else:
            choices.append([(("cut", child[0]), 0, 0), *fragments_at(child)])
    found = []
    for chosen in product(*choices):
        parts = tuple(part for part, _, _ in chosen)
        productions = 1 + sum(count for _, count, _ in chosen)
        depth = 1 + max(below for _, _, below in chosen)
        found.append((("tree", node[0], parts), productions, depth))
    return found


def nodes_of(node):
    yield node
    for child in node[1:]:
        if not isinstance(child, str):
            yield from nodes_of(child)


def all_fragments(tree):
    return Counter(found for node in nodes_of(tree) for found in fragments_at(node))


def subset_tree_kernel(tree, other, decay, max_depth=None, normalized=False):
    if normalized:
        scale = subset_tree_kernel(tree, tree, decay, max_depth) * subset_tree_kernel(other, other, decay, max_depth)
        return subset_tree_kernel(tree, other, decay, max_depth) / scale**0.5 if scale else 0.0
    mine, yours = all_fragments(tree), all_fragments(other)
    return sum(
        decay**productions * count * yours[fragment, productions, depth]
        for (fragment, productions, depth), count in mine.items()
        if max_depth is None or depth <= max_depth
    )
