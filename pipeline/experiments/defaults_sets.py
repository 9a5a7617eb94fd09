"""Labeled sets that nobody prepared for the defaults: training and test structures, each described in one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.readers.conllu import read_conllu
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.gpsl_sets import SETS, Paper
from gramline.pipeline.models.recommended import FEATURES, WINDOW

PUBLISHED_FOLDS = 3
QUICK_STRUCTURES = 12


@dataclass(frozen=True)
class Part:
    """Structures to train on and to test on."""

    train: Corpus
    test: Corpus


@dataclass(frozen=True)
class Source:
    """A set of the data folder (or a generated one): its files, and how its parts are read."""

    title: str
    files: tuple[str, ...]
    read: Callable[[Run], Iterator[Part]]

    def is_there(self, run: Run) -> bool:
        return all((run.data / name).is_file() for name in self.files)

    def parts(self, run: Run) -> list[Part]:
        """One pair of corpora, or one per published fold; of a quick run a few structures of the first."""
        parts = [next(self.read(run))] if run.quick else list(self.read(run))
        return [Part(run.part(part.train, QUICK_STRUCTURES), run.part(part.test, QUICK_STRUCTURES)) for part in parts]


def _columns(title: str, train: str, test: str, n_train: int, n_test: int) -> Source:
    def read(run: Run) -> Iterator[Part]:
        yield Part(
            *(
                _first(read_conll(run.file(name), features=FEATURES, window=WINDOW), n)
                for name, n in ((train, n_train), (test, n_test))
            )
        )

    return Source(title, (train, test), read)


def _entities(title: str, train: str, test: str, key: str, n_train: int, n_test: int) -> Source:
    reader = partial(read_conllu, label=key, kind="sequences", features=FEATURES, window=WINDOW)

    def read(run: Run) -> Iterator[Part]:
        yield Part(*(_first(reader(run.file(name)), n) for name, n in ((train, n_train), (test, n_test))))

    return Source(title, (train, test), read)


def _published(paper: Paper) -> Source:
    def read(run: Run) -> Iterator[Part]:
        tokens = paper.read(run, PUBLISHED_FOLDS, 0)
        for fold in tokens.folds:
            yield Part(tokens.corpus.select(fold.train.tolist()), tokens.corpus.select(fold.test.tolist()))

    return Source(paper.title, paper.files, read)


def _generated(_run: Run) -> Iterator[Part]:
    train, test = (generate_saleslog(300, seed, features=FEATURES, window=WINDOW) for seed in (1, 2))
    yield Part(train, test)


def _first(corpus: Corpus, n_structures: int) -> Corpus:
    return corpus.select(range(min(n_structures, len(corpus))))


EWT = "ud_english_ewt/en_ewt-ud-{}.ner.conllu.gz"
JAPANESE = "ud_japanese_gsd/ja_gsd-ud-{}.ne.conllu.gz"
SPANISH = "conll2002_es/esp.{}"
SOURCES = (
    *map(_published, SETS),
    _columns("Spanish entities", SPANISH.format("train.first300"), SPANISH.format("testb.gz"), 300, 500),
    _entities("English entities", EWT.format("dev"), EWT.format("test"), "NER", 600, 1000),
    _entities("Japanese entities", JAPANESE.format("dev"), JAPANESE.format("test"), "NE", 300, 300),
    _columns("proteins", "protein_ss/train.tsv", "protein_ss/test.tsv", 40, 17),
    Source("sales log", (), _generated),
)
