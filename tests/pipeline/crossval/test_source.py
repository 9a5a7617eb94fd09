"""What a cross-validation is about: corpora and stores are told apart, and stores that do not suit are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from gram_samples import KERNEL, corpus

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.source import JobSource
from gramline.pipeline.errors import InputError, RunError, StoreError
from gramline.pipeline.gram.build import build_gram


def test_a_file_is_a_corpus(tmp_path: Path) -> None:
    path = str(tmp_path / "train.parquet")
    corpus(6).save(path)
    source = JobSource.open(path, Corpus.load)
    assert source.gram is None
    assert source.data.corpus is not None
    assert (source.data.source, len(source.data.ids)) == (path, 6)
    with pytest.raises(InputError, match="the source is a corpus itself"):
        JobSource.open(path, Corpus.load, path)
    with pytest.raises(InputError, match="a job file"):
        JobSource.open(str(tmp_path / "nothing"), Corpus.load)


def test_a_folder_is_a_store_with_or_without_its_corpus(tmp_path: Path) -> None:
    path, own, other = (str(tmp_path / name) for name in ("x.zarr", "own.parquet", "other.parquet"))
    structures = corpus(6)
    structures.with_column("half", [0, 0, 0, 1, 1, 1]).save(own)
    corpus(5).save(other)
    build_gram(KERNEL, structures, path)
    alone = JobSource.open(path, Corpus.load)
    assert alone.gram is not None
    assert alone.data.corpus is None
    assert alone.data.labels == structures.labels
    assert alone.data.grouped_by(None) is alone.data
    with pytest.raises(InputError, match="no columns to group by"):
        alone.data.grouped_by("half")
    both = JobSource.open(path, Corpus.load, own)
    assert both.gram is not None
    assert both.data.grouped_by("half").groups == [0, 0, 0, 1, 1, 1]
    with pytest.raises(InputError, match="is not the corpus that"):
        JobSource.open(path, Corpus.load, other)


def test_a_store_must_be_complete_and_symmetric(tmp_path: Path) -> None:
    path, half = str(tmp_path / "between.zarr"), str(tmp_path / "half.zarr")
    build_gram(KERNEL, corpus(4), path, other=corpus(3))
    with pytest.raises(StoreError, match="needs a symmetric one"):
        JobSource.open(path, Corpus.load)
    unfinished = build_gram(KERNEL, corpus(4), half)
    next(file for file in Path(half, "tiles", "c").rglob("*") if file.is_file()).unlink()
    assert not unfinished.status().is_complete
    with pytest.raises((InputError, RunError, StoreError), match="tiles"):
        JobSource.open(half, Corpus.load)
