"""`gramline fit` on a file with labels or on a corpus: import, kernel and learner, how good it is, model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import describe
from gramline.kernels.errors import KernelWarning
from gramline.learners.estimator import Learner
from gramline.pipeline.cli.checkpoint_options import CheckpointOptions
from gramline.pipeline.cli.job_file.corpus import compares_words, corpus_of, labeled_file
from gramline.pipeline.cli.job_file.file import JobFile, merged
from gramline.pipeline.cli.job_file.kernel import kernel_from
from gramline.pipeline.cli.terminal.bill import Bill
from gramline.pipeline.cli.terminal.event_log import Telling
from gramline.pipeline.cli.terminal.notation import parse_setting
from gramline.pipeline.cli.terminal.output import count, duration, say, say_folded, say_json, say_notes, short_path
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.cli.workplaces import HERE, Workplace, workplace
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import import_notes
from gramline.pipeline.crossval.first_fit import FirstFit, first_fit, fit_winner
from gramline.pipeline.crossval.quick import QuickScore
from gramline.pipeline.crossval.winner import winner
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.gram.kernel_choice import KernelChoice
from gramline.pipeline.gram.notes import kernel_notes
from gramline.pipeline.models.recommended import described, recommended_kernel, recommended_learner
from gramline.pipeline.models.saved import require_new_model
from gramline.pipeline.models.training import DEFAULT_LEARNER, dropped_notes, learner_of
from gramline.pipeline.models.training_gram import fits_memory

SHOWN_LABELS = 6
MARGIN = 9  # columns before what the lines say
NOTHING_LEARNED = (
    "the labels are no better than the most frequent one everywhere: try other features (--features of `gramline "
    "corpus import`), another kernel or learner (`gramline cv` compares them), or more labeled structures"
)
TOO_FEW = "there are too few structures to hold some of them out: nobody knows how good the model is"


@dataclass(frozen=True)
class LearnerOptions:
    """What a command line and a job file say of the learner; perhaps not its name."""

    job: JobFile
    given: Mapping[str, Any]
    rounds: int | None

    @classmethod
    def of(cls, job: JobFile, rounds: int | None, extra: tuple[str, ...]) -> LearnerOptions:
        given = dict(job.given.of("learner"))
        for text in extra:
            key, equals, value = text.partition("=")
            if not equals:
                raise InputError(f"--set {text!r} is not of the form key=value")
            given[key.replace("-", "_")] = parse_setting(value)
        return cls(job, given, rounds)

    def named(self) -> Learner | None:
        """The learner that is named, checked before any work; None where none is."""
        is_named = "name" in self.given or "name" in self.job.learner
        return self.of_name(DEFAULT_LEARNER) if is_named else None

    def of_name(self, default: str) -> Learner:
        """The learner that is named, or the one that is called `default`, with the parameters that are given."""
        with self._locating():
            return learner_of(merged(self.job.learner, self.given, default), self.rounds)

    def on(self, recommended: Learner) -> Learner:
        """The recommended learner with the parameters that are given."""
        rounds = {} if self.rounds is None else {"rounds": self.rounds}
        with self._locating():
            learner = recommended.set_params(**self.job.learner, **self.given, **rounds)
            learner.check_parameters()
        return learner

    def _locating(self) -> Any:
        return self.job.locating("learner", [*self.given, *([] if self.rounds is None else ["rounds", "passes"])])


@dataclass(frozen=True)
class CorpusFit:
    """One training on a file: what was asked for, and who reads about it."""

    job: JobFile
    path: str
    is_argument: bool  # of the command line, not of the job file
    wanted: LearnerOptions
    evaluates: bool
    overwrite: bool
    telling: Telling
    as_json: bool
    bill: Bill
    stops: CheckpointOptions

    @property
    def target(self) -> str:
        """Where the model goes: NAME.model.zarr in the current folder unless it is said."""
        name = Path(self.path.removesuffix(".gz")).name
        return self.job.model.path or f"{name.partition('.')[0] or name}.model.zarr"

    def read(self, learner: Learner | None) -> Corpus:
        """The corpus; a file that says nothing of its features gets those of spelling."""
        if not self.is_argument:
            return corpus_of(self.job, "path")
        if Path(self.path).is_dir() and learner is not None:
            raise InputError(
                f"{learner.name} reads features, so it trains on a corpus file, but {self.path} is a folder; give the "
                "path of a corpus"
            )
        require_file(self.path, "a file with labels, a corpus or a store that `gramline gram build` wrote")
        return labeled_file(self.path, self.job)

    def asked_kernel(self, corpus: Corpus) -> KernelChoice | None:
        """The kernel that is asked for, if one is."""
        return kernel_from(self.job, corpus) if self.job.kernel or self.job.given.of("kernel") else None

    def kernel(self, corpus: Corpus, learner: Learner, asked: KernelChoice | None) -> KernelChoice | None:
        """The kernel that is asked for, the recommended one, or none for a learner on features."""
        if learner.reads_corpus:
            if self.job.given.of("kernel"):
                raise InputError(f"{learner.name} reads features and has no kernel; leave --kernel out")
            return None
        return asked or KernelChoice(recommended_kernel(corpus))


def fit_corpus(fitting: CorpusFit) -> None:
    """Train on a file, say how good it is, and save the model."""
    with workplace(fitting.job) as place:
        place.why_unused = HERE
        _fit_corpus(fitting, place)


def _fit_corpus(fitting: CorpusFit, place: Workplace) -> None:
    named = fitting.wanted.named()
    target = fitting.target
    require_new_model(target, fitting.overwrite)
    checkpoint = fitting.stops.checkpoint(target)
    begin = perf_counter()
    corpus = fitting.read(named)
    if not any(corpus.label_counts().values()):
        raise InputError(f"{fitting.path} has no labels to learn from; give a file with labels")
    corpus = described(corpus) if named is None and not compares_words(fitting.job) else corpus
    asked = fitting.asked_kernel(corpus)
    advised = recommended_learner(corpus, None if asked is None else asked.kernel)
    learner = fitting.wanted.on(advised) if named is None else named
    fitting.stops.require_suited(learner)
    choice = fitting.kernel(corpus, learner, asked)
    kernel = None if choice is None else choice.kernel
    if not fitting.as_json:
        _say_corpus(fitting.path, corpus)
        _say_pair(learner, kernel)
    say_notes(str(note) for note in import_notes(corpus, fitting.path, training=None, like=None, key=None))
    if choice is not None:
        say_notes([*choice.notes, *kernel_notes(choice.kernel, corpus)])
    say_notes(dropped_notes(learner, corpus.labels))
    with when_stopped("no model was written; the same command trains again"), checkpoint.kept():
        with fitting.telling.show(fitting.as_json) as listener, warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelWarning)  # a matrix on disk would say the notes of its kernel again
            with _workers(fitting.job, place, kernel, corpus) as client:
                result = first_fit(
                    corpus,
                    learner,
                    kernel,
                    evaluates=fitting.evaluates,
                    beside=fitting.path,
                    listener=listener,
                    checkpoint=checkpoint,
                    client=client,
                )
        replace(result.model, cost=fitting.bill.cost).save(target, overwrite=fitting.overwrite)
    say_notes(result.model.learner.notes())
    if fitting.evaluates and result.score is None:
        say_notes([TOO_FEW])
    if result.score is not None and not result.score.is_better:
        say_notes([NOTHING_LEARNED])
    seconds = perf_counter() - begin
    if fitting.as_json:
        say_json(_as_json(result, target, seconds) | fitting.bill.result())
    else:
        _say_result(result, target, seconds)
        fitting.bill.say(head=MARGIN)


@contextmanager
def _workers(job: JobFile, place: Workplace, kernel: Kernel | None, corpus: Corpus) -> Iterator[Any]:
    """The client of a cluster, where one was asked for and the matrix is too large for the memory of one process."""
    cluster = job.cluster
    is_asked = not cluster.inline and (cluster.scheduler is not None or cluster.workers is not None)
    if not is_asked or kernel is None or fits_memory(kernel, corpus):
        yield None
        return
    with place.open() as executor:
        yield getattr(executor, "client", None)


class Manner(NamedTuple):
    """How a training is told of, billed and stopped."""

    overwrite: bool
    telling: Telling
    as_json: bool
    bill: Bill
    stops: CheckpointOptions


def fit_run(path: str, target: str | None, manner: Manner) -> None:
    """Train the winner of a cross-validation on everything, and save the model."""
    overwrite, telling, as_json, bill, stops = manner
    won = winner(path)
    written = target or f"{Path(path).name.partition('.')[0]}.model.zarr"
    require_new_model(written, overwrite)
    stops.require_suited(won.learner)
    checkpoint = stops.checkpoint(written)
    begin = perf_counter()
    if not as_json:
        say_folded("winner   ", f"{won.name}: {won.metric.replace('_', ' ')} {won.score:.4f} over the folds")
        _say_pair(won.learner, won.kernel)
    with when_stopped("no model was written; the same command trains again"), checkpoint.kept():
        with telling.show(as_json) as listener:
            model = fit_winner(won, listener, checkpoint)
        replace(model, cost=bill.cost).save(written, overwrite=overwrite)
    result = FirstFit(model, None)
    seconds = perf_counter() - begin
    if as_json:
        say_json(_as_json(result, written, seconds) | {"metric": won.metric, "score": won.score} | bill.result())
    else:
        _say_result(result, written, seconds)
        bill.say(head=MARGIN)


def _as_json(result: FirstFit, target: str, seconds: float) -> dict[str, Any]:
    fitted = result.model.learner.attributes()["fitted"]
    score = None if result.score is None else result.score.to_dict()
    more = {"model": target, "seconds": seconds, "mistakes": fitted.get("mistakes_"), "cross_validation": score}
    return result.model.describe() | more


def _say_corpus(path: str, corpus: Corpus) -> None:
    counts = sorted(corpus.label_counts().items(), key=lambda item: -item[1])
    listed = ", ".join(f"{label} {number:,}" for label, number in counts[:SHOWN_LABELS])
    rest = f", {count(len(counts) - SHOWN_LABELS, 'other label')}" if len(counts) > SHOWN_LABELS else ""
    made = "" if corpus.recipe is None else f" ({corpus.recipe.describe()})"
    sizes = f"{count(len(corpus), 'structure')}, {count(corpus.n_positions, 'position')}"
    say_folded("read     ", f"{short_path(path)}: {sizes}{made}")
    say_folded("labels   ", listed + rest)


def _say_pair(learner: Learner, kernel: Kernel | None) -> None:
    if kernel is not None:
        say_folded("kernel   ", describe(kernel.to_dict()))
    listed = ", ".join(f"{key}={value}" for key, value in learner.changed_params().items())
    say_folded("learner  ", learner.name + (f" with {listed}" if listed else ""))


def _say_result(result: FirstFit, target: str, seconds: float) -> None:
    if result.score is not None:
        say_folded("score    ", _score_line(result.score))
    say(f"trained  in {duration(seconds)}, model written to {short_path(target)}")
    say(f"predict  gramline predict {short_path(target)} NEW_FILE")


def _score_line(score: QuickScore) -> str:
    folds = f"{score.n_folds} folds" if score.n_folds > 1 else "a fifth held out"
    spans = f"; spans F1 {score.learned.spans.f1:.4f}" if score.learned.spans.gold else ""
    return (
        f"{score.learned.accuracy:.2%} right on structures it did not see ({folds}); "
        f"{score.majority.accuracy:.2%} if all were {score.majority_label}{spans}"
    )
