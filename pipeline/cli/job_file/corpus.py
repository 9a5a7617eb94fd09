"""The corpora that a job file names: Parquet, or a file that is read as the job says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

from gramline.kernels.observations.base import Identity
from gramline.kernels.observations.substitution import Substitution
from gramline.pipeline.cli.job_file.file import JobFile, required
from gramline.pipeline.cli.job_file.kernel import kernel_options_of
from gramline.pipeline.cli.job_file.options import table_option, together
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.imports import dashed, import_corpus
from gramline.pipeline.errors import InputError
from gramline.pipeline.files import require_file
from gramline.pipeline.models.recommended import FEATURES, WINDOW

# What notes on a file in columns advise, so that the advice holds wherever such a file is read.
reading_options = together(
    table_option(
        *("features.word_column", "--word-column"),
        help="Of a file in columns: the word, from 0; those before it are left out [default: the first].",
    ),
    table_option(
        "features.label_column", "--label-column", help="Of a file in columns: the label, from 0 [default: the last]."
    ),
    table_option(
        "features.missing_label", "--missing-label", metavar="LABEL", help="Of a file: this label means there is none."
    ),
    table_option(
        *("features.skip_document_marks", "--skip-document-marks"),
        is_flag=True,
        help="Of a file in columns: leave -DOCSTART- lines out.",
    ),
    table_option(
        *("features.skip_comments", "--skip-comments"),
        is_flag=True,
        help="Of a file in columns: leave lines out that begin with '# '.",
    ),
)


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
    given = dict(job.given.of("features"))
    if path.endswith(".parquet"):
        refuse_reading(given, f"{path} is a corpus already")
        return Corpus.load(path)
    features = {} if compares_words(job) else {"features": FEATURES, "window": WINDOW}
    return import_corpus(path, None, labels=None, like=None, options=features | given)


def refuse_reading(given: Mapping[str, Any], why: str) -> None:
    """Options that say how a file is read mean nothing where none is."""
    for key in given:
        raise InputError(f"{dashed(key)} is about files that are imported; {why}", advice="leave it out")


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
