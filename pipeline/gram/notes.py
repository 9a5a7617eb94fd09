"""What a user should know of a kernel on a corpus before it is computed: numbers that are right and of little use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gramline.kernels.base import Kernel
    from gramline.pipeline.corpus.corpus import Corpus


def kernel_notes(kernel: Kernel, corpus: Corpus) -> Iterator[str]:
    """One sentence each, with what to do."""
    import numpy as np

    from gramline.kernels import Identity, Substitution
    from gramline.pipeline.corpus.pack import FEATURE_SET_MARK

    observation = getattr(kernel, "observation", None)
    if isinstance(observation, Substitution) and not observation.is_positive_semidefinite:
        smallest = observation.smallest_eigenvalue
        yield (
            f"the substitution matrix is not positive semidefinite (smallest eigenvalue {smallest:.3g}), as published "
            "ones are not: learners that solve with the Gram matrix may refuse it, and perceptrons learn badly from "
            f"it; take exp(0.15 (s_ab - (s_aa + s_bb) / 2)) of its entries s, or add {-smallest:.3g} to its diagonal"
        )
    if isinstance(observation, Identity):
        packed = corpus.packed()
        is_set = np.array([name.startswith(FEATURE_SET_MARK) for name in packed.vocabulary.symbols], dtype=bool)
        alone = int(np.count_nonzero(is_set & (np.bincount(packed.observed, minlength=len(is_set)) == 1)))
        if alone > packed.n_positions / 2:
            yield (
                f"identity compares feature sets as a whole, and {alone:,} of {packed.n_positions:,} positions have "
                "one that is nowhere else: nothing can be learned for new ones; the observation kernels linear and "
                "polynomial:degree=2,normalized=true compare them feature by feature (--observation, or [kernel] of "
                "a job file)"
            )
