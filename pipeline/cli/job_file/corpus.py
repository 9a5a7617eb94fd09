"""The corpora that a job file names: Parquet, or a file that is read as the job says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramline.pipeline.cli.job_file.file import Job
from gramline.pipeline.corpus.imports import import_corpus
from gramline.pipeline.errors import CorpusError, InputError
from gramline.pipeline.files import require_file

if TYPE_CHECKING:
    from gramline.pipeline.corpus.corpus import Corpus


def read_corpus(path: str, job: Job, like: Corpus | None = None) -> Corpus:
    """The corpus at `path`; label names and kept template features are those of `like` if there is one."""
    from gramline.pipeline.corpus.corpus import Corpus

    layout, features = job.setting(None, "corpus", "format"), job.table("features")
    if path.endswith(".parquet"):
        if layout is not None or features:
            raise InputError(f"{path} is a corpus already; [features] and format belong to files that are imported")
        return Corpus.load(path)
    require_file(path, "a corpus")
    return import_corpus(path, layout, labels=job.setting(None, "corpus", "labels"), like=like, options=features)


def corpus_of(job: Job, key: str, like: Corpus | None = None) -> Corpus:
    """The corpus that [corpus] names as `key`; what is wrong with it is told with the line of its name."""
    try:
        return read_corpus(job.path(None, "corpus", key, "the corpus"), job, like)
    except (CorpusError, InputError) as error:
        where = "" if key not in job.tables.get("corpus", {}) else f"{job.lines.where('corpus', key)} [corpus]: "
        raise type(error)(f"{where}{error}") from None
