"""Chains of unary rules A -> ... -> B, the best k for every pair of symbols.

A chain may visit a symbol twice: such trees have a probability like any other. The k best chains to A use only
the k best chains to the symbol before, so a best-first walk that leaves each pair after k visits is exact.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.candidates.grammar import Grammar


@dataclass(frozen=True)
class UnaryChains:
    """chains[A][B] = [(log probability, symbols below A down to B)], best first; the empty chain is A itself."""

    chains: dict[int, dict[int, list[tuple[float, tuple[int, ...]]]]]

    @classmethod
    def of(cls, grammar: Grammar, k: int) -> UnaryChains:
        parents = grammar.unary_parents()
        chains: dict[int, dict[int, list[tuple[float, tuple[int, ...]]]]] = {}
        for bottom in parents:
            heap: list[tuple[float, tuple[int, ...]]] = [(0.0, (bottom,))]
            while heap:
                cost, path = heapq.heappop(heap)
                found = chains.setdefault(path[0], {}).setdefault(bottom, [])
                if len(found) == k:
                    continue
                found.append((-cost, path[1:]))
                for parent, score in parents.get(path[0], ()):
                    heapq.heappush(heap, (cost - score, (parent, *path)))
        return cls(chains)

    @cached_property
    def best(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Parents, children and scores of the best chain of every pair."""
        rows = [(a, b, found[0][0]) for a, below in self.chains.items() for b, found in below.items()]
        return (
            np.array([row[0] for row in rows], np.int64),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.float64),
        )
