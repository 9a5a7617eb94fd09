"""Parts of a corpus, of whole structures: by shares, by a number, or without what occurs again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.duplicates import duplicate_groups
from gramline.pipeline.errors import CorpusError

PERCENT = 100.0


class Deduplicated(NamedTuple):
    """The first of all equal structures, how many were left out, and how many of those had other labels."""

    corpus: Corpus
    n_removed: int
    n_other_labels: int


def split_corpus(
    corpus: Corpus, shares: Mapping[str, float], *, seed: int = 0, groups: Sequence[Any] | None = None
) -> dict[str, Corpus]:
    """Named parts, each with its share of the structures drawn at random, in the order they had.

    Parameters
    ----------
    shares : the share of each part; they sum to 1, or to 100.
    seed : the same seed gives the same parts.
    groups : one value per structure; equal ones stay together, as near to the shares as that allows.

    >>> from gramline.pipeline import Corpus
    >>> parts = split_corpus(Corpus.from_sequences([["a"], ["b"], ["c"], ["d"]]), {"train": 0.75, "test": 0.25}, seed=1)
    >>> {name: len(part) for name, part in parts.items()}
    {'train': 3, 'test': 1}
    """
    portions = _portions(shares)
    values = list(range(len(corpus))) if groups is None else list(groups)
    if len(values) != len(corpus):
        raise CorpusError(f"{len(values)} groups for {len(corpus)} structures", advice="give one per structure")
    members: dict[Any, list[int]] = {}
    for structure, value in enumerate(values):
        members.setdefault(value if isinstance(value, Hashable) else repr(value), []).append(structure)
    order = list(members.values())
    np.random.default_rng(seed).shuffle(order)
    if groups is not None:
        order.sort(key=len, reverse=True)  # large groups first: small ones even the parts out
    wanted = {name: portion * len(corpus) for name, portion in portions.items()}
    parts: dict[str, list[int]] = {name: [] for name in portions}
    for group in order:
        behind = max(portions, key=lambda name: wanted[name] - len(parts[name]))
        parts[behind] += group
    for name, chosen in parts.items():
        if not chosen:
            problem = f"no structure is left for {name!r}, a part of {shares[name]:g} of {len(corpus)} structures"
            advice = "give it a larger share" if groups is None else "give it a larger share, or do not group"
            raise CorpusError(problem, advice=advice)
    return {name: corpus.select(sorted(chosen)) for name, chosen in parts.items()}


def _portions(shares: Mapping[str, float]) -> dict[str, float]:
    if len(shares) < 2:
        raise CorpusError("a split has at least two parts", advice="give each part a name and its share")
    for name, share in shares.items():
        if not 0 < share < np.inf:
            raise CorpusError(f"the share of {name!r} must be above 0, got {share:g}")
    total = sum(shares.values())
    whole = next((whole for whole in (1.0, PERCENT) if abs(total - whole) <= 1e-6 * whole), None)
    if whole is None:
        raise CorpusError(f"the shares sum to {total:g}", advice="make them sum to 1, or to 100")
    return {name: share / total for name, share in shares.items()}


def sample_corpus(corpus: Corpus, n: int, *, seed: int = 0) -> Corpus:
    """So many structures drawn at random without repeats, in the order they had."""
    if not 1 <= n <= len(corpus):
        raise CorpusError(f"cannot draw {n:,} of {len(corpus):,} structures", advice=f"draw 1 to {len(corpus):,}")
    return corpus.select(sorted(np.random.default_rng(seed).permutation(len(corpus))[:n].tolist()))


def without_duplicates(corpus: Corpus) -> Deduplicated:
    """The corpus with the first of all structures that are equal but for their labels."""
    first = duplicate_groups(corpus)
    is_first = first == np.arange(len(corpus))
    labels = corpus.labels
    others = [int(k) for k in np.flatnonzero(~is_first) if labels[k] != labels[first[k]]]
    return Deduplicated(corpus.select(np.flatnonzero(is_first).tolist()), int((~is_first).sum()), len(others))
