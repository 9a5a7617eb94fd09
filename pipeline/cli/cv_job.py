"""From a job file and options to a cross-validation job: everything is checked here, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gramline.kernels.base import Kernel
from gramline.learners.catalogue import LEARNERS, find_learner
from gramline.learners.kinds import RankingLearner
from gramline.pipeline.cli.job_file.corpus import compares_words, corpus_of, labeled_file, refuse_reading
from gramline.pipeline.cli.job_file.file import JobFile, OptionValues, load_job, merged
from gramline.pipeline.cli.job_file.kernel import kernel_options_of
from gramline.pipeline.cli.terminal.notation import parse_settings
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.fold_settings import DUPLICATES
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant, distinct_variants, expand_kernels, expand_variants
from gramline.pipeline.crossval.ranking_run import ranking_data
from gramline.pipeline.crossval.run import job_folds
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.source import JobSource
from gramline.pipeline.crossval.summary import n_duplicates
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_writable_folder
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.keep import wanted_keep
from gramline.pipeline.gram.kernel_choice import KernelChoice
from gramline.pipeline.gram.notes import kernel_notes
from gramline.pipeline.gram.reuse import CACHE_FOLDER
from gramline.pipeline.gram.spec import DEFAULT_KERNELS
from gramline.pipeline.models.recommended import described, recommended_kernel, recommended_learner
from gramline.pipeline.models.training import DEFAULT_LEARNER

SIDE_BY_SIDE_POSITIONS = 3_000  # fewer are solved in order within seconds


@dataclass(frozen=True)
class Prepared:
    """A job that has passed every check."""

    file: JobFile  # with the options, for the cluster
    job: Job
    data: JobData
    settings: JobSettings
    output: str
    notes: tuple[str, ...]  # what was chosen, and what a user should know before anything runs


def prepare(
    path: str,
    given: OptionValues,
    *,
    settings: tuple[str, ...] = (),
    no_dummy: bool = False,
    corpus_path: str | None = None,
) -> Prepared:
    """`path` is that of a job file, a Gram store (perhaps with its corpus), or a corpus.

    `settings` of the learner are written key=value,...
    """
    is_file = path.endswith(".toml")
    file = load_job(path if is_file else None, given)
    source = _source(path, is_file, file, corpus_path)
    gram, data = source.gram, source.data
    asked = _learner_parameters(given, settings)
    advised = None if is_file or gram is not None or "name" in asked else data.corpus  # who names no learner gets ours
    if advised is not None and not compares_words(file):
        advised = described(advised)
        data = JobData.of_corpus(advised, path)
    if gram is not None and given.of("kernel"):
        raise InputError(f"{path} is a Gram matrix, whose kernel is known", advice="leave out what describes a kernel")
    if gram is not None:
        refuse_reading(given.of("features"), f"{path} is a Gram matrix, which has its labels")
    ranks = _names_ranker(file, asked)
    is_bare = not is_file and not ranks
    choices = [KernelChoice(gram.kernel)] if gram is not None else _kernels(file, data, is_bare=is_bare)
    kernels = tuple(dict.fromkeys(choice.kernel for choice in choices))
    if advised is not None:
        asked = _recommended_learner(advised, kernels[0]) | asked
    job = Job(
        kernels=kernels,
        variants=_variants(file, asked, len(kernels), data.corpus is not None),
        folds=_fold_spec(file, ranks=ranks),
        inner_folds=file.folds.inner,
        metric=file.output.metric,
        dummy=None if no_dummy else file.output.dummy,
        dtype=file.gram.dtype if gram is None else str(gram.dtype),
    )
    if job.is_ranking:
        data = ranking_data(data)
        if job.metric != JobFile().output.metric:
            raise InputError(f"rankers are compared by the score of the chosen candidates, not by {job.metric}")
    stores = {} if gram is None else {0: gram.path}
    if gram is None and file.gram.path is not None and len(job.used_kernels) == 1 and Path(file.gram.path).exists():
        stores[job.used_kernels[0]] = file.gram.path
    beside = Path(path).parent if is_file else Path()
    output = _folder(file, "output", file.output.path, beside / (Path(path).name.partition(".")[0] + ".run"))
    places = JobSettings(
        cache=GramCache(_folder(file, "cache", file.cache.path, beside / CACHE_FOLDER)),
        stores=stores,
        block_rows=file.gram.block_rows,
        compression=file.gram.compression,
        keep=wanted_keep(file.gram.keep, file.gram.tile_cache),
        limit_bytes=file.cluster.limit_bytes,
        files=file.files,
        description={"job_file": Path(path).read_text("utf-8") if is_file else None},
        has_baselines=file.output.baselines,
        is_side_by_side=not file.cluster.inline and data.n_positions >= SIDE_BY_SIDE_POSITIONS,
    )
    with file.locating("folds", key="group"):
        data = data.grouped_by(job.folds.group)
    with file.locating("folds", key="count" if job.folds.file is None else "file"):
        outer, _ = job_folds(job, data)
    used = [job.kernels[number] for number in job.used_kernels]
    notes = [note for choice in choices if choice.kernel in used for note in choice.notes]
    if data.corpus is not None:
        notes += sorted({note for kernel in used for note in kernel_notes(kernel, data.corpus)})
    if not job.is_ranking:
        notes += duplicate_notes(n_duplicates(data, outer), len(data.labels))
    return Prepared(file, job, data, places, output, tuple(dict.fromkeys(notes)))


def duplicate_notes(n_seen: int | None, n_structures: int) -> list[str]:
    """What to say of structures that stand in more than one fold."""
    if not n_seen:
        return []
    return [
        f"{n_seen:,} of {n_structures:,} structures stand in more than one fold: held out by one while an equal one "
        f'trains; --group {DUPLICATES} (group = "{DUPLICATES}" in [folds]) keeps equal ones together'
    ]


def _source(path: str, is_file: bool, file: JobFile, corpus_path: str | None) -> JobSource:
    if not is_file:
        return JobSource.open(path, partial(labeled_file, job=file), corpus_path)
    if corpus_path is not None:
        raise InputError("--corpus belongs to a Gram store; a job file names its corpus in [corpus]")
    return JobSource(JobData.of_corpus(corpus_of(file, "path"), file.corpus.path or path))


def _folder(file: JobFile, table: str, path: str | None, default: Path) -> str:
    """Where to write: as the option says, or the job file, or else the default."""
    folder = str(path or default)
    with file.locating(table, key="path"):
        require_writable_folder(folder)
    return folder


def _recommended_learner(corpus: Corpus, kernel: Kernel) -> dict[str, Any]:
    """What a [learner] table would say of the learner that `gramline fit` takes."""
    learner = recommended_learner(corpus, kernel)
    return {"name": learner.name} | learner.changed_params()


def _kernels(file: JobFile, data: JobData, is_bare: bool) -> list[KernelChoice]:
    """All that the tables of the file describe together with the options; of a bare corpus the recommended kernel."""
    if data.corpus is None:
        return []
    given = kernel_options_of(file)
    if is_bare and not given:
        return [KernelChoice(recommended_kernel(data.corpus))]
    choices: list[KernelChoice] = []
    for index, table in enumerate(file.kernels or [{}]):
        with file.locating("kernel", given, index, key="name"):
            described = merged(table, given, DEFAULT_KERNELS[data.corpus.kind])
            choices += expand_kernels(described, data.corpus)
    return choices


def _learner_parameters(given: OptionValues, settings: tuple[str, ...]) -> dict[str, Any]:
    """The keys of a [learner] table that options give; a list means each of its values."""
    params: dict[str, Any] = dict(given.of("learner"))
    if "missing" in params:
        params["missing"] = parse_settings(params["missing"])
    for text in settings:
        key, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} is not of the form key=value or key=value,value")
        choices = parse_settings(values)
        params[key.replace("-", "_")] = choices if len(choices) > 1 else choices[0]
    return params


def _variants(file: JobFile, given: dict[str, Any], n_kernels: int, has_corpus: bool) -> tuple[Variant, ...]:
    """Options make one table of their own, or change those of the file."""
    tables = list(enumerate(file.learners or [{}]))
    name = given.get("name")
    chosen = [table for table in tables if name in (None, table[1].get("name", DEFAULT_LEARNER))]
    variants: list[Variant] = []
    for index, listed in chosen or [(len(tables), {})]:
        params = {"name": DEFAULT_LEARNER} | listed | given
        with file.locating("learner", given, index):
            variants += expand_variants(params.pop("name"), params, n_kernels, has_corpus=has_corpus)
    return distinct_variants(variants)


def _names_ranker(file: JobFile, asked: dict[str, Any]) -> bool:
    """Whether a learner is named that ranks candidates; an unknown name is refused later."""
    names = [asked["name"]] if "name" in asked else [table.get("name", DEFAULT_LEARNER) for table in file.learners]
    return any(name in LEARNERS and issubclass(find_learner(name), RankingLearner) for name in names)


def _fold_spec(file: JobFile, *, ranks: bool) -> FoldSpec:
    folds = file.folds
    group = "group" if ranks and folds.group is None and folds.file is None and not folds.stratified else folds.group
    with file.locating("folds"):
        return FoldSpec(folds.count, folds.seed, folds.repeats, folds.stratified, group, folds.file)
