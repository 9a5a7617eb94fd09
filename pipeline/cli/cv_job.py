"""From a job file and options to a cross-validation job: everything is checked here, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gramline.kernels.errors import KernelError
from gramline.learners.errors import LearnerError
from gramline.pipeline.cli.cluster_options import parse_bytes
from gramline.pipeline.cli.job_file.corpus import corpus_of, read_corpus
from gramline.pipeline.cli.job_file.file import Job, load_job
from gramline.pipeline.cli.job_file.kernel import DEFAULTS as KERNELS
from gramline.pipeline.cli.terminal.notation import parse_settings
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.files import require_folder_or_nothing, require_path
from gramline.pipeline.gram.plan import tile_limit

if TYPE_CHECKING:
    from gramline.kernels.base import Kernel
    from gramline.pipeline.corpus.corpus import Corpus
    from gramline.pipeline.crossval import job as plain
    from gramline.pipeline.crossval.fold_spec import FoldSpec
    from gramline.pipeline.crossval.solve import JobSettings

DEFAULT_LEARNER, DEFAULT_CACHE = "labeling-perceptron", "gramline-cache"


@dataclass(frozen=True)
class Prepared:
    """A job that has passed every check."""

    file: Job  # what the job file says, for the cluster
    job: plain.Job
    data: plain.JobData
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
    from gramline.pipeline.crossval.job import Job as PlainJob
    from gramline.pipeline.crossval.solve import JobSettings
    from gramline.pipeline.gram.cache import GramCache

    used = sorted({variant.kernel for variant in variants if variant.kernel is not None})
    path = file.setting(None, "gram", "path")
    if gram is None and path is not None and len(used) == 1 and Path(path).exists():
        stores[used[0]] = path
    dtype = str(gram.dtype) if gram is not None else file.setting(None, "gram", "dtype") or "float64"
    dummy = file.setting(options["dummy"], "output", "dummy")
    _refuse_metric(file, options)
    job = PlainJob(
        kernels=kernels,
        variants=variants,
        folds=folds,
        inner_folds=file.setting(options["inner"], "folds", "inner"),
        metric=file.setting(options["metric"], "output", "metric") or "accuracy",
        dummy=None if options["no_dummy"] else "O" if dummy is None else dummy,
        dtype=dtype,
    )
    limit = file.setting(options["memory_limit"], "cluster", "memory_limit")
    threads = file.setting(options["threads"], "cluster", "threads") or 1
    beside = Path(source).parent if is_file else Path()
    wanted = Path(source).name.partition(".")[0] + ".run"
    output = _folder(file, options["output"], "output", beside / wanted)
    cache = _folder(file, options["cache"], "cache", beside / DEFAULT_CACHE)
    settings = JobSettings(
        cache=GramCache(cache),
        stores=stores,
        block_rows=file.setting(options["block_rows"], "gram", "block_rows"),
        compression=file.setting(None, "gram", "compression"),
        limit_bytes=None if limit is None else tile_limit(parse_bytes(limit, "--memory-limit"), threads),
        description={"job_file": Path(source).read_text("utf-8") if is_file else None},
    )
    data = _data(source, file, corpus, gram, folds.group)
    return Prepared(file, job, data, settings, output, bool(file.setting(None, "output", "report")))


def _folder(file: Job, given: str | None, table: str, default: Path) -> str:
    """Where to write: as the option says, or the job file, or else the default."""
    named = file.setting(None, table, "path")
    path = str(given or named or default)
    try:
        require_folder_or_nothing(path)
    except InputError as error:
        where = f"{file.lines.where(table, 'path')} [{table}]: " if path == named else ""
        raise InputError(f"{where}{error}") from None
    return path


def _source(source: str, is_file: bool, file: Job, options: dict[str, Any]) -> tuple[Corpus | None, Any]:
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
    from gramline.pipeline.gram.stored import StoredGram

    gram = StoredGram.open(source)
    status = gram.status()
    status.require_complete()
    if not status.is_symmetric:
        raise StoreError(f"{status.path} is a Gram matrix between two corpora; cross-validation needs a symmetric one")
    corpus = None if given is None else read_corpus(given, file)
    if corpus is not None and corpus.labels != gram.labels:
        raise InputError(f"{given} is not the corpus that {source} was built from: structures or labels differ")
    return corpus, gram


def _kernels(file: Job, corpus: Corpus | None) -> tuple[Kernel, ...]:
    from gramline.kernels.base import Kernel
    from gramline.kernels.catalogue import from_dict
    from gramline.pipeline.crossval.grid import expand

    found = []
    for index, table in enumerate(file.many.get("kernel") or [{}]):
        description = {"name": KERNELS["sequences" if corpus is None else corpus.kind]} | table
        _refuse_empty(file, "kernel", index, description)
        for choice in expand(description):
            try:
                found.append(from_dict(choice, Kernel))  # type: ignore[type-abstract]
            except (KernelError, InputError, TypeError) as error:
                raise InputError(file.blame(error, "kernel", {}, index) + str(error)) from None
    return tuple(dict.fromkeys(found))


def _variants(file: Job, options: dict[str, Any], n_kernels: int, has_corpus: bool) -> tuple[plain.Variant, ...]:
    from gramline.learners.catalogue import make_learner
    from gramline.pipeline.crossval.grid import expand
    from gramline.pipeline.crossval.job import Variant

    given = _given(options)
    found: list[Variant] = []
    for index, params in _learner_tables(file, given):
        name = params.pop("name", DEFAULT_LEARNER)
        _refuse_empty(file, "learner", index, params)
        for choice in expand(params):
            try:
                learner = make_learner(name, choice)
                learner.check_parameters()
            except (LearnerError, TypeError) as error:
                raise InputError(file.blame(error, "learner", given, index) + str(error)) from None
            if learner.reads_corpus:
                if not has_corpus:
                    raise InputError(f"{name} reads features; give it a corpus instead of a Gram matrix")
                found.append(Variant(None, name, choice))
            else:
                found.extend(Variant(kernel, name, choice) for kernel in range(n_kernels))
    unique = {repr((variant.kernel, variant.learner, sorted(variant.params.items()))): variant for variant in found}
    return tuple(unique.values())


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


def _learner_tables(file: Job, given: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Options make one table of their own, or change those of the file; each with its number there."""
    tables = list(enumerate(file.many.get("learner") or [{}]))
    name = given.get("name")
    chosen = [table for table in tables if name in (None, table[1].get("name", DEFAULT_LEARNER))]
    return [(index, table | given) for index, table in chosen] or [(len(tables), dict(given))]


def _folds(file: Job, options: dict[str, Any]) -> FoldSpec:
    from gramline.pipeline.crossval.fold_spec import FoldSpec

    keys = {"count": "folds", "seed": "seed", "repeats": "repeats", "stratified": "stratified", "group": "group"}
    values = {key: file.setting(options[option], "folds", key) for key, option in keys.items()}
    values["file"] = file.setting(options["folds_file"], "folds", "file")
    try:
        return FoldSpec(**{key: value for key, value in values.items() if value is not None})
    except InputError as error:
        where = f"{file.lines.where('folds')} [folds]: " if "folds" in file.tables else ""
        raise InputError(f"{where}{error}") from None


def _data(source: str, file: Job, corpus: Corpus | None, gram: Any, group: str | None) -> plain.JobData:
    from gramline.pipeline.crossval.job import JobData

    groups = None
    if group is not None:
        if corpus is None:
            raise InputError("a Gram store has no columns to group by; give its corpus with --corpus")
        groups = corpus.column(group)
    if corpus is not None:
        labels = corpus.labels
        where = file.setting(None, "corpus", "path") or source
        return JobData(corpus.fingerprint, corpus.ids, corpus.tokens, labels, where, corpus, groups)
    packed, spec = gram.row_corpus, gram.store.spec
    names = packed.vocabulary.symbols
    words = [names[code] if 0 <= code < len(names) else None for code in packed.symbols.tolist()]
    tokens = [words[first:last] for first, last in pairwise(packed.starts.tolist())]
    ids = [str(number) for number in range(len(tokens))]
    return JobData("+".join(spec.rows), ids, tokens, gram.labels, source)


def _refuse_metric(file: Job, options: dict[str, Any]) -> None:
    """A metric of the job file that there is not is told with its line."""
    from gramline.pipeline.crossval.validate import METRICS

    named = file.setting(None, "output", "metric")
    if options["metric"] is None and named is not None and named not in METRICS:
        where = file.lines.where("output", "metric")
        raise InputError(f"{where} [output]: there is no metric {named!r}; there are {', '.join(METRICS)}")


def _refuse_empty(file: Job, table: str, index: int, content: dict[str, Any]) -> None:
    for key, value in content.items():
        if value == []:
            raise InputError(f"{file.lines.where(table, key, index)} [{table}]: {key} is an empty list; give a value")
