"""Sweeps over the blocks of the bound until it stops growing; a new scale is tried for a sweep, and kept if better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gramline.learners.arrays import Matrix
from gramline.learners.checkpoints import NOWHERE, Checkpoint, State, named, number, part_of
from gramline.learners.gaussian_process.inference import Inference
from gramline.learners.gaussian_process.means import update_means
from gramline.learners.gaussian_process.search import KernelSearch, ScaleSearch
from gramline.learners.linear_algebra.cholesky import not_positive_definite
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule

SweepProgress = Callable[[int, float], None]  # called after every sweep with its number, from 1, and the bound

FAR = 1e4  # a mean prior variance above it, or below its inverse, is no place to start a search
FIRST_GUESSES = 6  # of the scale, before the first sweep
NEWTON_STEPS = 10  # per sweep at most; they are cheap beside the factorisations
BATCHES = 8  # of labels, per sweep: each asks the normaliser of all labels again, which with 70 labels would take long
LEFT_OUT = 0.2  # of the tolerance: what the labels of a sweep that are not worth a factorisation may gain together


@dataclass
class Training:
    """The bound at the start and after every sweep, and whether it stopped growing."""

    trace: list[float] = field(default_factory=list)
    sweeps: int = 0
    converged: bool = False

    def state(self) -> State:
        trace = np.array(self.trace, np.float64)
        return {"trace": trace, "sweeps": number(self.sweeps), "converged": number(self.converged)}


def maximise(
    inference: Inference,
    stopping: StoppingRule,
    search: ScaleSearch | None = None,
    kernel: KernelSearch | None = None,
    progress: SweepProgress | None = None,
    checkpoint: Checkpoint = NOWHERE,
) -> Training:
    """Sweep until the relative increase of the bound is at most the tolerance; the trace never decreases.

    Parameters of the kernel take a step after every sweep but the first, as long as they move. With a search for them
    there is no checkpoint.
    """
    tolerance = stopping.tolerance
    begun = checkpoint.restore()
    training = _started(inference, tolerance, search) if begun is None else _resumed(begun, inference, search)

    def state() -> State:
        searched = {} if search is None else named("search", search.state())
        return named("training", training.state()) | named("inference", inference.state()) | searched

    while training.sweeps < stopping.max_iterations and not training.converged:
        training.sweeps += 1
        before = training.trace[-1]
        # The first sweep starts from evenly spread labels, which say nothing about the scale.
        factors = search.propose(inference.posterior) if search is not None and training.sweeps > 1 else None
        snapshot = inference.snapshot()
        sweep(inference, tolerance, factors)
        if kernel is not None and factors is None and training.sweeps > 1:
            kernel.improve(inference, lambda moved: sweep(moved, tolerance))
        if factors is not None and search is not None and inference.is_worse(before):
            inference.restore(snapshot)
            search.reject()
        else:
            after = inference.elbo()
            training.trace.append(after)
            grown = after - before > tolerance * abs(after)
            training.converged = not grown and all(part is None or part.settled for part in (search, kernel))
        if progress is not None:
            progress(training.sweeps, training.trace[-1])
        is_last = training.converged or training.sweeps >= stopping.max_iterations
        checkpoint.offer(f"sweep {training.sweeps} of {stopping.max_iterations}", state, is_last=is_last)
    return training


def _started(inference: Inference, tolerance: float, search: ScaleSearch | None) -> Training:
    """The first means, and with a search a first scale."""
    if search is not None:
        _start_from_moderate_scale(inference)
    _newton_steps(inference, tolerance)
    if search is not None:
        _find_scale(inference, tolerance)
    return Training([inference.elbo()])


def _resumed(state: State, inference: Inference, search: ScaleSearch | None) -> Training:
    """Where `state` was."""
    inference.resume(part_of(state, "inference"))
    if search is not None:
        search.resume(part_of(state, "search"))
    own = part_of(state, "training")
    return Training(own["trace"].tolist(), int(own["sweeps"]), bool(own["converged"]))


def sweep(inference: Inference, tolerance: float, factors: Matrix | None = None) -> None:
    """Precisions of every label, all means, coupling variances; `factors` multiply the scales first."""
    if factors is not None:
        inference.rescale(factors)
    negligible = LEFT_OUT * tolerance * abs(inference.elbo()) / inference.tokens.n_labels
    labels = np.arange(inference.tokens.n_labels)
    for few in np.array_split(labels, min(len(labels), BATCHES)):
        inference.update_precisions(few, negligible=negligible, compare=factors is None)
    _newton_steps(inference, tolerance)
    inference.update_coupling_variances()


def _start_from_moderate_scale(inference: Inference) -> None:
    """Replace a scale whose prior variances are far from any score by one that gives them a mean of 1.

    The steps of a search are bounded, and from far above most of them lower the bound: it would give up on the way.
    """
    q, prior = inference.posterior, inference.covariance.diagonal()
    typical = float((q.scale * inference.weights**2 * prior[:, None]).mean())
    if typical > np.finfo(float).tiny and not 1 / FAR <= typical <= FAR:
        inference.rescale(np.full(len(q.scale), 1 / typical))
        inference.refresh()


def _find_scale(inference: Inference, tolerance: float) -> None:
    """A first guess of one scale for all labels while they still share one precision: a factorisation per trial."""
    search = ScaleSearch(shared=True)
    for _ in range(FIRST_GUESSES):
        factors = search.propose(inference.posterior)
        if factors is None or not inference.labels_alike():
            return
        inference.rescale(factors)
        inference.refresh()
        _newton_steps(inference, tolerance)


def _newton_steps(inference: Inference, tolerance: float) -> None:
    largest = 0.0
    for _ in range(NEWTON_STEPS):
        gain = update_means(inference)
        largest = max(largest, gain)
        if gain <= max(0.01 * tolerance * abs(inference.elbo()), 0.02 * largest):
            break
    # With a negative eigenvalue of K the bound has no maximum, and the means run along its eigenvector.
    q = inference.posterior
    smallest = q.quadratic.min(initial=0.0)
    if smallest < -1e-9 * abs(inference.elbo()):
        raise not_positive_definite(int((q.dual * q.mean).min(axis=1).argmin()), float(smallest))
