"""The tables of a job file: every key with its type, default and description. Options of the command line win.

The keys of [kernel] and [learner] are the parameters of kernels and learners.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gramline.kernels.parameters import AnyWhole, Boolean, Text, Whole, WholeOrZero
from gramline.pipeline.choices import (
    TEMPLATE,
    Compression,
    ConlluKind,
    CorpusFormat,
    Dtype,
    LowerCase,
    Metric,
    UnusualLetters,
)
from gramline.pipeline.crossval.fold_settings import FoldCount, FoldSettings
from gramline.pipeline.files import available_cores
from gramline.pipeline.gram.keep import KeepKind
from gramline.pipeline.gram.plan import tile_limit
from gramline.pipeline.settings_file import ByteSize, FilePath, Located


class FeatureSource(Located):
    """The name of a set of features, or template: and a path."""

    def located(self, key: str, value: str, folder: Path) -> str:
        path = value.removeprefix(TEMPLATE)
        return value if path == value else f"{TEMPLATE}{super().located(key, path, folder)}"


class Address(Located):
    """The address of a scheduler, without secrets."""

    def located(self, key: str, value: str, folder: Path) -> str:
        return super().located(key, value, folder) if "://" in value else value


@dataclass(frozen=True)
class CorpusTable:
    """The structures: a corpus (Parquet), or a file that is read as [features] says."""

    path: Annotated[FilePath | None, "the corpus"] = None
    other: Annotated[FilePath | None, "a second corpus: the columns of a rectangular matrix"] = None
    format: Annotated[
        CorpusFormat | None,
        "of a file that is not Parquet, by default from its name",
    ] = None
    labels: Annotated[
        Text | None, "label names, `A,B,...`, in the order that breaks ties; none: most frequent first"
    ] = None


@dataclass(frozen=True)
class FeaturesTable:
    """How a file that is not Parquet is read, as the options of `gramline corpus import`."""

    features: Annotated[
        str | None, FeatureSource(), "conll, conllu, jsonl, fasta: `token`, `words`, `spelling`; conll: `template:FILE`"
    ] = None
    window: Annotated[WholeOrZero | None, "neighbours whose features count too"] = None
    minimum_count: Annotated[Whole | None, "conll: keep template features that occur so often"] = None
    word_column: Annotated[
        AnyWhole | None, "conll: from 0, negative from the end; none: the first that is not the label"
    ] = None
    label_column: Annotated[AnyWhole | None, "conll: from 0, negative from the end; none: the last"] = None
    no_labels: Annotated[Boolean | None, "conll, conllu: the file has none"] = None
    missing_label: Annotated[Text | None, "conll, fasta: this label means there is none"] = None
    skip_document_marks: Annotated[Boolean | None, "conll: leave -DOCSTART- lines out"] = None
    skip_comments: Annotated[Boolean | None, "conll: leave lines out that begin with `# `"] = None
    label: Annotated[Text | None, "conllu: UPOS, XPOS, DEPREL, or a key of MISC or FEATS; none: UPOS"] = None
    kind: Annotated[ConlluKind | None, "conllu: `trees`, the default, or `sequences`"] = None
    strip_functions: Annotated[Boolean | None, "brackets: NP-SBJ-1 becomes NP"] = None
    strip_empty: Annotated[Boolean | None, "brackets: leave -NONE- elements out"] = None
    label_lines: Annotated[Boolean | None, "fasta: a line of labels below each line of letters"] = None
    label_file: Annotated[FilePath | None, "fasta: labels under the same names"] = None
    lower_case: Annotated[LowerCase | None, "fasta: what small letters become"] = None
    unusual_letters: Annotated[UnusualLetters | None, "fasta: what X, B, Z, U, O, J, -, . and * become"] = None


@dataclass(frozen=True)
class GramTable:
    """The Gram matrix that `gram build` stores and `fit` reads."""

    path: Annotated[FilePath | None, "its store"] = None
    dtype: Annotated[Dtype, "of the tiles"] = "float64"
    block_rows: Annotated[Whole | None, "rows of a tile; none: 2048, or the longest structure"] = None
    compression: Annotated[Compression | None, "of the tiles, `none`, `lz4` or `zstd`"] = None
    keep: Annotated[
        str | int | None, KeepKind(), "tiles to store: `all`, `none`, or a size; the others are computed when asked for"
    ] = None
    tile_cache: Annotated[ByteSize | None, "of tiles that are not stored, in each process, such as `500MB`"] = None


@dataclass(frozen=True)
class ModelTable:
    """The model that `fit` writes."""

    path: Annotated[FilePath | None, "its store"] = None


@dataclass(frozen=True)
class ClusterTable:
    """Where tiles are computed."""

    scheduler: Annotated[str | None, Address(), "address of a Dask scheduler; none: a cluster on this machine"] = None
    workers: Annotated[Whole | None, "worker processes on this machine; none: one per core"] = None
    threads: Annotated[Whole, "per worker"] = 1
    memory_limit: Annotated[ByteSize | None, "of each worker, such as `2GiB`"] = None
    tls_ca: Annotated[FilePath | None, "certificate authority of a tls:// scheduler"] = None
    tls_cert: Annotated[FilePath | None, "certificate shown to a tls:// scheduler"] = None
    tls_key: Annotated[FilePath | None, "key of that certificate"] = None
    inline: Annotated[Boolean, "compute in this process, without Dask"] = False

    @property
    def n_threads(self) -> int:
        """Of all workers on a machine like this one."""
        return self.threads * (self.workers or available_cores())

    @property
    def limit_bytes(self) -> int | None:
        """What one thread of a worker may hold; None: nobody said."""
        return None if self.memory_limit is None else tile_limit(self.memory_limit, self.threads)


@dataclass(frozen=True)
class FoldsTable(FoldSettings):
    """How `cv` cuts the structures into folds."""

    inner: Annotated[FoldCount | None, "choose the best setting inside every training part with so many folds"] = None


@dataclass(frozen=True)
class CacheTable:
    """Where `cv` keeps Gram matrices."""

    path: Annotated[FilePath | None, "its folder; none: `gramline-cache` beside the job file"] = None


@dataclass(frozen=True)
class OutputTable:
    """What `cv` writes."""

    path: Annotated[FilePath | None, "the run folder; none: the job file's name with .run"] = None
    metric: Annotated[Metric, "what decides which setting is best"] = "accuracy"
    dummy: Annotated[Text, "the label that carries nothing"] = "O"
    report: Annotated[Boolean, "also write `report.html`"] = False
    baselines: Annotated[
        Boolean,
        "also train a hidden Markov perceptron and, where it is installed, a CRF on the same features and folds; its "
        "constant and its decoding are chosen inside each training part",
    ] = True


@dataclass(frozen=True)
class JobTables:
    """All tables but [kernel] and [learner]; one that a file does not have says nothing but its defaults."""

    corpus: CorpusTable = CorpusTable()
    features: FeaturesTable = FeaturesTable()
    gram: GramTable = GramTable()
    model: ModelTable = ModelTable()
    folds: FoldsTable = FoldsTable()
    cluster: ClusterTable = ClusterTable()
    cache: CacheTable = CacheTable()
    output: OutputTable = OutputTable()


TABLES: dict[str, type] = {name: type(table) for name, table in vars(JobTables()).items()}
