"""The corpora that a job file names: Parquet, or a file that is read as the job says."""

from __future__ import annotations

from dataclasses import asdict
from typing import Literal

from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.substitution import Substitution
from gramline.pipeline.cli.job_file.file import JobFile, required
from gramline.pipeline.cli.job_file.kernel import kernel_options_of
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import import_corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.models.recommended import FEATURES, WINDOW


def read_corpus(path: str, job: JobFile, like: Corpus | None = None) -> Corpus:
    """The corpus at `path`; label names and kept template features are those of `like` if there is one."""
    layout = job.corpus.format
    features = {key: value for key, value in asdict(job.features).items() if value is not None}
    if path.endswith(".parquet"):
        if layout is not None or features:
            raise InputError(f"{path} is a corpus already; [features] and format belong to files that are imported")
        return Corpus.load(path)
    require_file(path, "a corpus")
    return import_corpus(path, layout, labels=job.corpus.labels, like=like, options=features)


def labeled_file(path: str, job: JobFile) -> Corpus:
    """A corpus, or a file that no [corpus] table describes: its words get the features of their spelling."""
    require_file(path, "a corpus")
    if path.endswith(".parquet"):
        return Corpus.load(path)
    return Corpus.read(path) if compares_words(job) else Corpus.read(path, features=FEATURES, window=WINDOW)


def compares_words(job: JobFile) -> bool:
    """Whether a kernel is named whose observation kernel compares words as they are."""
    kernel = {**job.kernel, **kernel_options_of(job)}
    observation = kernel.get("observation", {"name": Identity.name})
    return bool(kernel) and observation["name"] in (Identity.name, Substitution.name)


def corpus_of(job: JobFile, key: Literal["path", "other"], like: Corpus | None = None) -> Corpus:
    """The corpus that [corpus] names as `key`; an error without a place in it gets the line of its name."""
    path = job.corpus.path if key == "path" else job.corpus.other
    try:
        return read_corpus(required(path, "corpus", "the corpus"), job, like)
    except InputError as error:
        raise job.locate_error(error.at(key=key), "corpus") from None
