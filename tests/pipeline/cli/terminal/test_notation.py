"""Records, sizes and job files as people write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.kernels import EmpiricalPrior, Gaussian, Identity, Polynomial, SequenceLabeling, Substitution
from gramline.pipeline.cli.cluster_options import parse_bytes
from gramline.pipeline.cli.job_file.file import Job, load_job
from gramline.pipeline.cli.job_file.kernel import kernel_from
from gramline.pipeline.cli.terminal.notation import parse_record, parse_settings
from gramline.pipeline.cli.terminal.output import count, duration, size
from gramline.pipeline.errors import InputError

NOTHING: dict[str, Any] = dict.fromkeys(("kernel", "c", "gap", "observation", "prior", "label_kernel"))


def kernel_of(job: Job | None = None, **options: Any) -> Any:
    return kernel_from(job or Job(), "sequences", **(NOTHING | options))


def test_a_record_is_a_name_and_values() -> None:
    text = "polynomial:degree=2,coef0=0.5,normalized=true,other=null,word=x-y"
    expected = {"name": "polynomial", "degree": 2, "coef0": 0.5, "normalized": True, "other": None, "word": "x-y"}
    assert parse_record(text, "it") == expected
    assert parse_record("identity", "it") == {"name": "identity"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,0.5,true,word", [1, 0.5, True, "word"]),
        ("[-1,1]", [[-1, 1]]),
        ("[-1],GPSL4,[-2,-1]", [[-1], "GPSL4", [-2, -1]]),
        ("[-1,1", ["[-1", 1]),
    ],
)
def test_settings_are_separated_by_commas(text: str, values: list[Any]) -> None:
    assert parse_settings(text) == values


@pytest.mark.parametrize("text", [":degree=2", "polynomial:degree", "polynomial:=2"])
def test_a_record_that_is_none(text: str) -> None:
    with pytest.raises(InputError, match="the kernel"):
        parse_record(text, "the kernel")


def test_kernels_from_options(tmp_path: Path) -> None:
    assert kernel_of() == SequenceLabeling()
    assert kernel_of(c=0.8, gap=0.2) == SequenceLabeling(c=0.8, gap=0.2)
    assert kernel_of(kernel="sequence-labeling:c=0.8") == SequenceLabeling(c=0.8)
    assert kernel_of(observation="polynomial:degree=3", prior="empirical:smoothing=0.5") == SequenceLabeling(
        observation=Polynomial(degree=3), prior=EmpiricalPrior(smoothing=0.5)
    )
    matrix = tmp_path / "labels.json"
    matrix.write_text("[[1, 0.5], [0.5, 1]]")
    assert kernel_of(label_kernel=str(matrix)) == SequenceLabeling(label_kernel=((1.0, 0.5), (0.5, 1.0)))
    alphabet = tmp_path / "alphabet.json"
    alphabet.write_text(json.dumps({"symbols": ["a", "b"], "matrix": [[1, 0], [0, 1]]}))
    assert kernel_of(observation=f"substitution:file={alphabet}").observation == Substitution(
        ("a", "b"), ((1.0, 0.0), (0.0, 1.0))
    )


def test_a_job_file_describes_a_kernel_and_options_win(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    (tmp_path / "labels.json").write_text('{"matrix": [[2]]}')
    path.write_text(
        """
        [corpus]
        path = "train.parquet"
        [kernel]
        name = "sequence-labeling"
        c = 0.7
        observation = { name = "gaussian", gamma = 0.5 }
        prior = "empirical:smoothing=2"
        label_kernel = "labels.json"
        [cluster]
        scheduler = "tls://host:8786"
        tls_ca = "ca.pem"
        """
    )
    job = load_job(str(path))
    prior = EmpiricalPrior(smoothing=2)
    expected = SequenceLabeling(c=0.7, observation=Gaussian(0.5), prior=prior, label_kernel=((2.0,),))
    assert kernel_of(job) == expected
    assert kernel_of(job, c=0.9, observation="identity") == SequenceLabeling(
        c=0.9, observation=Identity(), prior=prior, label_kernel=((2.0,),)
    )
    assert kernel_of(job, kernel="tagging:decay=0.5").to_dict()["decay"] == 0.5
    assert job.path(None, "corpus", "path", "the corpus") == str(tmp_path / "train.parquet")
    assert job.path("else.parquet", "corpus", "path", "the corpus") == "else.parquet"
    assert job.setting(None, "cluster", "scheduler") == "tls://host:8786"
    assert job.setting(None, "cluster", "tls_ca") == str(tmp_path / "ca.pem")
    with pytest.raises(InputError, match="the model is missing; name it"):
        job.path(None, "model", "path", "the model")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[corpsu]", "there is no 'corpsu'; did you mean 'corpus'?"),
        ("[cluster]\nworker = 2", r"\[cluster\]: there is no 'worker'; did you mean 'workers'?"),
        ("[gram]\nx = 2", "known are path, dtype, block_rows, compression"),
        ("corpus = 3", "must be a table"),
        ("[corpus", "not valid TOML"),
        ("[kernel]\nlabel_kernel = 'none.json'", "the label kernel cannot be read: no such file"),
    ],
)
def test_a_wrong_job_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        load_job(str(path))


def test_no_job_file_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; give the path of a job file"):
        load_job(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("text", "expected"), [("2GiB", 2 << 30), ("500 MB", 500_000_000), ("1.5kb", 1500), ("1000", 1000), (77, 77)]
)
def test_sizes(text: str | int, expected: int) -> None:
    assert parse_bytes(text, "it") == expected


@pytest.mark.parametrize("text", ["much", "2XB", "-1GB", "0", "GiB"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match="it"):
        parse_bytes(text, "it")


def test_numbers_for_people() -> None:
    assert [size(n) for n in (0, 999, 1500, 2.5e6, 8e9, 3e13)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.5 MB",
        "8.0 GB",
        "30.0 TB",
    ]
    assert [duration(s) for s in (0.04, 9.94, 12, 200, 7500)] == ["0.0 s", "9.9 s", "12 s", "3 min 20 s", "2 h 5 min"]
    assert [count(n, "tile") for n in (0, 1, 1234)] == ["0 tiles", "1 tile", "1,234 tiles"]
