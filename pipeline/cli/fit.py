"""`gramline fit`: from a stored Gram matrix (or a corpus, for learners that read features) to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from gramline.learners.catalogue import find_learner, make_learner
from gramline.learners.estimator import Learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline.cli.cluster_options import cluster_options
from gramline.pipeline.cli.factor_options import factoring, refuse_others, say_plan
from gramline.pipeline.cli.job_file.corpus import corpus_of
from gramline.pipeline.cli.job_file.file import JobFile, load_job
from gramline.pipeline.cli.ranking import say_forest, trained_ranker
from gramline.pipeline.cli.terminal.notation import in_bytes, parse_setting
from gramline.pipeline.cli.terminal.output import count, duration, json_option, say, say_json, say_notes
from gramline.pipeline.cli.terminal.progress import show_progress
from gramline.pipeline.cli.terminal.stopping import when_stopped
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.gram.stored import StoredGram, report_reads
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker
from gramline.pipeline.models.saved import require_new_model
from gramline.pipeline.models.training import count_dropped, open_training_gram

DEFAULT = "labeling-perceptron"

HELP = """Train a labeler and save it as a model.

SOURCE is a Gram matrix that `gramline gram build` wrote (with the labels of its corpus), or a corpus for learners
that read features themselves. The model needs neither of them afterwards. A ranker learns from a Gram matrix over
candidates, whose corpus has the columns group and score (`gramline corpus candidates` writes them). Training runs in
this process unless --workers, --cluster or --scheduler asks for Dask.

\b
Example:
  gramline fit train.gram.zarr -o model.zarr --rounds 10 --average
  gramline fit parses.gram.zarr -o ranker.zarr --learner ranking-perceptron \\
      --candidates parses.parquet"""


@click.command(help=HELP)
@click.argument("source", required=False)
@click.option("-o", "--output", metavar="MODEL", help="Where to write the model.")
@click.option("--learner", metavar="NAME", help=f"Which learner [default: {DEFAULT}]; README lists them.")
@click.option("--rounds", type=int, help="Passes over the training data [default: 10].")
@click.option("--average/--no-average", default=None, help="Predict with the mean of all weights on the way.")
@click.option("--set", "extra", metavar="KEY=VALUE", multiple=True, help="Any other parameter of the learner.")
@click.option(
    "--candidates",
    metavar="CORPUS",
    multiple=True,
    help="Of a ranker: the corpus of the Gram matrix (then appended ones).",
)
@click.option(
    "--factor-memory",
    callback=in_bytes,
    metavar="BYTES",
    help="Of gaussian-process: memory of a factorisation [default: 2GiB]; a larger one is made by tiles on disk.",
)
@click.option("--plan", "plan_only", is_flag=True, help="Of gaussian-process: only show memory and time.")
@click.option("--overwrite", is_flag=True, help="Replace a model that is there.")
@click.option("--job", "job_path", metavar="FILE", help="TOML file with [gram], [learner] and [model] tables.")
@cluster_options
@json_option
def fit(
    source: str | None,
    output: str | None,
    learner: str | None,
    rounds: int | None,
    average: bool | None,
    extra: tuple[str, ...],
    candidates: tuple[str, ...],
    factor_memory: int | None,
    plan_only: bool,
    overwrite: bool,
    job_path: str | None,
    as_json: bool,
    **cluster: Any,
) -> None:
    job = load_job(job_path)
    chosen = learner_from(job, learner, rounds, average, extra)
    refuse_others(chosen, factor_memory, plan_only)
    if plan_only:
        _say_plan(job, source, chosen, factor_memory, cluster, as_json)
        return
    target = job.path(output, "model", "path", "where to write the model (-o MODEL)")
    require_new_model(target, overwrite)
    begin = perf_counter()
    if candidates and not isinstance(chosen, RankingLearner):
        raise InputError(f"--candidates has no effect with {chosen.name}, which labels positions; leave it out")
    with when_stopped("no model was written, the Gram matrix is kept; the same command trains again"):
        model, more = _trained(job, source, chosen, candidates, factor_memory, cluster, as_json)
        model.save(target, overwrite=overwrite)
    seconds = perf_counter() - begin
    trained = model.learner.attributes()["fitted"]
    result = model.describe() | {"model": target, "seconds": seconds, "mistakes": trained.get("mistakes_")} | more
    result |= {key: trained[f"{key}_"] for key in ("elbo", "sweeps", "converged") if f"{key}_" in trained}
    say_notes(model.learner.notes())
    if as_json:
        say_json(result)
        return
    if result["mistakes"]:
        say(f"mistakes per round: {' '.join(map(str, result['mistakes']))}")
    kept = (
        f"{count(result['support_structures'], 'structure')} and {count(result['support_positions'], 'position')} kept"
    )
    say(f"{result['learner']} trained in {duration(seconds)}" + (f": {kept}" if result["support_structures"] else ""))
    if "elbo" in result:
        say(f"bound {result['elbo']:.6g} after {count(result['sweeps'], 'sweep')}")
    if result.get("forest"):
        say_forest(result)
    say(f"model written to {target}")


def learner_from(
    job: JobFile, name: str | None, rounds: int | None, average: bool | None, extra: tuple[str, ...]
) -> Learner:
    """The learner that the options and the job file describe together; its values are checked before any work."""
    params = job.only("learner")
    given: dict[str, Any] = {} if name is None else {"name": name}
    listed = params.pop("name", DEFAULT)
    if name is not None and name != listed:
        listed, params = name, {}  # another learner does not inherit the file's parameters
    for text in extra:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} is not of the form key=value")
        given[key.replace("-", "_")] = parse_setting(value)
    with job.locating("learner", given):
        turns = "passes" if issubclass(find_learner(listed), RankingLearner) else "rounds"
        given |= {key: value for key, value in ((turns, rounds), ("average", average)) if value is not None}
        learner = make_learner(listed, params | {key: value for key, value in given.items() if key != "name"})
        learner.check_parameters()
    return learner


def _trained(
    job: JobFile,
    source: str | None,
    learner: Learner,
    candidates: tuple[str, ...],
    factor_memory: int | None,
    cluster: dict[str, Any],
    as_json: bool,
) -> tuple[Model | Ranker, dict[str, Any]]:
    fitting: Any = learner
    if learner.reads_corpus:
        path = job.path(source, "corpus", "path", "the corpus to train on")
        if Path(path).is_dir():
            raise InputError(
                f"{learner.name} reads features, so it trains on a corpus file, but {path} is a folder; give the path "
                "of a corpus"
            )
        corpus = Corpus.load(path) if source is not None else corpus_of(job, "path")
        _note_dropped(learner, corpus.labels)
        return Model.of(fitting.fit(corpus), corpus), {}

    gram = _gram(job, source, learner)
    if not as_json:
        say(f"training on {count(gram.shape[0], 'row')} in {count(gram.layout.n_tiles, 'tile')}")
    with factoring(job, gram, learner, factor_memory, cluster) as plan:
        if plan is not None and not as_json:
            say_plan(plan)
        with show_progress(not as_json) as listener, report_reads(gram, listener):
            if isinstance(learner, RankingLearner):
                return trained_ranker(learner, gram, candidates)
            more = {} if plan is None else {"plan": plan.to_dict()}
            _note_dropped(learner, gram.labels)
            return Model.of(fitting.fit(gram, gram.labels), gram.row_corpus, gram.kernel), more


def _gram(job: JobFile, source: str | None, learner: Learner) -> StoredGram:
    return open_training_gram(job.path(source, "gram", "path", "the Gram matrix to train on"), learner)


def _note_dropped(learner: Learner, labels: Sequence[Sequence[str | None]]) -> None:
    """Said before it learns."""
    if dropped := count_dropped(learner, labels):
        say_notes([f"{dropped:,} of {count(len(labels), 'structure')} have an unlabeled position and are left out"])


def _say_plan(
    job: JobFile,
    source: str | None,
    learner: Learner,
    factor_memory: int | None,
    cluster: dict[str, Any],
    as_json: bool,
) -> None:
    with factoring(job, _gram(job, source, learner), learner, factor_memory, cluster) as plan:
        if plan is None:
            return
        if as_json:
            say_json(plan.to_dict())
        else:
            say_plan(plan)
