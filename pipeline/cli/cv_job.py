"""From a job file and options to a cross-validation job: everything is checked here, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.pipeline.cli.job_file.corpus import corpus_of, read_corpus
from gramline.pipeline.cli.job_file.file import JobFile, either, load_job
from gramline.pipeline.cli.job_file.kernel import DEFAULTS as KERNELS
from gramline.pipeline.cli.terminal.notation import parse_settings
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import (
    Job,
    JobData,
    Variant,
    distinct_variants,
    expand,
    expand_variants,
    kernel_kinds,
)
from gramline.pipeline.crossval.run import job_folds
from gramline.pipeline.crossval.solve import JobSettings
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.files import require_folder_or_nothing, require_path
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.plan import tile_limit
from gramline.pipeline.gram.stored import StoredGram

FOLD_KEYS = {  # of FoldSpec, by option
    "folds": "count",
    "seed": "seed",
    "repeats": "repeats",
    "stratified": "stratified",
    "group": "group",
    "folds_file": "file",
}
DEFAULT_LEARNER, DEFAULT_CACHE = "labeling-perceptron", "gramline-cache"


@dataclass(frozen=True)
class Prepared:
    """A job that has passed every check."""

    file: JobFile  # what the job file says, for the cluster
    job: Job
    data: JobData
    settings: JobSettings
    output: str
    report: bool


def prepare(source: str, options: dict[str, Any]) -> Prepared:
    """`source` is a job file, a Gram store, or a corpus."""
    is_file = source.endswith(".toml")
    file = load_job(source if is_file else None)
    corpus, gram = _source(source, is_file, file, options)
    kernels, stores = (_kernels(file, corpus), {}) if gram is None else ((gram.kernel,), {0: gram.path})
    variants = _variants(file, options, len(kernels), corpus is not None)
    folds = _folds(file, options)

    used = sorted({variant.kernel for variant in variants if variant.kernel is not None})
    path = file.gram.path
    if gram is None and path is not None and len(used) == 1 and Path(path).exists():
        stores[used[0]] = path
    job = Job(
        kernels=kernels,
        variants=variants,
        folds=folds,
        inner_folds=either(options["inner"], file.folds.inner),
        metric=either(options["metric"], file.output.metric),
        dummy=None if options["no_dummy"] else either(options["dummy"], file.output.dummy),
        dtype=file.gram.dtype if gram is None else str(gram.dtype),
    )
    limit = either(options["memory_limit"], file.cluster.memory_limit)
    threads = either(options["threads"], file.cluster.threads)
    beside = Path(source).parent if is_file else Path()
    wanted = Path(source).name.partition(".")[0] + ".run"
    output = _folder(file, options["output"], "output", beside / wanted)
    cache = _folder(file, options["cache"], "cache", beside / DEFAULT_CACHE)
    settings = JobSettings(
        cache=GramCache(cache),
        stores=stores,
        block_rows=either(options["block_rows"], file.gram.block_rows),
        compression=file.gram.compression,
        limit_bytes=None if limit is None else tile_limit(limit, threads),
        description={"job_file": Path(source).read_text("utf-8") if is_file else None},
    )
    with file.locating("folds", _fold_options(options), key="group"):
        data = _data(source, file, corpus, gram, folds.group)
    with file.locating("folds", _fold_options(options), key="count" if folds.file is None else "file"):
        job_folds(job, data)
    return Prepared(file, job, data, settings, output, file.output.report)


def _folder(file: JobFile, given: str | None, table: str, default: Path) -> str:
    """Where to write: as the option says, or the job file, or else the default."""
    path = str(given or getattr(file, table).path or default)
    with file.locating(table, ["path"] if given else [], key="path"):
        require_folder_or_nothing(path)
    return path


def _source(source: str, is_file: bool, file: JobFile, options: dict[str, Any]) -> tuple[Corpus | None, Any]:
    """(corpus, Gram matrix): a store may come with a corpus for its words and groups, a corpus has no store yet."""
    given = options["corpus"]
    if is_file:
        if given is not None:
            raise InputError("--corpus belongs to a Gram store; a job file names its corpus in [corpus]")
        return corpus_of(file, "path"), None
    require_path(source, "a job file (.toml), a store that `gramline gram build` wrote, or a corpus")
    if not Path(source).is_dir() and "://" not in source:
        if given is not None:
            raise InputError("--corpus belongs to a Gram store; the source is a corpus itself")
        return read_corpus(source, file), None

    gram = StoredGram.open(source)
    status = gram.status()
    status.require_complete()
    if not status.is_symmetric:
        raise StoreError(f"{status.path} is a Gram matrix between two corpora; cross-validation needs a symmetric one")
    corpus = None if given is None else read_corpus(given, file)
    if corpus is not None and corpus.labels != gram.labels:
        raise InputError(f"{given} is not the corpus that {source} was built from: structures or labels differ")
    return corpus, gram


def _kernels(file: JobFile, corpus: Corpus | None) -> tuple[Kernel, ...]:
    kernels: list[Kernel] = []
    for index, table in enumerate(file.kernels or [{}]):
        description = {"name": KERNELS["sequences" if corpus is None else corpus.kind]} | table
        with file.locating("kernel", index=index, key="name"):
            for choice in expand(description, kernel_kinds()):
                kernel = from_dict(choice, Kernel)  # type: ignore[type-abstract]
                if corpus is not None:
                    kernel.require_kind(corpus.kind)
                kernels.append(kernel)
    return tuple(dict.fromkeys(kernels))


def _variants(file: JobFile, options: dict[str, Any], n_kernels: int, has_corpus: bool) -> tuple[Variant, ...]:
    given = _given(options)
    variants: list[Variant] = []
    for index, params in _learner_tables(file, given):
        name = params.pop("name", DEFAULT_LEARNER)
        with file.locating("learner", given, index):
            variants += expand_variants(name, params, n_kernels, has_corpus=has_corpus)
    return distinct_variants(variants)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """What options say of the learner."""
    given = {} if options["learner"] is None else {"name": options["learner"]}
    for text in options["extra"]:
        key, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--set {text!r} is not of the form key=value or key=value,value")
        choices = parse_settings(values)
        given[key.replace("-", "_")] = choices if len(choices) > 1 else choices[0]
    if options.get("missing") is not None:
        given["missing"] = parse_settings(options["missing"])
    return given


def _learner_tables(file: JobFile, given: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Options make one table of their own, or change those of the file; each with its number there."""
    tables = list(enumerate(file.learners or [{}]))
    name = given.get("name")
    chosen = [table for table in tables if name in (None, table[1].get("name", DEFAULT_LEARNER))]
    return [(index, table | given) for index, table in chosen] or [(len(tables), dict(given))]


def _folds(file: JobFile, options: dict[str, Any]) -> FoldSpec:
    given = _fold_options(options)
    with file.locating("folds", given):
        return FoldSpec(**{key: getattr(file.folds, key) for key in FOLD_KEYS.values()} | given)


def _fold_options(options: dict[str, Any]) -> dict[str, Any]:
    return {key: options[option] for option, key in FOLD_KEYS.items() if options[option] is not None}


def _data(source: str, file: JobFile, corpus: Corpus | None, gram: Any, group: str | None) -> JobData:
    if corpus is not None:
        return JobData.of_corpus(corpus, file.corpus.path or source, group)
    if group is not None:
        raise InputError("a Gram store has no columns to group by; give its corpus with --corpus")
    return JobData.of_gram(gram, source)
