"""How good a labeler is, without being asked: a short cross-validation beside the most frequent label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gramline.learners.estimator import Learner
from gramline.learners.labels import Labels
from gramline.learners.metrics import Evaluation, evaluate
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import Folds, Held, k_fold
from gramline.pipeline.crossval.training import fit_on_gram, hide
from gramline.pipeline.crossval.validate import cross_validate

SEED = 0
FOLDS, HELD_OUT_OF = 3, 5  # three folds of a small corpus, a fifth of a large one
LARGE = 6000  # positions: three trainings take longer than people wait for
LEAST_STRUCTURES = 5


@dataclass(frozen=True)
class QuickScore:
    """What a learner reached on structures it did not see, and what the most frequent label would have."""

    n_folds: int
    learned: Evaluation
    majority: Evaluation
    majority_label: str

    @property
    def is_better(self) -> bool:
        """Whether it learned anything."""
        return self.learned.n_wrong < self.majority.n_wrong

    def to_dict(self) -> dict[str, Any]:
        return {
            "folds": self.n_folds,
            "majority_label": self.majority_label,
            "learned": self.learned.to_dict(),
            "majority": self.majority.to_dict(),
        }


def quick_score(
    learner: Learner,
    evidence: GramOperator | Corpus,
    labels: Sequence[Sequence[str | None]],
    *,
    renew: Callable[[Labels], GramOperator] | None = None,
) -> QuickScore | None:
    """A score from structures that were held out, all folds together; None where there are too few structures.

    `renew` makes the Gram matrix of every fold, from its labels, where its values depend on them.
    """
    if len(labels) < LEAST_STRUCTURES:
        return None
    folds = quick_folds(labels)
    if renew is None:
        parts = cross_validate(learner, evidence, labels, folds).predictions[0]
    else:
        parts = tuple(_held_out(learner, renew(hide(labels, held)), labels, held) for held in folds.held_out)
    held = [number for part in folds.held_out for number in part.tolist()]
    gold = [labels[number] for number in held]
    predicted = [path for part in parts for path in part]
    counts = Counter(label for path in labels for label in path if label is not None)
    frequent = min(counts, key=lambda label: (-counts[label], label))
    constant = evaluate(gold, [[frequent] * len(path) for path in gold])
    return QuickScore(len(folds), evaluate(gold, predicted), constant, frequent)


def _held_out(
    learner: Learner, evidence: GramOperator, labels: Sequence[Sequence[str | None]], held: Held
) -> list[list[str]]:
    """What is predicted for the structures of one fold."""
    (outcome,) = fit_on_gram([learner.fresh()], evidence, labels, Folds(len(labels), (held,)), [0])
    return outcome.predicted


def quick_folds(labels: Sequence[Sequence[str | None]]) -> Folds:
    """Three folds, or one that holds a fifth of the structures out where there are many positions."""
    if sum(map(len, labels)) <= LARGE:
        return k_fold(len(labels), FOLDS, seed=SEED)
    return Folds(len(labels), k_fold(len(labels), HELD_OUT_OF, seed=SEED).held_out[:1])
