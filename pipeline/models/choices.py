"""Candidates that a ranker chose, as text, JSON lines or brackets, written and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from gramline.pipeline.candidates.columns import Groups
from gramline.pipeline.candidates.corpus import constituents
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.parses import bracketed, words
from gramline.pipeline.errors import InputError


def chosen_trees(corpus: Corpus, chosen: Sequence[int]) -> Iterator[str]:
    """The chosen parse of every group in brackets."""
    groups = Groups.of(corpus)
    if corpus.kind != "parses":
        raise InputError(f"chosen {corpus.kind} are not written as brackets", advice="write them as jsonl")
    picked = corpus.select(members[k] for members, k in zip(groups.members, chosen, strict=True))
    return map(bracketed, picked.trees)


def choice_records(corpus: Corpus, chosen: Sequence[int]) -> Iterator[dict[str, Any]]:
    """One record per group: its chosen candidate (counted from 0), and the tree or the tokens of that."""
    groups = Groups.of(corpus)
    picked = corpus.select(members[k] for members, k in zip(groups.members, chosen, strict=True))
    trees = picked.trees if picked.kind == "parses" else None
    for number, (group, candidate) in enumerate(zip(groups.names, chosen, strict=True)):
        content: dict[str, Any] = {"tree": trees[number]} if trees else {"tokens": picked.tokens[number]}
        yield {"id": picked.ids[number], "group": group, "candidate": candidate, **content}


def holds_choices(path: str) -> bool:
    """Whether a file holds chosen candidates, not labels."""
    try:
        with Path(path).open(encoding="utf-8") as file:
            first = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and "candidate" in first


def read_choices(path: str, groups: Groups) -> list[int]:
    """The chosen candidate of every group, from what `gramline predict` wrote."""
    by_group: dict[Any, int] = {}
    for line, text in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        try:
            record = json.loads(text)
            by_group[record["group"]] = int(record["candidate"])
        except (ValueError, KeyError, TypeError):
            raise InputError('a choice is an object with a "group" and a "candidate"', path=path, line=line) from None
    chosen = []
    for name, members in zip(groups.names, groups.members, strict=True):
        if not 0 <= by_group.get(name, -1) < len(members):
            raise InputError(f"{path} has no choice among the {len(members)} candidates of group {name!r}")
        chosen.append(by_group[name])
    return chosen


def weights_without_candidates(candidates: Corpus, groups: Groups, trees: Sequence[Any], source: str) -> list[float]:
    """Constituents of the trees that have no candidate; the groups are numbers of the trees, which `source` holds."""
    first = candidates.select(members[0] for members in groups.members).trees
    for name, tree in zip(groups.names, first, strict=True):
        if not isinstance(name, int) or not 0 <= name < len(trees) or words(trees[name]) != words(tree):
            raise InputError(
                f"group {name!r} is not a sentence of {source}", advice="give the trees that the candidates are for"
            )
    there = set(groups.names)
    return [float(constituents(tree).total()) for number, tree in enumerate(trees) if number not in there]
