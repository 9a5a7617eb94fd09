"""Constituency trees: bracketed text, nested lists and productions in pre-order, without recursion at any depth.

A nested tree is [label, child, ...]; a child is a word (a string) or a tree. The production of a node is named by the
JSON list [label, child, ...] with every nonterminal child cut down to [its label]: a word and a nonterminal of the same
spelling differ. A node without children has no production.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gramline.pipeline.corpus.textfile import excerpt
from gramline.pipeline.errors import CorpusError

Tree = list[Any]  # [label, child, ...]

UNNAMED_ROOT = "TOP"  # the label of an outer bracket that has none
_encode = json.JSONEncoder(ensure_ascii=False).encode
_SYMBOL = re.compile(r"[^ \t\r\n()]+")
_PIECE = re.compile(r"\n|[()]|[^ \t\r\n()]+")  # ASCII white space only: other spaces belong to words


def parse_brackets(text: str) -> Iterator[tuple[int, Tree]]:
    """Every tree of a text, with the line it begins on; errors carry the line."""
    line = opened_on = 1
    stack: list[Tree] = []
    for match in _PIECE.finditer(text):
        piece = match.group()
        if piece == "\n":
            line += 1
        elif piece == "(":
            if not stack:
                opened_on = line
            else:
                _name_root(stack, line)
            stack.append([])
        elif piece == ")":
            if not stack:
                problem = "a closing bracket without an opening one"
                raise CorpusError(problem, advice="check the tree before it", line=line)
            node = stack.pop()
            if not node:
                raise CorpusError("an empty pair of brackets", advice="a node needs a label", line=line)
            if stack:
                stack[-1].append(node)
            else:
                yield opened_on, node
        elif not stack:
            raise CorpusError(
                f"{excerpt(piece)} is outside of all brackets", advice="a tree begins with '('", line=line
            )
        else:
            stack[-1].append(piece)
    if stack:
        advice = f"{len(stack)} closing brackets are missing"
        raise CorpusError("the tree that begins here is not closed", advice=advice, line=opened_on)


def _name_root(stack: list[Tree], line: int) -> None:
    if not stack[-1]:
        if len(stack) > 1:
            problem = "a node inside the tree has no label"
            raise CorpusError(problem, advice="only the outermost may lack one", line=line)
        stack[-1].append(UNNAMED_ROOT)


def single_tree(tree: Any, index: int) -> Tree:
    """A tree given as a nested list or as one bracketed string."""
    if isinstance(tree, str):
        try:
            trees = [parsed for _, parsed in parse_brackets(tree)]
        except CorpusError as error:  # its line counts in the string, not in a file
            problem = f"line {error.line} of the tree: {error.problem}"
            raise CorpusError(problem, advice=error.advice, structure=index) from None
        if len(trees) != 1:
            raise CorpusError(f"one bracketed tree per string, got {len(trees)}", structure=index)
        return trees[0]
    if isinstance(tree, tuple):
        return list(tree)
    if not isinstance(tree, list):
        raise CorpusError(f"a tree is a nested list or a bracketed string, got {tree!r}", structure=index)
    return tree


def productions(tree: Tree, index: int = 0) -> tuple[list[str | None], list[list[int]]]:
    """Production names and nonterminal children of every node in pre-order; None for a node without children."""
    names: list[str | None] = []
    links: list[list[int]] = []
    stack: list[tuple[Sequence[Any], int]] = [(tree, -1)]
    while stack:
        node, parent = stack.pop()
        position = len(names)
        if parent >= 0:
            links[parent].append(position)
        if not node or not isinstance(node[0], str):
            problem = "a tree is a list that begins with its label"
            raise CorpusError(problem, structure=index, position=position)
        right: list[Any] = []
        for child in node[1:]:
            if isinstance(child, str):
                right.append(child)
            elif isinstance(child, (list, tuple)) and child and isinstance(child[0], str):
                right.append([child[0]])
            else:
                problem = f"a child is a word or a list that begins with a label, got {type(child).__name__}"
                raise CorpusError(problem, structure=index, position=position)
        names.append(_encode([node[0], *right]) if right else None)
        links.append([])
        stack.extend((child, position) for child in reversed(node[1:]) if not isinstance(child, str))
    return names, links


def nested(names: Sequence[str | None], links: Sequence[Sequence[int]]) -> Tree:
    """The tree of productions in pre-order: the inverse of `productions` (a root without children is not kept)."""
    labels: list[str | None] = [None] * len(names)
    trees: list[Tree] = [[] for _ in names]
    for position, name in enumerate(names):  # pre-order: a node's label is known from its parent's production
        if name is None:
            trees[position].append(labels[position] or UNNAMED_ROOT)
            continue
        label, *right = json.loads(name)
        trees[position].append(label)
        below = iter(links[position])
        for child in right:
            if isinstance(child, str):
                trees[position].append(child)
            else:
                target = next(below)
                labels[target] = child[0]
                trees[position].append(trees[target])
    return trees[0]


def bracketed(tree: Tree) -> str:
    """The tree in one line of brackets; symbols with white space or brackets in them cannot be written so."""
    pieces: list[str] = []
    stack: list[Any] = [tree]
    while stack:
        item = stack.pop()
        if item is None:
            pieces[-1] += ")"
            continue
        symbol = item if isinstance(item, str) else item[0]
        if not _SYMBOL.fullmatch(symbol):
            raise CorpusError(f"a bracketed tree cannot hold the symbol {excerpt(symbol)}", advice="use nested lists")
        if isinstance(item, str):
            pieces.append(symbol)
        else:
            pieces.append(f"({symbol}")
            stack.append(None)
            stack.extend(reversed(item[1:]))
    return " ".join(pieces)


def words(tree: Tree) -> list[str]:
    """The words of a tree from left to right."""
    words: list[str] = []
    stack: list[Any] = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            words.append(item)
        else:
            stack.extend(reversed(item[1:]))
    return words


def nodes(tree: Tree) -> Iterator[Tree]:
    """All nodes, parents before children, left to right."""
    waiting: list[Tree] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(child for child in reversed(node[1:]) if not isinstance(child, str))


def is_preterminal(node: Tree) -> bool:
    return len(node) == 2 and isinstance(node[1], str)
