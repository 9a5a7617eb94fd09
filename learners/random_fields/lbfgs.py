"""L-BFGS in the inner product of the kernel: one product with the Gram matrix per iteration (math 11.1).

An element of the space is (a, G a, T) with <x, z> = <a_x, G a_z> + <T_x, T_z> / rho. Directions are combinations of
stored elements, so G times them is known and a line search reads no tile.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from gramline.learners.arrays import Floats
from gramline.learners.checkpoints import State, named, number, part_of
from gramline.learners.linear_algebra.conjugate_gradient import StoppingRule
from gramline.learners.linear_algebra.solve_memory import SolveMemory
from gramline.learners.random_fields.likelihood import ChainLikelihood, Slope

MEMORY = 8  # pairs of steps and differences of gradients: two arrays like the scores each
FALLS, FLATTENS = 1e-4, 0.9  # what a step must do: Armijo and Wolfe
MOST_TRIALS = 40  # of a line search


class Element(NamedTuple):
    """A vector of the space that the kernel and the transitions span."""

    dual: Floats  # a, shape (n_rows, n_labels)
    image: Floats  # G a, shape (n_rows, n_labels)
    transition: Floats  # T, shape (n_labels, n_labels)

    def plus(self, factor: float, other: Element) -> Element:
        return Element(*(own + factor * more for own, more in zip(self, other, strict=True)))

    def times(self, factor: float) -> Element:
        return Element(*(factor * own for own in self))


class Problem(NamedTuple):
    """J = |w|^2 / 2 + C sum_i [ log Z_i - log Zc_i ]."""

    likelihood: ChainLikelihood
    C: float
    rho: float  # weight of a transition beside G

    def inner(self, x: Element, z: Element) -> float:
        return float(np.vdot(x.dual, z.image) + np.vdot(x.transition, z.transition) / self.rho)

    def gradient_of(self, point: Element, slope: Slope) -> tuple[Floats, Floats]:
        """(22): alpha - C (Y - p) and T - rho C (N - nu); G times the first is what an iteration pays for."""
        return point.dual - self.C * slope.nodes, point.transition - self.rho * self.C * slope.edges


class Minimum(NamedTuple):
    """Where the iterations ended."""

    point: Element  # with G a computed anew
    objective: float
    bound: float  # |g|^2 / 2: J is above its minimum by at most this, where all labels are known
    trace: list[float]  # J at the start and after every iteration
    is_converged: bool
    curvatures: Floats  # <ga, G ga> of every row at the end, shape (n_rows,): negative sums tell of no kernel

    def state(self) -> State:
        numbers = {"objective": self.objective, "bound": self.bound, "is_converged": self.is_converged}
        own = {name: number(value) for name, value in numbers.items()}
        own |= {"trace": np.array(self.trace), "curvatures": self.curvatures}
        return own | named("point", self.point._asdict())

    @classmethod
    def of(cls, state: State) -> Minimum:
        return cls(
            Element(**part_of(state, "point")),
            float(state["objective"]),
            float(state["bound"]),
            state["trace"].tolist(),
            bool(state["is_converged"]),
            state["curvatures"],
        )


Pair = tuple[Element, Element, float]  # step, difference of gradients, their inner product


class _Iterate(NamedTuple):
    """A point whose gradient (a, G a, T) waits for G a, and how it was reached."""

    point: Element
    value: float  # J
    dual: Floats  # a of the gradient
    transition: Floats  # T of the gradient
    trace: list[float]
    pairs: Sequence[Pair] = ()  # without that of the last step
    taken: Element | None = None  # the last step
    before: Element | None = None  # the gradient where it began

    def state(self) -> State:
        """All of it; nobody changes these arrays."""
        own = {"value": number(self.value), "dual": self.dual, "transition": self.transition}
        own |= {"trace": np.array(self.trace), "curvatures": np.array([curvature for *_, curvature in self.pairs])}
        own |= named("point", self.point._asdict())
        for place, (step, difference, _) in enumerate(self.pairs):
            own |= named(f"step.{place}", step._asdict()) | named(f"difference.{place}", difference._asdict())
        for name, element in (("taken", self.taken), ("before", self.before)):
            own |= named(name, {} if element is None else element._asdict())
        return own

    @classmethod
    def of(cls, state: State) -> _Iterate:
        def element(name: str) -> Element:
            return Element(**part_of(state, name))

        is_first = len(state["trace"]) == 1
        return cls(
            element("point"),
            float(state["value"]),
            state["dual"],
            state["transition"],
            state["trace"].tolist(),
            [
                (element(f"step.{place}"), element(f"difference.{place}"), curvature)
                for place, curvature in enumerate(state["curvatures"].tolist())
            ],
            None if is_first else element("taken"),
            None if is_first else element("before"),
        )


def lbfgs_steps(
    problem: Problem, n_rows: int, stopping: StoppingRule, memory: SolveMemory | None = None
) -> Generator[Floats, Floats, Minimum]:
    """Minimise J from w = 0: yields a, shape (n_rows, n_labels), is sent G a, returns the minimum.

    Ends at |g|^2 / 2 <= tolerance * J, where J falls no more, or after so many iterations. Before every product
    `memory` has all that it takes to go on.
    """
    memory = SolveMemory() if memory is None else memory
    begun = memory.begun
    now = _started(problem, n_rows) if begun is None else _Iterate.of(begun)
    # Before the last product that of the gradient has been made.
    image = None if begun is None else begun.get("image")
    while True:
        if image is None:
            memory.state = now.state()
            image = yield now.dual
        gradient, pairs = Element(now.dual, image, now.transition), now.pairs
        if now.before is not None and now.taken is not None:
            difference = gradient.plus(-1.0, now.before)
            if (curvature := problem.inner(now.taken, difference)) > 0.0:
                pairs = [*pairs[1 - MEMORY :], (now.taken, difference, curvature)]
        bound = problem.inner(gradient, gradient) / 2.0
        is_converged = bound <= stopping.tolerance * abs(now.value)
        if is_converged or len(now.trace) > stopping.max_iterations:
            break
        direction = _direction(problem, gradient, pairs)
        if (falling := problem.inner(gradient, direction)) >= 0.0:  # rounding
            pairs, direction, falling = [], gradient.times(-1.0), -2.0 * bound
        search = _search(problem, now.point, now.value, direction, falling)
        if search is None:
            break
        step, value, slope = search
        point = now.point.plus(step, direction)
        own = problem.gradient_of(point, slope)
        now = _Iterate(point, value, *own, [*now.trace, value], pairs, direction.times(step), gradient)
        image = None
    memory.state = {**now.state(), "image": image}
    point = now.point._replace(image=(yield now.point.dual))  # sums of many terms have drifted
    loss = problem.likelihood(point.image, point.transition).loss
    objective = problem.inner(point, point) / 2.0 + problem.C * loss
    curvatures: Floats = (gradient.dual * gradient.image).sum(axis=1)
    return Minimum(point, objective, bound, now.trace, is_converged, curvatures)


def _started(problem: Problem, n_rows: int) -> _Iterate:
    """w = 0."""
    n_labels = problem.likelihood.n_labels
    point = Element(np.zeros((n_rows, n_labels)), np.zeros((n_rows, n_labels)), np.zeros((n_labels, n_labels)))
    slope = problem.likelihood(point.image, point.transition)
    value = problem.C * slope.loss
    return _Iterate(point, value, *problem.gradient_of(point, slope), [value])


def _direction(problem: Problem, gradient: Element, pairs: Sequence[Pair]) -> Element:
    """Minus the inverse Hessian that the pairs tell of, times the gradient: the two-loop recursion."""
    direction = gradient.times(-1.0)
    shares = []
    for step, difference, curvature in reversed(pairs):
        shares.append(problem.inner(step, direction) / curvature)
        direction = direction.plus(-shares[-1], difference)
    if pairs:
        _, difference, curvature = pairs[-1]
        direction = direction.times(curvature / problem.inner(difference, difference))
    for (step, difference, curvature), share in zip(pairs, reversed(shares), strict=True):
        direction = direction.plus(share - problem.inner(difference, direction) / curvature, step)
    return direction


def _search(
    problem: Problem, point: Element, value: float, direction: Element, falling: float
) -> tuple[float, float, Slope] | None:
    """A step, J there and its slope, by halving and doubling until J falls and flattens enough; None: it falls no more.

    `value` and `falling` are J and its derivative at `point`. |w + s d|^2 needs three inner products; the rest of J
    needs S + s G d.
    """
    square, mixed, bend = (
        problem.inner(*pair) for pair in ((point, point), (point, direction), (direction, direction))
    )

    def at(step: float) -> tuple[float, float, Slope]:
        """J, its derivative along the direction, and the slope."""
        slope = problem.likelihood(point.image + step * direction.image, point.transition + step * direction.transition)
        pull = np.vdot(slope.nodes, direction.image) + np.vdot(slope.edges, direction.transition)
        length = square + 2.0 * step * mixed + step * step * bend
        return length / 2.0 + problem.C * slope.loss, mixed + step * bend - problem.C * float(pull), slope

    low, high, step = 0.0, np.inf, 1.0
    best: tuple[float, float, Slope] | None = None
    for _ in range(MOST_TRIALS):
        reached, derivative, slope = at(step)
        if not reached <= value + FALLS * step * falling:  # also where it is not finite
            high = step
        else:
            if reached < value and (best is None or reached < best[1]):
                best = step, reached, slope
            if derivative >= FLATTENS * falling:
                break
            low = step
        step = 2.0 * step if high == np.inf else (low + high) / 2.0
    return best
