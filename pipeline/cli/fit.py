"""`gramline fit`: from a file with labels, a corpus or a stored Gram matrix to a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline.cli.checkpoint_options import CheckpointOptions, checkpoint_options
from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.fit_corpus import CorpusFit, LearnerOptions, Manner, fit_corpus, fit_run
from gramline.pipeline.cli.job_file.corpus import reading_options, refuse_reading
from gramline.pipeline.cli.job_file.file import JobFile, OptionValues, load_job, required
from gramline.pipeline.cli.job_file.kernel import kernel_options
from gramline.pipeline.cli.job_file.options import table_option
from gramline.pipeline.cli.terminal.bill import Bill, cost_option
from gramline.pipeline.cli.terminal.event_log import Telling, telling_options
from gramline.pipeline.cli.terminal.notation import in_bytes
from gramline.pipeline.cli.terminal.output import (
    count,
    duration,
    json_option,
    say,
    say_json,
    say_next,
    say_notes,
    short_path,
    size,
)
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.cli.workplaces import HERE, say_unused, workplace
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.first_fit import fit_telling
from gramline.pipeline.crossval.winner import winner
from gramline.pipeline.errors import InputError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.gram.read_progress import report_reads
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.strays import sweep_partial
from gramline.pipeline.models.checkpoint import TrainingCheckpoint, identity_of
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker
from gramline.pipeline.models.ranker_training import fit_ranker, forest_speed, training_notes
from gramline.pipeline.models.saved import require_new_model
from gramline.pipeline.models.training import (
    DEFAULT_LEARNER,
    TrainingPlan,
    dropped_notes,
    open_training_gram,
    plan_learner,
)

FACTORING = "gaussian-process"

HELP = """Train a labeler and save it as a model.

SOURCE is a file with labels (what `gramline corpus import` reads), a corpus, or a Gram matrix that `gramline gram
build` wrote. From a file alone, with no other option, words get spelling features, the recommended kernel and learner
are taken, a short cross-validation says how good the labels are, and the model knows how to read new text. A ranker
learns from a Gram matrix over candidates, whose corpus has the columns group and score (`gramline corpus candidates`
writes them). Training runs in this process unless --workers, --cluster or --scheduler asks for Dask. One that was
stopped, by Ctrl-C, a signal or --stop-after, goes on with the same command and ends with the same model.

\b
Example:
  gramline fit train.conll
  gramline fit --from-run cv.run -o best.zarr
  gramline fit train.gram.zarr -o model.zarr --learner labeling-perceptron
  gramline fit parses.gram.zarr -o ranker.zarr --learner ranking-perceptron \\
      --candidates parses.parquet"""


@click.command(help=HELP)
@click.argument("source", required=False)
@table_option(
    "model.path",
    "-o",
    "--output",
    metavar="MODEL",
    help="Where to write the model [default: NAME.model.zarr for a file].",
)
@table_option(
    "learner.name", "--learner", metavar="NAME", help="Which learner [default: the recommended one]; README lists them."
)
@click.option("--rounds", type=int, help="Passes over the training data.")
@table_option(
    "learner.average", "--average/--no-average", default=None, help="Predict with the mean of all weights on the way."
)
@click.option("--set", "extra", metavar="KEY=VALUE", multiple=True, help="Any other parameter of the learner.")
@click.option(
    "--candidates",
    metavar="CORPUS",
    multiple=True,
    help="Of a ranker: the corpus of the Gram matrix (then appended ones).",
)
@click.option(
    "--development",
    metavar="CORPUS",
    help="Of log_probability=auto: the one of --candidates whose groups choose [default: every fifth group of all].",
)
@click.option(
    "--factor-memory",
    callback=in_bytes,
    metavar="BYTES",
    help="Of gaussian-process: memory of a factorisation [default: 2GiB]; a larger one is made by tiles on disk.",
)
@click.option(
    "--evaluate/--no-evaluate", "evaluates", default=None, help="Of a file: a short cross-validation [default: yes]."
)
@click.option("--from-run", metavar="RUN", help="Train the winner of a `gramline cv` run on all its structures.")
@click.option("--plan", "plan_only", is_flag=True, help="Of gaussian-process: only show memory and time.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
@click.option("--job", "job_path", metavar="FILE", help="TOML file with [gram], [learner] and [model] tables.")
@reading_options
@kernel_options
@cluster_options
@telling_options
@checkpoint_options
@cost_option
@json_option
def fit(
    source: str | None,
    rounds: int | None,
    extra: tuple[str, ...],
    candidates: tuple[str, ...],
    development: str | None,
    factor_memory: int | None,
    evaluates: bool | None,
    from_run: str | None,
    plan_only: bool,
    overwrite: bool,
    job_path: str | None,
    given: OptionValues,
    telling: Telling,
    bill: Bill,
    stops: CheckpointOptions,
    as_json: bool,
) -> None:
    job = load_job(job_path, given)
    won = None
    if from_run is not None:
        named = any(given.of(table) for table in ("learner", "kernel", "features"))
        if source is not None or rounds is not None or extra or named:
            raise InputError("--from-run says what is trained on what; leave SOURCE, the learner and the kernel out")
        won = winner(from_run)
        if not isinstance(won.learner, RankingLearner):
            say_unused(job)
            fit_run(from_run, job.model.path, Manner(overwrite, telling, as_json, bill, stops))
            return
        if won.gram_path is None or won.corpus_path is None:
            raise InputError(f"{from_run} has lost its Gram matrix", advice="run `gramline cv` again, which builds it")
        source, candidates = won.gram_path, (won.corpus_path,)
        job = replace(job, model=replace(job.model, path=job.model.path or f"{Path(from_run).stem}.model.zarr"))
    elif source is None and job_path is None:
        advice = "give a file with labels, a corpus or a Gram matrix, or --from-run RUN"
        raise InputError("there is nothing to train on", advice=advice)
    wanted = LearnerOptions.of(job, rounds, extra)
    learner = wanted.named() if won is None else won.learner
    _refuse_options_of_others(learner, factor_memory, plan_only, candidates, development)
    if (path := _file_to_train_on(job, source, learner)) is not None:
        manner = (overwrite, telling, as_json, bill, stops)
        fit_corpus(CorpusFit(job, path, source is not None, wanted, evaluates is not False, *manner))
        return
    _refuse_options_of_files(given, evaluates)
    learner = learner or wanted.of_name(DEFAULT_LEARNER)
    training = Fitting(job, source, learner, candidates, development, factor_memory, telling, as_json)
    if plan_only:
        training.say_plan_only()
        return
    target = required(job.model.path, "model", "where to write the model (-o MODEL)")
    require_new_model(target, overwrite)
    stops.require_suited(learner)
    checkpoint = stops.checkpoint(target)
    begin = perf_counter()
    left = "no model was written, the Gram matrix is kept; the same command trains again"
    with when_stopped(left), checkpoint.kept():
        model, more = training.run(checkpoint)
        replace(model, cost=bill.cost).save(target, overwrite=overwrite)
    seconds = perf_counter() - begin
    trained = model.learner.attributes()["fitted"]
    result = model.describe() | {"model": target, "seconds": seconds, "mistakes": trained.get("mistakes_")} | more
    result |= {key: trained[f"{key}_"] for key in ("elbo", "sweeps", "converged") if f"{key}_" in trained}
    if isinstance(model, Model):
        say_notes(model.learner.notes())
    if as_json:
        say_json(result | bill.result())
    else:
        say_trained(result)
        bill.say()


def _file_to_train_on(job: JobFile, source: str | None, learner: Learner | None) -> str | None:
    """The path of a file with labels or of a corpus; None where a stored Gram matrix is meant."""
    reads_features = learner is not None and learner.reads_corpus
    if source is not None:
        is_store = "://" in source or Path(source).is_dir() or source.endswith(".zarr")
        return source if reads_features or not is_store else None
    if not reads_features and job.gram.path is not None:
        return None
    return required(job.corpus.path, "corpus", "the corpus to train on") if reads_features else job.corpus.path


def _refuse_options_of_files(given: OptionValues, evaluates: bool | None) -> None:
    refuse_reading(given.of("features"), "this is a Gram matrix, which has its labels")
    for option, is_given in (("--kernel", bool(given.of("kernel"))), ("--evaluate", evaluates is not None)):
        if is_given:
            raise InputError(
                f"{option} is for files and corpora",
                advice="a stored Gram matrix has its kernel; `gramline cv` evaluates on it",
            )


def _refuse_options_of_others(
    learner: Learner | None,
    factor_memory: int | None,
    plan_only: bool,
    candidates: tuple[str, ...],
    development: str | None,
) -> None:
    """Options that say something about factorisations or candidates belong to the learners that have them."""
    name = DEFAULT_LEARNER if learner is None else learner.name
    for option, is_given in (("--factor-memory", factor_memory is not None), ("--plan", plan_only)):
        if is_given and name != FACTORING:
            raise InputError(f"{option} is about the factorisations of {FACTORING}; {name} has none")
    if candidates and not isinstance(learner, RankingLearner):
        raise InputError(f"--candidates has no effect with {name}, which labels positions; leave it out")
    if development is not None and development not in candidates:
        raise InputError(f"--development is one of the corpora given as --candidates, got {development}")


@dataclass(frozen=True)
class Fitting:
    """One training: what is trained on what, where, and who reads about it."""

    job: JobFile
    source: str | None
    learner: Learner
    candidates: tuple[str, ...]
    development: str | None
    factor_memory: int | None
    telling: Telling
    as_json: bool

    def run(self, checkpoint: TrainingCheckpoint) -> tuple[Model | Ranker, dict[str, Any]]:
        """The model, and what else is to be said of it."""
        learner: Any = self.learner
        gram = self._gram()
        if not self.as_json:
            say(f"training on {count(gram.shape[0], 'row')} in {count(gram.layout.n_tiles, 'tile')}")
        with self.telling.show(self.as_json) as listener, self._planned(gram, listener) as plan:
            if plan is not None and not self.as_json:
                _say_plan(plan)
            with report_reads(gram, listener):
                if isinstance(learner, RankingLearner):
                    return self._ranker(learner, gram, checkpoint, listener)
                say_notes(dropped_notes(learner, gram.labels))
                checkpoint.begin(identity_of(learner, gram, gram.labels), listener)
                trained = fit_telling(learner, gram, gram.labels, listener, checkpoint)
                model = Model.of(trained, gram.row_corpus, gram.kernel, recipe=gram.recipe)
                return model, {} if plan is None else {"plan": plan.to_dict()}

    def say_plan_only(self) -> None:
        with self._planned(self._gram(), silent) as plan:
            if plan is not None and self.as_json:
                say_json(plan.to_dict())
            elif plan is not None:
                _say_plan(plan)

    def _gram(self) -> StoredGram:
        path = required(self.source or self.job.gram.path, "gram", "the Gram matrix to train on")
        sweep_partial(path)
        return open_training_gram(path, self.learner)

    @contextmanager
    def _planned(self, gram: StoredGram, listener: Listener) -> Iterator[TrainingPlan | None]:
        """`gram` with the limit and the executor that were asked for; the plan of a Gaussian-process labeler."""
        if self.factor_memory is not None:
            gram.factor_limit = self.factor_memory
        job, cluster = self.job, self.job.cluster
        if "inline" not in job.given.of("cluster") and cluster.scheduler is None and cluster.workers is None:
            job = replace(job, cluster=replace(cluster, inline=True))  # training alone is rarely worth a cluster
        with workplace(job, listener) as place, place.open() as executor:
            place.why_unused = HERE
            gram.executor = executor
            yield plan_learner(gram, self.learner) if self.learner.name == FACTORING else None

    def _ranker(
        self, learner: Any, gram: StoredGram, checkpoint: TrainingCheckpoint, listener: Listener
    ) -> tuple[Ranker, dict[str, Any]]:
        """The ranker, and what its forest is worth."""
        if not self.candidates:
            raise InputError(
                f"{learner.name} learns from groups of candidates; give the corpus of the Gram matrix, which has them "
                "in its columns, as --candidates CORPUS"
            )
        corpora = [Corpus.load(path) for path in self.candidates]
        held = None if self.development is None else self.candidates.index(self.development)
        ranker = fit_ranker(learner, gram, corpora, development=held, checkpoint=checkpoint, progress=listener)
        say_notes(training_notes(ranker, corpora))
        speed = forest_speed(ranker, learner, gram.row_corpus)
        worth = {} if speed is None else {"times_faster": speed.ratio, "seconds_per_candidate": speed.forest_seconds}
        return ranker, worth


def _say_plan(plan: TrainingPlan) -> None:
    where = "by tiles on disk" if plan.is_tiled else "in memory"
    scratch = f", {size(plan.scratch_bytes)} of scratch" if plan.is_tiled else ""
    say(
        f"each factorisation of up to {count(plan.n_rows, 'row')} {where}: peak {size(plan.peak_bytes)}{scratch}, "
        f"about {duration(plan.factor_seconds)}"
    )
    if plan.passes is not None:
        say(f"pivots of the low rank: usually {plan.passes} passes over the tiles")
    say(f"{count(plan.n_labels, 'label')}: usually about {duration(plan.seconds)} in all")


def say_trained(result: dict[str, Any]) -> None:
    if result["mistakes"]:
        say(f"mistakes per round: {' '.join(map(str, result['mistakes']))}")
    structures, positions = result["support_structures"], result["support_positions"]
    kept = f": {count(structures, 'structure')} and {count(positions, 'position')} kept" if structures else ""
    say(f"{result['learner']} trained in {duration(result['seconds'])}{kept}")
    if "elbo" in result:
        say(f"bound {result['elbo']:.6g} after {count(result['sweeps'], 'sweep')}")
    forest = result.get("forest")
    if forest:
        faster = f", {result['times_faster']:.1f} times faster than their sum" if "times_faster" in result else ""
        say(
            f"{count(forest['trees'], 'tree')} of {count(forest['nodes'], 'node')} kept as one forest of "
            f"{count(forest['subtrees'], 'subtree')}: {forest['ratio']:.1f} times smaller{faster}"
        )
    say(f"model written to {short_path(result['model'])}")
    given = "CANDIDATES" if forest else "NEW_FILE"
    say_next(f"gramline predict {short_path(result['model'])} {given}")
