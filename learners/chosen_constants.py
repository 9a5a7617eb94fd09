"""A constant such as C, chosen by the labels of hidden structures: the same few values for every kernel and learner.

Some structures are hidden, fold after fold (`hidden_folds`). Every value is trained on what every fold leaves, all of
them in one stream over the Gram matrix; the value with the fewest wrong labels on hidden structures wins, the strongest
regularisation where that is even. Each starts from nothing: docs/design-notes.md says what a start from the next
smaller value would save and cost. Tried are C = 0.3, 1, 3, 10 and 30 divided by the typical k(x, x), so a kernel with a
unit diagonal and the same kernel times a number choose the same machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np

from gramline.learners.arrays import Indices, Matrix
from gramline.learners.checkpoints import Checkpoint, State, named, number, part_of
from gramline.learners.estimator import Learner
from gramline.learners.hidden_folds import N_FOLDS, hidden_structures

Auto = Literal["auto"]
LabelLists = list[list[str | None]]

STEPS = (0.3, 1.0, 3.0, 10.0, 30.0)  # C times the typical k(x, x), growing
FIXED_STEP = 10.0  # for fewer structures than folds
TOGETHER_BYTES = 1 << 30  # what the trials of one stream may hold


class Constant(NamedTuple):
    """The parameter that may be open."""

    name: str
    from_weight: Callable[[float], float]  # its value where the loss weighs C beside |w|^2 / 2
    # What ends a trial, where a label more or less is all that is asked.
    tolerance: float
    limit: str  # parameter that bounds the passes
    most: int


class Choice(NamedTuple):
    """What was tried, the strongest regularisation first."""

    name: str
    values: tuple[float, ...]
    wrong: tuple[int, ...]  # labels of hidden positions, for each value
    n_hidden: int  # positions; 0 where there were too few structures to hide any

    @property
    def value(self) -> float:
        return self.values[int(np.argmin(self.wrong))]

    def note(self) -> str:
        """What was chosen, in a sentence that is the same for all folds that choose the same."""
        if not self.n_hidden:
            return (
                f"{self.name} = {self.value:.2g} is a guess: fewer than {N_FOLDS} structures have labels, too few to "
                "choose by"
            )
        first, last = self.values[0], self.values[-1]
        is_end = self.value in (first, last) and len(set(self.wrong)) > 1
        return (
            f"{self.name} = {self.value:.2g} has the fewest wrong labels on hidden structures, of {len(self.values)} "
            f"values from {first:.2g} to {last:.2g}" + ("; others beyond it may have fewer" if is_end else "")
        )

    def table(self) -> dict[str, list[float] | list[int] | int]:
        """The same for a model to keep."""
        return {self.name: list(self.values), "wrong": list(self.wrong), "hidden": self.n_hidden}


class ChoosesConstant(Learner):
    """A learner with a constant that may be open; where it was, it says what was tried."""

    constant: ClassVar[Constant]
    _choice: Choice | None = None  # of a training that has just ended: a loaded model does not say it again

    def chosen(self) -> dict[str, float]:
        name = self.constant.name
        return {name: float(self.fitted()[f"{name}_"])} if getattr(self, name) == "auto" and self.fitted() else {}

    def choice_notes(self) -> list[str]:
        return [] if self._choice is None else [self._choice.note()]

    def restricted(self, rows: Indices) -> Self:
        reduced = super().restricted(rows)
        reduced._choice = self._choice
        return reduced


class Examples(Protocol):
    """One or more sets of labels of the same structures, and how learners are trained on them."""

    @property
    def lengths(self) -> Indices:
        """Of the structures."""

    def labels(self, problem: int) -> LabelLists:
        """One set, None where there is no label."""

    def diagonal(self) -> Matrix:
        """k(x, x) of all positions."""

    def bytes_of(self, learner: Any) -> int:
        """What a training holds, about."""

    def train(
        self, learners: Sequence[Any], problems: Sequence[int], hidden: Sequence[Indices], checkpoint: Checkpoint
    ) -> None:
        """Fit each learner, whose constant is a number, on its set of labels without those of its hidden structures."""

    def predict(self, learners: Sequence[Any]) -> Sequence[Sequence[Sequence[str]]]:
        """What each fitted learner predicts for all structures."""


def train_chosen(learners: Sequence[Any], examples: Examples, checkpoint: Checkpoint) -> None:
    """Fit every learner on its own set of labels; one whose constant is "auto" gets the value that is chosen for it.

    The learners are of one class, which is a ChoosesConstant. A `checkpoint` is of all of them together.
    """
    constant: Constant = learners[0].constant
    for learner in learners:
        learner.forget()
    is_open = [getattr(learner, constant.name) == "auto" for learner in learners]
    places = np.flatnonzero(is_open).tolist()
    diagonal = examples.diagonal() if places else np.zeros(0)
    searches = [_Search.of(constant, examples, diagonal, place) for place in places]
    trials = [trial for search in searches for trial in search.trials()]
    size = max(1, TOGETHER_BYTES // max((examples.bytes_of(learners[place]) for place in places), default=1))
    batches = [trials[first : first + size] for first in range(0, len(trials), size)]
    stages = _Stages(checkpoint, len(batches), constant.name)
    for stage, batch in enumerate(batches):
        if stage < stages.stage:  # an earlier training has done it
            continue
        copies = [trial.learner(learners[trial.problem], constant) for trial in batch]
        examples.train(copies, [trial.problem for trial in batch], [trial.hidden for trial in batch], stages.part())
        predicted = examples.predict(copies)
        stages.finish([trial.count(own) for trial, own in zip(batch, predicted, strict=True)])
    choices: list[Choice | None] = [None] * len(learners)
    rest = iter(stages.wrong)
    for search in searches:
        choices[search.problem] = search.choice(rest)
    final = [
        learner if choice is None else learner.fresh().set_params(**{constant.name: choice.value})
        for learner, choice in zip(learners, choices, strict=True)
    ]
    nothing: list[Indices] = [np.zeros(0, np.int64)] * len(final)
    examples.train(final, range(len(final)), nothing, stages.part())
    for learner, one, choice in zip(learners, final, choices, strict=True):
        if choice is not None:
            for name, value in one.fitted().items():
                setattr(learner, name, value)
            learner.trials_ = choice.table()
        learner._choice = choice


@dataclass(frozen=True, eq=False)
class _Trial:
    """One value on what one fold leaves."""

    problem: int
    value: float
    hidden: Indices
    labels: LabelLists

    def learner(self, model: Any, constant: Constant) -> Any:
        tolerance = max(float(model.tolerance), constant.tolerance)
        most = min(int(getattr(model, constant.limit)), constant.most)
        return model.fresh().set_params(**{constant.name: self.value, "tolerance": tolerance, constant.limit: most})

    def count(self, predicted: Sequence[Sequence[str]]) -> int:
        """Wrong labels on hidden structures."""
        return sum(
            right is not None and right != guess
            for k in self.hidden.tolist()
            for right, guess in zip(self.labels[k], predicted[k], strict=True)
        )


@dataclass(frozen=True, eq=False)
class _Search:
    """The values and folds of one set of labels. What has no label is neither trained on nor looked at."""

    problem: int
    name: str
    values: tuple[float, ...]
    folds: list[Indices]
    labels: LabelLists
    n_hidden: int

    @classmethod
    def of(cls, constant: Constant, examples: Examples, diagonal: Matrix, problem: int) -> _Search:
        labels = examples.labels(problem)
        n_labeled = np.array([sum(label is not None for label in own) for own in labels], np.int64)
        folds = hidden_structures(n_labeled)
        is_known = np.repeat(n_labeled > 0, examples.lengths)
        size = typical(diagonal[is_known])
        values = tuple(constant.from_weight(step / size) for step in (STEPS if folds else (FIXED_STEP,)))
        return cls(problem, constant.name, values, folds, labels, sum(int(n_labeled[fold].sum()) for fold in folds))

    def trials(self) -> Iterator[_Trial]:
        for fold in self.folds:
            for value in self.values:
                yield _Trial(self.problem, value, fold, self.labels)

    def choice(self, wrong: Iterator[int]) -> Choice:
        """From the counts of all trials of all searches, in their order."""
        counts = np.array([[next(wrong) for _ in self.values] for _ in self.folds], np.int64)
        total = counts.reshape(-1, len(self.values)).sum(axis=0)
        return Choice(self.name, self.values, tuple(total.tolist()), self.n_hidden)


def typical(diagonal: Matrix) -> float:
    """The median of k(x, x) where it is above 0; 1 where it never is."""
    positive = diagonal[diagonal > 0]
    return float(np.median(positive)) if len(positive) else 1.0


@dataclass(eq=False)
class _Stages:
    """A training in parts, each with a checkpoint of its own inside that of the whole."""

    whole: Checkpoint
    n_trials: int  # parts before the last one
    name: str
    stage: int = 0
    wrong: list[int] = field(default_factory=list)  # of all parts that are done
    _begun: State | None = None

    def __post_init__(self) -> None:
        if self.n_trials and (begun := self.whole.restore()) is not None:
            self.stage, self.wrong = int(begun["stage"]), begun["wrong"].tolist()
            self._begun = part_of(begun, "part")

    def part(self) -> Checkpoint:
        """That of the part that comes next."""
        return _Part(self) if self.n_trials else self.whole

    def finish(self, wrong: Sequence[int]) -> None:
        self.wrong += wrong
        self.stage += 1
        self._begun = None

    def restored(self) -> State | None:
        return self._begun

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool) -> None:
        is_trial = self.stage < self.n_trials
        where = f"{after} of the choice of {self.name}" if is_trial else after
        own = {"stage": number(self.stage), "wrong": np.array(self.wrong, np.int64)}
        self.whole.offer(where, lambda: own | named("part", state()), is_last=is_last and not is_trial)


@dataclass(frozen=True, eq=False)
class _Part:
    """What one part of a training takes for its checkpoint."""

    stages: _Stages

    def restore(self) -> State | None:
        return self.stages.restored()

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        self.stages.offer(after, state, is_last=is_last)
