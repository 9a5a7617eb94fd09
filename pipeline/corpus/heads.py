"""Dependency trees by the head of every word, and how many roots they have."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from gramline.kernels.packing import PackedTrees
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.notes import Note
from gramline.pipeline.corpus.tokens import listed
from gramline.pipeline.errors import CorpusError

ROOTS_FROM_ZERO = (-1, None)  # a head like these says that words are counted from 0


def children_of_heads(structures: Sequence[Any]) -> list[list[list[int]] | None]:
    """The children of every word from the head of each; None where a structure has no heads.

    Words count from 1 and 0 is a root, as in CoNLL-U; or from 0, and -1 or None is a root. The roots say which of the
    two it is, and it is the same for all structures.
    """
    result: list[list[list[int]] | None] = []
    counts_from: int | None = None
    for structure, given in enumerate(structures):
        if given is None:
            result.append(None)
            continue
        heads = listed(given, structure, "heads")
        first = 0 if any(head in ROOTS_FROM_ZERO for head in heads) else 1
        if counts_from is not None and first != counts_from:
            problem = f"heads count words from {first} here, and from {counts_from} before"
            raise CorpusError(problem, advice="mark roots alike: 0, or -1 and counting from 0", structure=structure)
        counts_from = first
        children: list[list[int]] = [[] for _ in heads]
        for word, head in enumerate(heads):
            try:
                above = -1 if head is None else index(head) - first
            except TypeError:
                above = len(heads)
            if not -1 <= above < len(heads) or isinstance(head, bool):
                problem = f"the head {head!r} is not the number of a word of this sentence"
                advice = f"count the words from {first}, and write {first - 1} for a root"
                raise CorpusError(problem, advice=advice, structure=structure, position=word)
            if above >= 0:
                children[above].append(word)
        result.append(children)
    return result


def root_notes(trees: Corpus, path: str | Path, lines: Sequence[int]) -> list[Note]:
    """A note on structures with several roots, which are forests."""
    packed = trees.packed()
    assert isinstance(packed, PackedTrees)
    n_links = np.add.reduceat(np.diff(packed.link_indptr), packed.starts[:-1])
    roots = packed.lengths - n_links  # every other node is the child of one
    several = np.flatnonzero(roots > 1)
    if not several.size:
        return []
    first, noun = int(several[0]), "structure has" if len(several) == 1 else "structures have"
    problem = f"{len(several):,} {noun} several roots (here {roots[first]}): a forest, not a tree"
    return [Note("several roots", problem, path=str(path), line=lines[first])]
