"""The kernel marginalized labeling perceptron, trained block by block from any Gram operator.

The right-looking form is the online loop exactly: an update reaches the rows of its own block at once and all other
rows before their block is visited. R rounds over n blocks read R n + C (n - 1) tiles, where C counts the visits to a
block that made at least one mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from gramline.kernels.parameters import Boolean, Whole
from gramline.learners.arrays import Matrix, SmallCounts
from gramline.learners.chains.constraints import Constraints
from gramline.learners.chains.positions import PositionLabeler
from gramline.learners.checkpoints import Checkpoint, State, named, number, part_of
from gramline.learners.kinds import RoundProgress
from gramline.learners.labels import Labels, encode_labels
from gramline.learners.operators.lazy_scores import LazyScores
from gramline.learners.operators.operator import GramOperator, check_square
from gramline.learners.perceptrons.labeling_training import RoundSpan, RoundState, run_round
from gramline.learners.perceptrons.rounds import CountsMistakes


class LabelingPerceptron(CountsMistakes, PositionLabeler):
    """S[t, b] = P(b|t) * sum_s G(s, t) (W ky)[s, b],  W = A o P;  predict the lowest argmax over b.

    A mistake at t adds 1 to A[t, right] and takes 1 from A[t, guess]; the very next position sees it.
    Positions without a label are passed over and are no visits.

    Ties: two scores of a position are equal when they differ by at most 1e-12 of the magnitude that was summed into
    them, P * sum_s |G(s, t)| max_b |delta (W ky)[s, b]|; the lowest label wins. This magnitude is an upper bound of
    every |S| the position went through, also of those that cancelled between two visits, and in exact arithmetic it
    is the same for every block size; so are the decisions.

    Attributes
    ----------
    alpha_ : A, whole numbers of shape (n_rows, n_labels)
    average_alpha_ : its mean over all visits, shape (n_rows, n_labels)
    mistakes_ : mistakes of every round that was run
    rounds_run_ : how many that are
    label_names_ : the names of the columns
    label_kernel_ : ky, shape (n_labels, n_labels); None for the identity
    uniform_prior_ : whether P is uniform

    Examples
    --------
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.learners import DenseGram, LabelingPerceptron
    >>> from gramline.pipeline import Corpus
    >>> train = Corpus.from_sequences([["the", "cat"], ["a", "cat", "sat"]], [["D", "N"], ["D", "N", "V"]])
    >>> new = Corpus.from_sequences([["the", "cat", "sat"]])
    >>> kernel = SequenceLabeling(c=0.5)
    >>> learner = LabelingPerceptron(rounds=5).fit(DenseGram.of(kernel, train), train.labels)
    >>> learner.predict(DenseGram.of(kernel, train, new))
    [['D', 'N', 'V']]
    >>> learner.mistakes_[-1]
    0
    """

    name: ClassVar[str] = "labeling-perceptron"
    summary: ClassVar[str] = "dual perceptron over positions, from a Gram matrix of a labeling kernel"
    is_lazy: ClassVar[bool] = True
    round_measure: ClassVar[str] = "mistakes"
    row_arrays: ClassVar[tuple[str, ...]] = ("alpha_", "average_alpha_")
    paper: ClassVar[Mapping[str, Any]] = {"average": False}

    alpha_: SmallCounts
    average_alpha_: Matrix
    rounds_run_: int

    def __init__(
        self,
        rounds: Annotated[Whole, "passes over the training positions"] = 10,
        average: Annotated[Boolean, "predict with the mean of the weights after each visit, over all `rounds`"] = True,
        early_stop: Annotated[
            Boolean,
            "end at a round without a mistake, which would repeat for ever; the weights and their mean are the same",
        ] = True,
        constraints: Constraints = "none",
    ) -> None:
        self.rounds = rounds
        self.average = average
        self.early_stop = early_stop
        self.constraints = constraints

    @classmethod
    def _train_all(
        cls,
        learners: Sequence[Self],
        gram: GramOperator,
        label_sets: Sequence[Labels],
        progress: RoundProgress | None,
        checkpoint: Checkpoint,
    ) -> None:
        """Learners with the same labels differ only in when they stop, so they share their rounds."""
        _train(learners, gram, label_sets, progress, checkpoint)

    def _is_done(self, mistakes: list[int]) -> bool:
        return len(mistakes) == self.rounds or (self.early_stop and mistakes[-1:] == [0])

    def _take(self, gram: GramOperator, problem: _Problem, trained: State | None = None) -> None:
        """Become the learner that the rounds so far have trained, or what it had become when a state was kept."""
        if trained is None:
            average = problem.training.average(int(self.rounds))
            n_rounds = number(len(problem.mistakes))
            trained = {"alpha": problem.training.weights.alpha(), "average": average, "rounds": n_rounds}
        self.alpha_, self.average_alpha_ = trained["alpha"].astype(np.int32, copy=False), trained["average"]
        self.rounds_run_ = int(trained["rounds"])
        self.mistakes_ = list(problem.mistakes[: self.rounds_run_])
        self.label_names_ = problem.names
        self.label_kernel_ = gram.label_kernel
        self.uniform_prior_ = gram.row_prior is None

    def _trained(self) -> State:
        """What it became when it stopped; the names and the rest follow from the labels."""
        return {"alpha": self.alpha_, "average": self.average_alpha_, "rounds": number(self.rounds_run_)}

    def for_prediction(self) -> Self:
        """Without the rows of the weights that do not predict, which are nearly as large."""
        lean, other = copy(self), "alpha_" if self.average else "average_alpha_"
        setattr(lean, other, getattr(self, other)[:, :0])
        return lean

    def _dual(self) -> SmallCounts | Matrix:
        return self.average_alpha_ if self.average else self.alpha_

    def _uniform_probability(self) -> float:
        return 1.0 / len(self.label_names_)


@dataclass(eq=False)
class _Problem:
    """One set of labels, and the learners that still train on it."""

    names: tuple[str, ...]
    training: RoundState
    learners: list[LabelingPerceptron] = field(default_factory=list)
    mistakes: list[int] = field(default_factory=list)  # per round

    @property
    def is_over(self) -> bool:
        """Whether all of its learners stop after the rounds so far."""
        return all(learner._is_done(self.mistakes) for learner in self.learners)

    def finish(self, gram: GramOperator) -> None:
        """The learners that stop after the rounds so far take what is learned."""
        done = [learner for learner in self.learners if learner._is_done(self.mistakes)]
        for learner in done:
            learner._take(gram, self)
            self.learners.remove(learner)

    def state(self) -> State:
        return {"mistakes": np.array(self.mistakes, np.int64)} | named("training", self.training.state())

    def resume(self, state: State) -> None:
        self.training.resume(part_of(state, "training"))
        self.mistakes = state["mistakes"].tolist()


@dataclass(eq=False)
class _Run:
    """All problems that are trained together, and their scores."""

    gram: GramOperator
    learners: Sequence[LabelingPerceptron]
    problem_of: list[_Problem]  # of every learner
    problems: list[_Problem]  # each once
    scores: LazyScores

    @classmethod
    def start(cls, learners: Sequence[LabelingPerceptron], gram: GramOperator, label_sets: Sequence[Labels]) -> _Run:
        by_labels: dict[tuple[tuple[str, ...], bytes], _Problem] = {}
        problem_of = []
        for learner, labels in zip(learners, label_sets, strict=True):
            learner.check_parameters()
            check_square(gram)
            codes, names = encode_labels(gram, labels)
            key = names, codes.tobytes()  # equal codes are other labels where the names differ
            if key not in by_labels:
                by_labels[key] = _Problem(names, RoundState.start(gram, codes, len(names)))
            by_labels[key].learners.append(learner)
            problem_of.append(by_labels[key])
        problems = list(by_labels.values())
        return cls(gram, learners, problem_of, problems, LazyScores(gram, [len(one.names) for one in problems]))

    @property
    def running(self) -> list[tuple[int, _Problem]]:
        return [(k, problem) for k, problem in enumerate(self.problems) if problem.learners]

    def release(self) -> None:
        """No round follows, so that nobody needs scores; before weights of all rows are made."""
        self.scores.release()

    def state(self, next_block: int) -> State:
        state = {"block": number(next_block)} | named("scores", self.scores.state())
        for k, problem in enumerate(self.problems):
            state |= named(f"problem-{k}", problem.state())
        for k, (learner, problem) in enumerate(zip(self.learners, self.problem_of, strict=True)):
            if not any(learner is one for one in problem.learners):
                state |= named(f"done-{k}", learner._trained())
        return state

    def resume(self, state: State) -> int:
        """Go on where `state` was: the next block."""
        if scores := part_of(state, "scores"):  # else nothing is left to train
            self.scores.resume(scores)
        for k, problem in enumerate(self.problems):
            problem.resume(part_of(state, f"problem-{k}"))
        for k, (learner, problem) in enumerate(zip(self.learners, self.problem_of, strict=True)):
            if trained := part_of(state, f"done-{k}"):
                learner._take(self.gram, problem, trained)
                problem.learners = [one for one in problem.learners if one is not learner]
        return int(state["block"])


def _train(
    learners: Sequence[LabelingPerceptron],
    gram: GramOperator,
    label_sets: Sequence[Labels],
    progress: RoundProgress | None,
    checkpoint: Checkpoint,
) -> None:
    """Rounds over the tiles until every learner has stopped."""
    run, limit, block = _Run.start(learners, gram, label_sets), max(learner.rounds for learner in learners), 0
    if (begun := checkpoint.restore()) is not None:
        block = run.resume(begun)
    while running := run.running:
        rounds = 1 + len(running[0][1].mistakes)

        def visited(next_block: int, rounds: int = rounds) -> None:
            after = f"block {next_block} of {gram.layout.rows.n_blocks} in round {rounds} of {limit}"
            checkpoint.offer(after, lambda: run.state(next_block))

        is_last = all(learner.rounds == rounds for _, problem in running for learner in problem.learners)
        span = RoundSpan(block, is_last=is_last)
        counts = run_round(gram, run.scores, [(k, problem.training) for k, problem in running], span, visited)
        block = 0
        for (_, problem), mistakes in zip(running, counts, strict=True):
            problem.mistakes.append(mistakes)
        if progress is not None:
            progress(rounds, sum(counts))
        if is_last or all(problem.is_over for _, problem in running):
            run.release()
        for _, problem in running:
            problem.finish(gram)
        checkpoint.offer(f"round {rounds} of {limit}", lambda: run.state(0), is_last=not run.running)
