"""gram plan, build, status, verify, append and export."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tolerances import assert_close

from gramline.kernels import Linear, SequenceLabeling
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.gram import room
from gramline.pipeline.gram.stored import StoredGram

KERNEL = SequenceLabeling(c=0.5)


def tile_file(gram: Path) -> Path:
    return gram / "tiles" / "c" / "0" / "1"


def test_a_build_stores_the_kernel_matrix(gram: Path, corpus: Path) -> None:
    assert_close(StoredGram.open(gram).to_numpy(), KERNEL.gram(Corpus.load(corpus)))


def test_a_second_build_computes_nothing(gramline: Any, gram: Path, corpus: Path) -> None:
    answer = gramline("gram", "build", corpus, "-o", gram, "--c", "0.5", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert (answer.json["computed"], answer.json["reused"], answer.json["n_tiles"]) == (0, 10, 10)
    spoken = gramline("gram", "build", corpus, "-o", gram, "--c", "0.5")
    assert spoken.out.startswith("all 10 tiles were there already; nothing to compute\n15 x 15 matrix")
    whole = ["gram", "build", corpus, "-o", gram.with_name("whole.zarr"), "--inline"]
    assert gramline(*whole).code == 0
    assert gramline(*whole).out.startswith("its only tile was there already; nothing to compute\n")


def test_a_build_goes_on_where_it_was(gramline: Any, gram: Path, corpus: Path) -> None:
    tile_file(gram).unlink()
    answer = gramline("gram", "build", corpus, "-o", gram, "--c", "0.5", "--inline")
    assert answer.code == 0
    assert "1 tile computed in" in answer.out
    assert "9 tiles reused" in answer.out
    assert_close(StoredGram.open(gram).to_numpy(), KERNEL.gram(Corpus.load(corpus)))


@pytest.mark.parametrize(("off_diagonal", "is_said"), [(2.0, True), (0.5, False)])
def test_an_indefinite_substitution_matrix_is_reported(
    gramline: Any, tmp_path: Path, off_diagonal: float, is_said: bool
) -> None:
    Corpus.from_sequences([["a", "b"]]).save(tmp_path / "x.parquet")
    matrix = {"symbols": ["a", "b"], "matrix": [[1.0, off_diagonal], [off_diagonal, 1.0]]}
    (tmp_path / "matrix.json").write_text(json.dumps(matrix))
    observation = f"substitution:file={tmp_path / 'matrix.json'}"
    for command in (["plan", "--inline"], ["build", "-o", tmp_path / "x.gram.zarr", "--inline", "--block-rows", "2"]):
        answer = gramline("gram", *command, tmp_path / "x.parquet", "--observation", observation, "--json")
        assert answer.code == 0
        assert answer.json["shape"] == [2, 2]
        assert ("not positive semidefinite (smallest eigenvalue -1)" in answer.err) == is_said
        assert ("add 1 to its diagonal" in answer.err) == is_said


@pytest.mark.parametrize(
    ("tokens", "observation", "is_said"),
    [
        ([["w=a", "n=1"], ["w=b", "n=1"], ["w=c", "n=2"]], "identity", True),
        ([["w=a", "n=1"], ["w=b", "n=1"], ["w=c", "n=2"]], "linear", False),
        ([["w=a", "n=1"], ["w=a", "n=1"], ["w=c", "n=2"]], "identity", False),
        (["a", "b", "c"], "identity", False),
    ],
)
def test_feature_sets_that_identity_finds_nowhere_else_are_reported(
    gramline: Any, tmp_path: Path, tokens: list[Any], observation: str, is_said: bool
) -> None:
    Corpus.from_sequences([tokens], [["X", "Y", "X"]]).save(tmp_path / "x.parquet")
    (tmp_path / "job.toml").write_text(f'[corpus]\npath = "x.parquet"\n[kernel]\nobservation = "{observation}"\n')
    answer = gramline("gram", "plan", "--inline", "--job", tmp_path / "job.toml")
    assert answer.code == 0
    said = "note: identity compares feature sets as a whole, and 3 of 3 positions have one that is nowhere else"
    assert answer.err.startswith(said) == is_said
    assert bool(answer.err) == is_said


def test_a_build_on_a_local_cluster(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    target = tmp_path / "cluster.gram.zarr"
    answer = gramline("gram", "build", corpus, "-o", target, "--c", "0.5", "--workers", "1", "--memory-limit", "2GiB")
    assert (answer.code, answer.err) == (0, "")
    begin = f"{target.name}: 1 of 1 tiles to compute on 1 thread 1 tile computed in"
    assert " ".join(answer.out.split()).startswith(begin)
    assert_close(StoredGram.open(target).to_numpy(), KERNEL.gram(Corpus.load(corpus)))


def test_a_build_on_a_scheduler_by_address(gramline: Any, corpus: Path, tmp_path: Path, dask_client: Any) -> None:
    target = tmp_path / "address.gram.zarr"
    address = dask_client.scheduler.address
    answer = gramline("gram", "build", corpus, "-o", target, "--scheduler", address, "--json", "--dtype", "float32")
    assert (answer.code, answer.err) == (0, "")
    assert (answer.json["computed"], answer.json["threads"], answer.json["dtype"]) == (1, 2, "float32")


def test_a_job_file_says_how_its_corpora_are_read(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text("the x D\ndog x N\n\na y D\ncat x N\n\n")
    (tmp_path / "new.conll").write_text("the y D\ncow x N\n\n")
    (tmp_path / "template").write_text("U00:%x[0,0]\nU01:%x[0,1]\n")
    job = tmp_path / "job.toml"
    job.write_text(
        """
        [corpus]
        path = "train.conll"
        other = "new.conll"
        [features]
        features = "template:template"
        [kernel]
        observation = { name = "linear" }
        [gram]
        path = "cross.zarr"
        [cluster]
        inline = true
        """
    )
    assert gramline("gram", "plan", "--inline", "--job", job).code == 0
    assert gramline("gram", "build", "--job", job).code == 0
    template = tmp_path / "template"
    train = read_conll(tmp_path / "train.conll", template=template)
    new = read_conll(tmp_path / "new.conll", template=template, labels=["D", "N"])
    kernel = SequenceLabeling(observation=Linear())
    assert_close(StoredGram.open(tmp_path / "cross.zarr").to_numpy(), kernel.gram(train, new))
    (tmp_path / "new.conll").write_text("the y D\ncow\n")
    said = f"{tmp_path / 'new.conll'}:2: 1 columns, but line 1 has 3"
    assert gramline("gram", "build", "--job", job).error.startswith(said)


def test_a_job_file_knows_the_options_of_every_format(gramline: Any, tmp_path: Path) -> None:
    (tmp_path / "x.trees").write_text("(S (NP-SBJ they) (VP (V run) (NP (-NONE- *))))\n")
    (tmp_path / "x.conll").write_text("they x\nrun y\n")
    for name, line, shape in (
        ("x.trees", "strip_functions = true\nstrip_empty = true", [1, 1]),
        ("x.conll", "no_labels = true", [2, 2]),
    ):
        (tmp_path / "job.toml").write_text(f'[corpus]\npath = "{name}"\n[features]\n{line}\n')
        answer = gramline("gram", "plan", "--inline", "--job", tmp_path / "job.toml", "--json")
        assert answer.code == 0, answer.err
        assert answer.json["shape"] == shape


def test_a_job_file_says_everything(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(
        f"""
        [corpus]
        path = "{corpus.name}"
        [kernel]
        name = "sequence-labeling"
        c = 0.5
        [gram]
        path = "job.gram.zarr"
        block_rows = 8
        compression = "lz4"
        [learner]
        name = "labeling-perceptron"
        rounds = 2
        [model]
        path = "job.model.zarr"
        [cluster]
        inline = true
        """
    )
    planned = gramline("gram", "plan", "--inline", "--job", job, "--json")
    assert (planned.json["tiles"], planned.json["block_rows"]) == (3, 8)
    built = gramline("gram", "build", "--job", job, "--json")
    assert (built.code, built.json["block_rows"], built.json["compression"]) == (0, 8, "lz4")
    assert_close(StoredGram.open(tmp_path / "job.gram.zarr").to_numpy(), KERNEL.gram(Corpus.load(corpus)))
    fitted = gramline("fit", "--job", job, "--json")
    assert (fitted.code, fitted.json["params"]["rounds"]) == (0, 2)
    assert (tmp_path / "job.model.zarr").is_dir()


def test_a_kernel_for_other_structures_is_refused_with_its_line(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text('[kernel]\nc = 0.5\nname = "tree-labeling"\n')
    refused = gramline("gram", "build", corpus, "--job", tmp_path / "job.toml", "-o", tmp_path / "g.zarr", "--inline")
    where = f"{tmp_path / 'job.toml'}:3 [kernel]: "
    assert refused.error == f"{where}tree-labeling compares trees, but the corpus holds sequences"
    assert refused.code == 2
    by_option = gramline("gram", "build", corpus, "--kernel", "tree-labeling", "-o", tmp_path / "g.zarr", "--inline")
    assert by_option.error == "tree-labeling compares trees, but the corpus holds sequences"


def test_a_rectangular_matrix(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    other, target = tmp_path / "other.parquet", tmp_path / "cross.gram.zarr"
    Corpus.from_sequences([["the", "cat"], ["zebra"]]).save(other)
    answer = gramline("gram", "build", corpus, "--other", other, "-o", target, "--c", "0.5", "--inline", "--json")
    assert answer.json["shape"] == [15, 3]
    assert "15 x 3, between two corpora" in gramline("gram", "status", target).out
    expected = KERNEL.gram(Corpus.load(corpus), Corpus.load(other))
    assert_close(StoredGram.open(target).to_numpy(), expected)


def test_plan_tells_sizes_and_time(gramline: Any, corpus: Path, gram: Path) -> None:
    answer = gramline("gram", "plan", corpus, "--c", "0.5", "--block-rows", "5", "--workers", "2", "--json")
    told = answer.json
    assert (told["tiles"], told["to_compute"], told["tile_bytes"], told["threads"]) == (10, 10, 200, 2)
    assert told["stored_bytes"] == 2000
    assert told["seconds"] > 0
    assert told["peak_bytes"] > 200
    left = gramline("gram", "plan", corpus, "-o", gram, "--c", "0.5", "--inline", "--json").json
    assert (left["tiles"], left["present"], left["to_compute"]) == (10, 10, 0)
    spoken = gramline("gram", "plan", corpus, "--c", "0.5", "--inline")
    assert "on 1 thread, reading and writing included" in spoken.out
    assert "2.1 MB to write; no path is given to look at" in " ".join(spoken.out.split())
    assert max(map(len, spoken.out.splitlines())) <= 80


def test_plan_writes_nothing(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    assert gramline("gram", "plan", corpus, "-o", tmp_path / "new.gram.zarr", "--inline").code == 0
    assert sorted(tmp_path.iterdir()) == before


def test_what_the_disk_has_no_room_for_is_planned_and_refused(
    gramline: Any, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new.gram.zarr"
    options = [corpus, "-o", target, "--c", "0.5", "--block-rows", "5", "--inline"]
    for free, advice in (
        (1999, "float32 tiles would fit: they need 0.0 MB"),
        (
            700,
            "of 15 rows (positions or structures) about 10 as float64, about 15 as float32 would fit: take fewer, or",
        ),
    ):
        monkeypatch.setattr(room, "free_bytes", lambda _place, free=free: free)
        said = f"{target} would take 0.0 MB, but the disk has 0.0 MB free; {advice}"
        planned = gramline("gram", "plan", *options)
        assert (planned.code, planned.error.startswith(said)) == (2, True)
        assert "tiles       10 of 5 rows" in planned.out  # the plan is told nevertheless
        assert json.loads(gramline("gram", "plan", *options, "--json").out)["free_bytes"] == free
        refused = gramline("gram", "build", *options)
        assert (refused.code, refused.error.startswith(said), refused.out) == (2, True, "")
        assert not target.exists()
    squeezed = gramline("gram", "build", *options, "--compression", "zstd")
    assert squeezed.code == 0  # how small the tiles become nobody knows before
    assert gramline("gram", "plan", *options).code == 0  # nothing is left to write


def test_a_build_says_what_it_planned_beside_what_it_took(gramline: Any, corpus: Path, tmp_path: Path) -> None:
    options = [corpus, "--c", "0.5", "--block-rows", "5", "--inline"]
    spoken = gramline("gram", "build", *options, "-o", tmp_path / "a.zarr").out
    assert re.search(r"it will take about \d+\.\d s in all, as the first tiles tell", spoken)
    assert re.search(r"10 tiles computed in \d+\.\d s \(planned \d+\.\d s, took \d+\.\d s\)", spoken)
    told = gramline("gram", "build", *options, "-o", tmp_path / "b.zarr", "--json").json
    assert 0 < told["planned_seconds"] < 60
    assert gramline("gram", "build", *options, "-o", tmp_path / "b.zarr", "--json").json["planned_seconds"] is None


def test_status(gramline: Any, gram: Path) -> None:
    told = gramline("gram", "status", gram, "--json").json
    assert (told["shape"], told["n_tiles"], told["n_present"], told["is_complete"]) == ([15, 15], 10, 10, True)
    assert told["kernel"]["c"] == 0.5
    spoken = gramline("gram", "status", gram).out
    assert "15 x 15, symmetric" in spoken
    assert "sequence-labeling(c=0.5" in spoken


def test_verify_finds_damage_and_repairs_it(gramline: Any, gram: Path) -> None:
    good = gramline("gram", "verify", gram, "--inline")
    assert (good.code, good.out) == (0, f"{gram}: all 10 tiles are good\n")
    data = bytearray(tile_file(gram).read_bytes())
    data[17] ^= 1
    tile_file(gram).write_bytes(data)
    bad = gramline("gram", "verify", gram, "--inline", "--json")
    assert (bad.code, bad.json["is_good"]) == (1, False)
    assert [(check["i"], check["j"]) for check in bad.json["bad"]] == [(0, 1)]
    assert "1 of 10 tiles missing or damaged, the first is (0, 1)" in bad.error
    repaired = gramline("gram", "verify", gram, "--inline", "--repair")
    assert (repaired.code, repaired.err) == (0, "")
    assert repaired.out.endswith(f"{gram}: all 10 tiles are good, 1 tile computed again\n")
    assert gramline("gram", "verify", gram, "--inline").code == 0


def test_repair_tells_what_it_removed(gramline: Any, gram: Path) -> None:
    leftover = gram / "tiles" / "c" / "0" / "0.456.partial"
    leftover.write_bytes(b"half")
    os.utime(leftover, (0, 0))
    repaired = gramline("gram", "verify", gram, "--inline", "--repair")
    assert (repaired.code, leftover.exists()) == (0, False)
    assert repaired.out == f"{gram}: all 10 tiles are good, 1 leftover of killed writers removed\n"


def test_append_computes_only_what_is_new(gramline: Any, gram: Path, tmp_path: Path) -> None:
    more = tmp_path / "more.parquet"
    Corpus.from_sequences([["the", "cat", "barks"]], [["D", "N", "V"]], labels=["D", "N", "V"]).save(more)
    answer = gramline("gram", "append", gram, more, "--inline", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert (answer.json["shape"], answer.json["reused"], answer.json["computed"]) == ([18, 18], 10, 5)


@pytest.mark.parametrize("name", ["out.npy", "out.zarr"])
def test_export(gramline: Any, gram: Path, corpus: Path, tmp_path: Path, name: str) -> None:
    answer = gramline("gram", "export", gram, tmp_path / name)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == f"15 x 15 float64 matrix written to {tmp_path / name}\n"
    again = gramline("gram", "export", gram, tmp_path / name)
    assert again.code == 2
    assert name in again.error
    if name == "out.npy":
        assert_close(np.load(tmp_path / name), KERNEL.gram(Corpus.load(corpus)))
