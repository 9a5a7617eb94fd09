"""A corpus on disk comes back as it was, or not at all."""

import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gramline.pipeline.corpus import Corpus, generate_saleslog
from gramline.pipeline.corpus.parquet import METADATA_KEY, write_table
from gramline.pipeline.errors import CorpusError

SAMPLES = {
    "words": lambda: Corpus.from_sequences([["a", "\u3000"], [""]], [["X", None], ["Y"]], labels=["Y", "X", "Z"]),
    "mixed": lambda: Corpus.from_sequences([["a", {"f": 0.1, "g": 1}], [{}, ["h"]]]),
    "prior": lambda: Corpus.from_sequences([["a"], ["b"]], prior=[[[0.1, 0.9]], [[1, 0]]], labels=["X", "Y"]),
    "trees": lambda: generate_saleslog(4, kind="trees", features="spelling").with_column("group", list("abba")),
    "dags": lambda: generate_saleslog(4, kind="dags"),
    "parses": lambda: Corpus.from_parses(["(S (A a) (B))", "(S b)"]),
    "tagged": lambda: Corpus.from_tagged([[("a", "X")], [("b", "Y"), ("a", "Z")]]),
    "no labels": lambda: Corpus.from_sequences([["a"]]),
}


@pytest.mark.parametrize("sample", SAMPLES)
def test_there_and_back(sample, tmp_path):
    corpus = SAMPLES[sample]()
    corpus.save(tmp_path / "c.parquet")
    again = Corpus.load(str(tmp_path / "c.parquet"))
    assert again.table.equals(corpus.table)
    assert (again.kind, again.label_names, again.labels) == (corpus.kind, corpus.label_names, corpus.labels)
    assert again.fingerprint == corpus.fingerprint
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]


def test_a_flipped_byte_never_passes_for_content(tmp_path):
    corpus = generate_saleslog(1, kind="trees", features="words")
    path = tmp_path / "c.parquet"
    corpus.save(path)
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 17):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        path.write_bytes(damaged)
        try:
            assert Corpus.load(path).fingerprint == corpus.fingerprint
        except CorpusError as error:
            refused += "\n" not in str(error)
    assert refused > 100


def test_files_that_are_no_corpus(tmp_path):
    path = tmp_path / "c.parquet"
    with pytest.raises(CorpusError, match=f"there is no corpus file at {re.escape(str(path))}"):
        Corpus.load(path)
    with pytest.raises(CorpusError, match="there is no corpus file at"):
        Corpus.load(tmp_path)
    path.write_text("word label\n")
    with pytest.raises(CorpusError, match="is not a corpus but a file that is not Parquet; give the path of a corpus"):
        Corpus.load(path)
    path.write_bytes(b"")
    with pytest.raises(CorpusError, match="is not a corpus but an empty file; give the path of a corpus that"):
        Corpus.load(path)
    Corpus.from_sequences([["a"]]).save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CorpusError, match=r"c\.parquet is a damaged Parquet file; import the corpus again$"):
        Corpus.load(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(CorpusError, match="is not a corpus but a Parquet file of something else"):
        Corpus.load(path)
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({METADATA_KEY: b"["}), path)
    with pytest.raises(CorpusError, match="is damaged: its description cannot be read"):
        Corpus.load(path)
    description = {"kind": "sequences", "label_names": [], "fingerprint": "?"}
    write_table(pa.table({"a": [1]}), path, description)
    with pytest.raises(CorpusError, match=r"c\.parquet: a corpus of sequences needs a column 'id'"):
        Corpus.load(path)
    write_table(pa.table({"id": ["0"], "tokens": [["a"]]}), path, description)
    with pytest.raises(CorpusError, match="is damaged: its content does not fit its fingerprint"):
        Corpus.load(path)
    write_table(pa.table({"id": ["0"], "tokens": [["a"]]}), path, description | {"version": 99})
    with pytest.raises(CorpusError, match="has corpus format 99, this program reads 1"):
        Corpus.load(path)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "c.parquet"
    old = Corpus.from_sequences([["a"]])
    old.save(path)

    def full_disk(_table, where, **_options):
        where.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full_disk)
    with pytest.raises(CorpusError, match=r"cannot write the corpus to .*c\.parquet: No space left on device"):
        Corpus.from_sequences([["b"]]).save(path)
    assert [item.name for item in tmp_path.iterdir()] == ["c.parquet"]
    assert Corpus.load(path).fingerprint == old.fingerprint
    monkeypatch.undo()
    with pytest.raises(CorpusError, match="cannot write the corpus to"):
        old.save(tmp_path / "nowhere" / "c.parquet")
