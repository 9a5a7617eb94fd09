"""What a user should know of a kernel on a corpus: values that are right and of little use, and what to do.

The command line prints the notes; in Python the same words are a `KernelWarning`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gramline.kernels.base import Kernel
from gramline.kernels.errors import KernelOverflowError, KernelWarning
from gramline.kernels.marginalized import PositionLabeling, ReachingLabeling
from gramline.kernels.observations.base import Identity, ObservationKernel
from gramline.kernels.observations.substitution import Substitution
from gramline.kernels.observations.sums import Sum
from gramline.kernels.packing import Packable, Packed, pack_pair
from gramline.kernels.priors import UniformPrior
from gramline.kernels.reach import CONTEXT_SHARE, ReachSample
from gramline.pipeline.corpus.pack import FEATURE_SET_MARK
from gramline.pipeline.gram.spec import has_learned_prior

SMALL_SHARE = 0.01  # of a Gram matrix: what makes less has no say in what is learned
USEFUL_SHARE = 0.1  # that another reach must give: where neighbours hardly ever match, none does
LARGE_VALUE = 1e30  # learners multiply and add values: beyond it, sums overflow or lose everything else


def kernel_notes(kernel: Kernel, corpus: Packable | Packed) -> Iterator[str]:
    """One sentence for each thing that is wrong with a kernel on this corpus; computes a few values of a sample."""
    if not isinstance(kernel, PositionLabeling):
        return
    packed = pack_pair(corpus, None)[0]
    if not len(packed):
        return  # is refused, not noted
    for observation in _summands(kernel.observation):
        if isinstance(observation, Substitution) and not observation.is_positive_semidefinite:
            yield _indefinite(observation)
    if isinstance(kernel.observation, Identity):
        yield from _identity_notes(packed)
    if isinstance(kernel, ReachingLabeling):
        # A learned prior is not there yet, and the kernel without it says as much of the neighbours.
        bare = replace(kernel, prior=UniformPrior()) if has_learned_prior(kernel) else kernel  # type: ignore[type-var]
        yield from _reach_notes(bare, packed)


def warn_about_kernel(kernel: Kernel, corpus: Packable | Packed, *, stacklevel: int = 3) -> None:
    """The notes as warnings, of the line that called the caller unless `stacklevel` says otherwise."""
    for note in kernel_notes(kernel, corpus):
        warnings.warn(note, KernelWarning, stacklevel=stacklevel)


def _summands(observation: ObservationKernel) -> Iterator[ObservationKernel]:
    if isinstance(observation, Sum):
        yield from _summands(observation.first)
        yield from _summands(observation.second)
    else:
        yield observation


def _indefinite(observation: Substitution) -> str:
    smallest = observation.smallest_eigenvalue
    return (
        f"the substitution matrix is not positive semidefinite (smallest eigenvalue {smallest:.3g}), as published "
        "ones are not: learners that solve with the Gram matrix may refuse it, and perceptrons learn badly from "
        "it; take a built-in table (blosum62), or exp(0.15 (s_ab - (s_aa + s_bb) / 2)) of its entries s, or add "
        f"{-smallest:.3g} to its diagonal"
    )


def _identity_notes(packed: Packed) -> Iterator[str]:
    is_set = np.array([name.startswith(FEATURE_SET_MARK) for name in packed.vocabulary.symbols], dtype=bool)
    alone = int(np.count_nonzero(is_set & (np.bincount(packed.observed, minlength=len(is_set)) == 1)))
    if alone > packed.n_positions / 2:
        yield (
            f"identity compares feature sets as a whole, and {alone:,} of {packed.n_positions:,} positions have "
            "one that is nowhere else: nothing can be learned for new ones; the observation kernels linear "
            "(normalized) and polynomial (degree 2, normalized) compare them feature by feature"
        )


def _reach_notes(kernel: ReachingLabeling, packed: Packed) -> Iterator[str]:
    """Neighbours that count for next to nothing, and values that grow beyond use."""
    sample = ReachSample(kernel, packed)
    try:
        largest = sample.largest_value(kernel)
    except KernelOverflowError:
        return  # is refused, not noted
    share = sample.share(kernel)
    if share >= SMALL_SHARE and largest <= LARGE_VALUE:
        return
    reach = sample.reach(CONTEXT_SHARE)
    better = sample.share(kernel.reaching(reach))
    if largest > LARGE_VALUE:
        yield (
            f"values of the longest structures grow to {largest:.1g}, and beyond {LARGE_VALUE:.0g} nothing shorter "
            f"counts beside them and sums may overflow; with a reach of {reach:g} they stay comparable"
        )
    elif better >= USEFUL_SHARE:
        yield (
            f"neighbours make {100 * share:.2g} % of the Gram matrix (on a sample): positions are compared almost by "
            f"themselves; with a reach of {reach:g} they make {100 * better:.0f} %"
        )
