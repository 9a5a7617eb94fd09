"""Files to read, what a refusal must say, and where the real data sets are."""

import os
from pathlib import Path

import pytest

from gramline.pipeline.corpus import constructors
from gramline.pipeline.corpus.validation import check
from gramline.pipeline.errors import CorpusError

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture
def data_folder() -> Path:
    """The folder of the real data sets: GRAMLINE_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("GRAMLINE_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set GRAMLINE_DATA to the folder that holds them")
    return folder


@pytest.fixture
def refused():
    """Asserts that reading a file fails with this problem at this (line, structure, position) of it."""

    def refused(read, path, place, problem):
        with pytest.raises(CorpusError) as caught:
            read(path)
        error = caught.value
        assert (error.line, error.structure, error.position) == place
        assert problem in error.problem
        assert error.path == str(path) or (error.path is None and error.line is None)
        assert "\n" not in str(error)

    return refused


@pytest.fixture
def checks(monkeypatch):
    """The kinds of the corpora that were checked as a whole, in the order of the checks."""
    kinds = []

    def counted(flat, kind, label_names):
        kinds.append(kind)
        check(flat, kind, label_names)

    monkeypatch.setattr(constructors, "check", counted)
    return kinds


@pytest.fixture
def write(tmp_path):
    """A file with the given text, as bytes."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
