"""One ranker on one fold of candidates, as a task for any worker: it names its store and its corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from gramline.learners.catalogue import make_learner
from gramline.learners.linear_algebra.blas_threads import one_blas_thread
from gramline.pipeline.candidates.columns import Groups, RankingScore, ranking_score
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.cost import this_process
from gramline.pipeline.crossval.folds import Folds
from gramline.pipeline.crossval.problem_task import Solved, stored
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.errors import InputError
from gramline.pipeline.models.ranker_training import TrainingCandidates


@dataclass(frozen=True)
class RankingTask:
    """A ranker to train on all candidates that are not held out, and to choose among those that are."""

    digest: str
    source: str  # a Gram store
    corpus: str  # the file of its candidates
    learner: str
    params: Mapping[str, Any]
    held_out: tuple[int, ...]
    hidden: tuple[int, ...]
    title: str = ""  # learner, setting and fold, for people


def solve_ranking(task: RankingTask) -> Solved:
    """The chosen candidates, counted from 0 within each held-out group, as text: what a run keeps are labels."""
    begin = perf_counter()
    corpus = _candidates(task.corpus)
    learner: Any = make_learner(task.learner, task.params)
    gram = stored(task.source, len(corpus))
    known = TrainingCandidates.without(corpus, set(task.hidden))
    more = known.evidence(learner, None)
    with one_blas_thread():
        learner.fit(gram, known.groups, **more)
        held = held_groups(corpus, task.held_out)
        chosen = learner.predict(gram, held, more.get("log_probabilities"))
    traces = {**learner.traces(), "log probability": [learner.log_probability_]}
    said = [note for note in learner.notes() if note not in learner.choice_notes()]  # a table has a row for that
    outcome = HeldOut([[str(number)] for number in chosen], None, traces, said)
    return Solved(outcome, perf_counter() - begin, this_process())


def held_groups(corpus: Corpus, held_out: Sequence[int]) -> list[list[int]]:
    """Candidates of the groups that a fold holds out, in the order of the corpus."""
    held = set(held_out)
    return [members for members in Groups.of(corpus).members if members[0] in held]


def held_score(corpus: Corpus, held_out: Sequence[int], outcome: HeldOut) -> RankingScore:
    """How good the chosen candidates of a fold are, beside the first and the best ones."""
    rows = [row for members in held_groups(corpus, held_out) for row in members]
    return ranking_score(corpus.select(rows), [int(number) for (number,) in outcome.predicted])


def require_whole_groups(corpus: Corpus, folds: Folds) -> None:
    """Refuse folds that part the candidates of a sentence, and those that leave no comparison to train on."""
    groups = Groups.of(corpus)
    for fold in range(len(folds)):
        for what, structures in (("holds out", folds.held_out[fold]), ("hides", folds.hidden(fold))):
            is_in = np.zeros(len(corpus), np.bool_)
            is_in[structures] = True
            for name, members in zip(groups.names, groups.members, strict=True):
                if 0 < int(is_in[members].sum()) < len(members):
                    raise InputError(
                        f"fold {fold} {what} some candidates of group {name!r} and trains on the others; keep all "
                        "candidates of a group together"
                    )


@lru_cache(maxsize=2)
def _candidates(path: str) -> Corpus:
    return Corpus.load(path)
