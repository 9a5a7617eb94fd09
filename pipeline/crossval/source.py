"""What a cross-validation is about: a corpus, or a Gram matrix that is stored already, with or without its corpus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.job import JobData
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.files import require_path
from gramline.pipeline.gram.stored import StoredGram

FORMS = "a job file (.toml), a store that `gramline gram build` wrote, or a corpus"


@dataclass(frozen=True, eq=False)
class JobSource:
    """The structures, and their Gram matrix if it is stored already; without one, the data have their corpus."""

    data: JobData
    gram: StoredGram | None = None

    @classmethod
    def open(cls, path: str, read: Callable[[str], Corpus], corpus_path: str | None = None) -> JobSource:
        """A folder or url is a store, whose corpus may be given for its words and groups; a file is a corpus."""
        require_path(path, FORMS)
        if not Path(path).is_dir() and "://" not in path:
            if corpus_path is not None:
                raise InputError("--corpus belongs to a Gram store; the source is a corpus itself")
            return cls(JobData.of_corpus(read(path), path))
        gram = StoredGram.open(path)
        status = gram.status()
        status.require_complete()
        if not status.is_symmetric:
            raise StoreError(
                f"{status.path} is a Gram matrix between two corpora; cross-validation needs a symmetric one"
            )
        if corpus_path is None:
            return cls(JobData.of_gram(gram, path), gram)
        corpus = read(corpus_path)
        if corpus.labels != gram.labels:
            raise InputError(f"{corpus_path} is not the corpus that {path} was built from: structures or labels differ")
        return cls(JobData.of_corpus(corpus, path), gram)
