"""Kernels as options and job files describe them; a reach of "auto" or "grid" is resolved here, from the corpus.

Behind this door every kernel has numbers: a spec, a store and a model never hold the word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.marginalized import ReachingLabeling
from gramline.kernels.priors import UniformPrior
from gramline.kernels.reach import CONTEXT_SHARE, GRID_SHARES, ReachSample
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.learned_prior import prior_learner
from gramline.pipeline.gram.spec import counts_labels, kernel_for

REACH, AUTO, GRID = "reach", "auto", "grid"
SHARES = {AUTO: (CONTEXT_SHARE,), GRID: GRID_SHARES}  # of the Gram matrix that neighbours are to make


@dataclass(frozen=True)
class KernelChoice:
    """A kernel, and what its neighbours make of the Gram matrix where its reach was chosen for that."""

    kernel: Kernel
    context_share: float | None = None  # None: the reach was given, or there is none

    @property
    def notes(self) -> tuple[str, ...]:
        """What was chosen, for people."""
        if self.context_share is None or not isinstance(self.kernel, ReachingLabeling):
            return ()
        return (f"reach {self.kernel.reach:g}: neighbours make {self.context_share:.0%} of the matrix",)


def choose_kernels(description: Mapping[str, Any], corpus: Corpus) -> list[KernelChoice]:
    """The kernel of a description without lists, for a corpus; several where its reach is "grid".

    >>> corpus = Corpus.from_sequences([["a", "b"], ["a", "b"]])
    >>> [choice.kernel.reach for choice in choose_kernels({"reach": "grid"}, corpus)]
    [0.0526, 0.25, 1.0, 4.0]
    """
    word = description.get(REACH)
    if not isinstance(word, str):
        kernel = kernel_for(description, corpus.kind)
        prior_learner(kernel)  # refuses what it cannot be made with
        return [KernelChoice(kernel)]
    kernel = kernel_for({**description, REACH: None}, corpus.kind)
    prior_learner(kernel)
    if word not in SHARES or not isinstance(kernel, ReachingLabeling):
        what = f"{type(kernel).__name__}.{REACH}"
        problem = f"{what} must be a number above 0, {AUTO} or {GRID}, got {word!r}"
        raise KernelParameterError(problem, key=REACH, owner=type(kernel))
    # A prior that counts labels would let the labels of a corpus, those that folds hold out too, choose the reach.
    blind = type(kernel)(**kernel.get_params() | {"prior": UniformPrior()}) if counts_labels(kernel) else kernel
    sample = ReachSample(blind, corpus)
    reaches = dict.fromkeys(sample.reach(share) for share in SHARES[word])
    return [KernelChoice(kernel.reaching(reach), sample.share(blind.reaching(reach))) for reach in reaches]


def choose_kernel(description: Mapping[str, Any], corpus: Corpus) -> KernelChoice:
    """The one kernel of a description, for a corpus.

    >>> corpus = Corpus.from_sequences([["a", "b"], ["a", "b"]])
    >>> choose_kernel({"reach": "auto"}, corpus).notes
    ('reach 1: neighbours make 50% of the matrix',)
    """
    if isinstance(description.get(REACH), list) or description.get(REACH) == GRID:
        problem = f"{REACH} names several values, but one kernel is wanted"
        raise KernelParameterError(problem, advice=f"give a number or {AUTO}; `gramline cv` tries several", key=REACH)
    return choose_kernels(description, corpus)[0]
