"""Bracketed treebanks to a corpus of parses: one or more lines per tree, function tags and empty elements by choice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.parses import Tree, parse_brackets
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.textfile import located, read_lines
from gramline.pipeline.errors import CorpusError

EMPTY_ELEMENT = "-NONE-"
_FUNCTION = re.compile(r"(?<=.)[-=].*")  # NP-SBJ-1, NP=2; labels that begin with a dash (-LRB-) stay whole


def read_brackets(path: str | Path, *, strip_functions: bool = False, strip_empty: bool = False) -> Corpus:
    """The parse trees of a bracketed treebank (plain or gzip), each in one or more lines.

    Parameters
    ----------
    path : the file.
    strip_functions : make NP of NP-SBJ-1.
    strip_empty : remove -NONE- elements and the nodes they leave childless.

    >>> from pathlib import Path
    >>> _ = Path("train.mrg").write_text("(S (NP-SBJ they) (VP run))")
    >>> read_brackets("train.mrg", strip_functions=True).trees
    [['S', ['NP', 'they'], ['VP', 'run']]]
    """
    trees: list[Tree] = []
    lines: list[int] = []
    text = "\n".join(read_lines(path))
    try:
        for line, whole in parse_brackets(text):
            tree = without_empty(whole) if strip_empty else whole
            if tree is None:
                raise CorpusError("the tree holds nothing but empty elements", advice="remove it", line=line)
            trees.append(without_functions(tree) if strip_functions else tree)
            lines.append(line)
        if not trees:
            raise CorpusError("the file has no trees", advice="expected bracketed trees like (S (NP they) (VP run))")
        corpus = Corpus.from_parses(trees)
    except CorpusError as error:
        raise located(error, path, lines) from None
    recipe = Recipe.of("brackets", "parses", "token", None, strip_functions=strip_functions, strip_empty=strip_empty)
    return corpus.described(recipe)


def plain_label(label: str) -> str:
    """The category without function tags and indices."""
    return label if label.startswith("-") else _FUNCTION.sub("", label)


def without_functions(tree: Tree) -> Tree:
    """The tree with plain labels."""
    result: Tree = []
    stack: list[tuple[Any, Tree]] = [(tree, result)]
    while stack:
        node, copy = stack.pop()
        copy.append(plain_label(node[0]))
        for child in node[1:]:
            if isinstance(child, str):
                copy.append(child)
            else:
                copy.append([])
                stack.append((child, copy[-1]))
    return result


def without_empty(tree: Tree) -> Tree | None:
    """The tree without empty elements and without the nodes they leave childless; None if nothing is left."""
    result: list[Any] = []
    pending: list[tuple[Tree, list[Any], Tree | None]] = [(tree, result, None)]  # node, where it goes, its copy
    while pending:
        node, siblings, copy = pending.pop()
        if copy is None:
            if node[0] == EMPTY_ELEMENT:
                continue
            copy = [node[0]]
            pending.append((node, siblings, copy))  # again, once its children are done
            for child in node[1:]:
                if isinstance(child, str):
                    copy.append(child)
                else:
                    place: list[Any] = []
                    copy.append(place)
                    pending.append((child, place, None))
        else:
            kept = [item if isinstance(item, str) else item[0] for item in copy[1:] if isinstance(item, str) or item]
            if kept or len(node) == 1:
                siblings.append([copy[0], *kept])
    return result[0] if result else None
