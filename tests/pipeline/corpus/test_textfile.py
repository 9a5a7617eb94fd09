"""Lines of text files: their ends, their encoding, and where an error was."""

import gzip

import pytest

from gramline.pipeline.corpus.textfile import located, read_lines
from gramline.pipeline.errors import CorpusError, UnknownLabelError


def test_only_line_feeds_end_a_line(write):
    text = "a\u2028b\x0bc\x1cd\r\n\ne\u3000f"
    assert read_lines(write("t", text)) == ["a\u2028b\x0bc\x1cd", "", "e\u3000f"]
    assert read_lines(write("u", "\ufeffa\n")) == ["a"]
    assert read_lines(write("v", "")) == []


def test_gzip_is_recognized_by_its_content(write):
    assert read_lines(write("t.txt", gzip.compress(b"a\nb\n"))) == ["a", "b"]
    with pytest.raises(CorpusError, match=r"t\.gz is a damaged gzip file"):
        read_lines(write("t.gz", gzip.compress(b"a\nb\n" * 100)[:-9]))


def test_what_cannot_be_read(write, tmp_path):
    with pytest.raises(CorpusError, match="not UTF-8 text; convert the file to UTF-8") as caught:
        read_lines(write("t", b"a\nb\n\xe9t\xe9\n"))
    assert caught.value.line == 3
    with pytest.raises(CorpusError, match=r"cannot read .*absent: No such file or directory"):
        read_lines(tmp_path / "absent")
    with pytest.raises(CorpusError, match=r"cannot read .*: Is a directory"):
        read_lines(tmp_path)


def test_errors_are_located():
    error = located(CorpusError("bad", structure=1, position=0), "f", [1, 7])
    assert (error.path, error.line) == ("f", 7)
    assert str(error) == "f:7: structure 1, position 0: bad"
    assert str(located(CorpusError("all is bad"), "f", [1])) == "f: all is bad"
    labels = located(UnknownLabelError("bad", ("X",), structure=0), "f", [1])
    assert isinstance(labels, UnknownLabelError)
    assert labels.names == ("X",)
