"""What fuzzing found, kept: inputs that once ended in a traceback, in all of the memory, or nowhere in particular."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from forged import resealed

from gramline.kernels import SequenceLabeling, SubsetTree
from gramline.learners import RankingPerceptron
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.cli.cv_job import prepare
from gramline.pipeline.cli.job_file.file import OptionValues
from gramline.pipeline.corpus import textfile
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.corpus.readers.conllu import read_conllu
from gramline.pipeline.corpus.readers.fasta import read_fasta
from gramline.pipeline.corpus.readers.jsonl import read_jsonl
from gramline.pipeline.crossval.folds import from_file
from gramline.pipeline.errors import CorpusError, InputError, StoreDamagedError, StoreError
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.packed_blocks import CORPUS
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker
from gramline.pipeline.settings_file import TomlLines
from gramline.pipeline.storage.groups import digest, open_group, read_attributes, write_arrays
from gramline.pipeline.storage.writer import write_attributes, write_group


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return path


def test_a_head_of_five_thousand_digits(tmp_path: Path) -> None:
    line = "\t".join(["1", "x", "_", "N", "_", "_", "1" * 5000, "d", "_", "_"])
    with pytest.raises(CorpusError) as caught:
        read_conllu(written(tmp_path, "a.conllu", line))
    assert caught.value.line == 1
    assert len(caught.value.problem) < 200, "what was given is cut off"


def test_a_name_of_five_thousand_letters(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        read_fasta(written(tmp_path, "a.fasta", f">{'p' * 5000}\nACD\n"), label_lines=True)
    assert caught.value.line == 1
    assert len(caught.value.problem) < 300, "what was given is cut off"


def test_a_template_that_reaches_to_the_end_of_the_world(tmp_path: Path) -> None:
    """Two names for every row it reaches were made before anything was read."""
    columns = written(tmp_path, "a.conll", "a O\n")
    for row in ("-2147483648", "9" * 5000, "1001"):
        with pytest.raises(CorpusError) as caught:
            read_conll(columns, template=written(tmp_path, "a.template", f"U:%x[{row},0]"))
        assert (caught.value.path, caught.value.line) == (str(tmp_path / "a.template"), 1)
    with pytest.raises(CorpusError, match="at most 1000 neighbours"):
        read_conll(columns, features="spelling", window=10**9)


@pytest.mark.parametrize(
    ("line", "structure", "problem"),
    [
        ('{"tokens": ["a"], "x": 1267650600228229401496703205376}', 0, "the column 'x' cannot be kept"),
        ('{"tokens": ["a"], "\\ud800": 1}', 0, "the key .* is not valid Unicode"),
        ('{"tokens": ["a"], "prior": [[1.0]]}', 0, "a prior needs labels"),
        ("[" * 3000, None, "not a JSON object"),
    ],
)
def test_json_lines(line: str, structure: int | None, problem: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=problem) as caught:
        read_jsonl(written(tmp_path, "a.jsonl", line))
    assert (caught.value.line, caught.value.structure) == (1, structure)


def test_mixed_columns_name_the_structure(tmp_path: Path) -> None:
    lines = [json.dumps({"tokens": ["a"], "x": value}) for value in (1, 2, "three", 4)]
    with pytest.raises(CorpusError) as caught:
        read_jsonl(written(tmp_path, "a.jsonl", "\n".join(lines)))
    assert (caught.value.line, caught.value.structure) == (3, 2)


def test_a_small_file_that_expands_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfile, "FREE_BYTES", 1 << 16)
    monkeypatch.setattr(textfile, "PIECE_BYTES", 1 << 12)
    bomb = written(tmp_path, "a.conll", gzip.compress(b"a O\n" * 500_000))
    with pytest.raises(CorpusError, match=r"expands to more than [\d,]+ bytes"):
        read_conll(bomb)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 5000, r"line 1"),
        ("[[0.5], [1]]", r"fold 0, entry 0: .0.5. is not the number of a structure \(0 to 5\)"),
        ("[[0], [true]]", r"fold 1, entry 0: .true. is not"),
        ('[[0], ["1"]]', r"fold 1, entry 0: .*is not"),
        ('[[0], "12"]', r"fold 1 is not a list"),
        ('{"a": 1}', "holds no fold"),
        ("[[0], [6]]", r"fold 1, entry 0: .6. is not"),
    ],
)
def test_fold_files(content: str, said: str, tmp_path: Path) -> None:
    """Halves and words were taken for structure numbers."""
    with pytest.raises(InputError, match=said):
        from_file(written(tmp_path, "folds.json", content), 6)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[folds]\nseed = 1\n[cor\xff", 3),
        ("[folds]\ncount = " + "1" * 5000, 2),
        ("x = " + "[" * 5000, 1),
        ("[folds]\n\ncount = [", 3),
        ('[cluster]\nmemory_limit = "1e400GiB"', 2),
        ('[cluster]\nmemory_limit = "-1GiB"', 2),
        ('[corpus]\npath = "tiny.parquet"\n[output]\nmetric = "beauty"', 4),
        (f'[corpus]\npath = "{"a" * 5000}"', 2),
        (f'[corpus]\npath = "tiny.parquet"\n[output]\npath = "{"a" * 5000}"', 4),
    ],
)
def test_job_files(content: str, line: int, tmp_path: Path) -> None:
    Corpus.from_sequences([["a"], ["b"]], [["O"], ["O"]]).save(tmp_path / "tiny.parquet")
    with pytest.raises(InputError) as caught:
        prepare(str(written(tmp_path, "job.toml", content.encode("latin-1"))), OptionValues())
    assert (caught.value.path, caught.value.line) == (str(tmp_path / "job.toml"), line)


def test_a_secret_in_a_job_file_is_refused_before_it_is_written_back(tmp_path: Path) -> None:
    job = written(tmp_path, "job.toml", '[gram]\npath = "s3://me:hush-hush@bucket/x.zarr"\n')
    with pytest.raises(InputError, match="credentials in the environment") as caught:
        prepare(str(job), OptionValues())
    assert "hush" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["job.toml"]


def test_lines_of_a_job_file_take_time_in_proportion_to_their_length() -> None:
    """A header pattern went through every way of sharing out the blanks; with these it would not end today."""
    lines = TomlLines.of("x = [\n[" + " " * 60_000 + "1\n]]\n[ kernel ]\nc = 1\n")
    assert lines.line("kernel", "c") == 5


@pytest.fixture
def store(tmp_path: Path) -> Path:
    build_gram(SequenceLabeling(c=0.5), Corpus.from_sequences([["a", "b"], ["b"]]), tmp_path / "a.zarr", block_rows=2)
    return tmp_path / "a.zarr"


def test_a_kernel_that_is_a_text(store: Path) -> None:
    attributes, _ = read_attributes(str(store))
    attributes["spec"] = attributes["spec"] | {"kernel": "../../x"}
    write_attributes(open_group(str(store)), attributes)
    with pytest.raises(StoreError, match="a kernel description needs a 'name'"):
        _ = StoredGram.open(store).kernel


def test_a_hundred_bytes_that_claim_ten_to_the_fifteen_rows(store: Path) -> None:
    chosen = store / "rows" / "0" / "lengths" / "zarr.json"
    document = json.loads(chosen.read_text())
    for claim in ([10**15], [2**39]):
        chosen.write_text(json.dumps(document | {"shape": claim}))
        with pytest.raises(StoreDamagedError) as caught:
            StoredGram.open(store)
        assert "lengths" in caught.value.problem
    tiles = store / "tiles" / "zarr.json"
    chosen.write_text(json.dumps(document))
    described = json.loads(tiles.read_text())
    described["chunk_grid"]["configuration"]["chunk_shape"] = [10**7, 10**7]
    tiles.write_text(json.dumps(described))
    with pytest.raises(StoreError, match=r"claims chunks of 10,000,000 x 10,000,000 values"):
        StoredGram.open(store)


def test_numbers_that_would_send_compiled_loops_elsewhere(store: Path) -> None:
    """Arrays with digests and seals that fit, but codes and offsets that point out of them."""
    for name, value in (("symbols", 10**6), ("starts", 10**6), ("feature_indptr", -5), ("labels", 77)):
        group = open_group(str(store))
        before = np.asarray(group[f"rows/0/{name}"][...])  # type: ignore[index]
        after = before.copy()
        after[0, 1] = value
        write_arrays(group, {f"rows/0/{name}": after})
        with pytest.raises(StoreDamagedError) as caught:
            StoredGram.open(store).row_corpus  # noqa: B018 - reading it is the test
        assert (caught.value.part, caught.value.problem.partition(":")[0]) == (CORPUS, "block 0")
        write_arrays(group, {f"rows/0/{name}": before})
    attributes, _ = read_attributes(str(store))
    segment = attributes["segments"]["rows"][0]
    extent = np.asarray(open_group(str(store))["rows/0/extent"][...])  # type: ignore[index]
    write_arrays(open_group(str(store)), {"rows/0/extent": extent + 10**9})
    segment["digests"]["extent"] = digest(extent + 10**9)
    resealed(store, attributes)
    with pytest.raises(StoreDamagedError) as caught:
        StoredGram.open(store)
    assert caught.value.problem.endswith("for 2 blocks")


def test_a_model_sets_nothing_but_what_was_fitted(tmp_path: Path) -> None:
    attributes = {
        "format": "gramline model",
        "version": 1,
        "kernel": {"name": "sequence-labeling"},
        "learner": {"name": "labeling-perceptron", "params": {}, "fitted": {"predict": "nonsense"}},
        "support": {"kind": "sequences"},
    }
    write_group(tmp_path / "model.zarr", attributes, {})
    with pytest.raises(StoreError, match="a learner has no fitted attribute 'predict'"):
        Model.load(tmp_path / "model.zarr")


@pytest.fixture
def ranker(tmp_path: Path) -> Path:
    corpus = Corpus.from_parses(["(S (NP a) (VP b))", "(S (NP b))"])
    learner = RankingPerceptron().fit(DenseGram.of(SubsetTree(0.4), corpus), [[0, 1]])
    Ranker.of(learner, corpus, SubsetTree(0.4)).save(tmp_path / "ranker.zarr")
    return tmp_path / "ranker.zarr"


def test_a_forest_of_productions_that_nobody_has(ranker: Path) -> None:
    """Its index had a place for every number up to the largest: sixteen gigabytes for five subtrees."""
    group = open_group(str(ranker))
    productions = np.asarray(group["forest.productions"][...])  # type: ignore[index]
    productions[-1] = 2**31 - 1
    write_arrays(group, {"forest.productions": productions})
    digests = read_attributes(str(ranker))[0]["arrays"]
    resealed(ranker, {"arrays": digests | {"forest.productions": digest(productions)}})
    with pytest.raises(StoreError, match=r"damaged ranker \(entry \d of 'productions' is 2147483647"):
        Ranker.load(ranker)


def test_a_ranker_without_its_counts(ranker: Path) -> None:
    """It was loaded, and failed at the first choice."""
    digests = read_attributes(str(ranker))[0]["arrays"]
    resealed(ranker, {"arrays": {name: found for name, found in digests.items() if name != "learner.counts_"}})
    with pytest.raises(StoreError, match=r"damaged ranker \(.*no attribute 'counts_'"):
        Ranker.load(ranker)


def test_a_document_without_bottom(store: Path) -> None:
    (store / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": ' + "[" * 100_000)
    with pytest.raises(StoreError) as caught:
        StoredGram.open(store)
    assert caught.value.problem == f"{store} is not a store but something whose zarr.json cannot be read"
