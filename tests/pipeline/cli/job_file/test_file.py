"""Job files: what they say, and what is refused of them with file, line, table and key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gramline.kernels import EmpiricalPrior, Gaussian, Identity, Linear, Polynomial, SequenceLabeling, Substitution, Sum
from gramline.kernels.errors import LocatedError
from gramline.kernels.parameters import parameters_of
from gramline.kernels.value_kinds import Kind
from gramline.pipeline import Corpus
from gramline.pipeline.cli.cv_job import prepare
from gramline.pipeline.cli.job_file.file import JobFile, OptionValues, load_job, required
from gramline.pipeline.cli.job_file.kernel import kernel_from
from gramline.pipeline.cli.job_file.tables import TABLES
from gramline.pipeline.errors import InputError

CORPUS = Corpus.from_sequences([["a", "b"], ["a", "b"]], [["X", "Y"], ["X", "Y"]])
TAGGED = Corpus.from_tagged([[("a", "X"), ("b", "Y")]])


def kernel_of(path: str | None = None, corpus: Corpus = CORPUS, **options: Any) -> Any:
    return kernel_from(load_job(path, OptionValues({"kernel": options})), corpus).kernel


def written(folder: Path, text: str) -> str:
    (folder / "job.toml").write_text(text)
    return str(folder / "job.toml")


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_declared(name: str) -> None:
    assert TABLES[name].__doc__
    for parameter in parameters_of(TABLES[name]).values():
        assert type(parameter.kind) is not Kind
        assert parameter.description


def test_kernels_from_options(tmp_path: Path) -> None:
    assert kernel_of() == SequenceLabeling()
    assert kernel_of(c=0.8, gap=0.2) == SequenceLabeling(c=0.8, gap=0.2)
    assert kernel_of(name="sequence-labeling:c=0.8") == SequenceLabeling(c=0.8)
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
    assert kernel_of(observation="substitution:blosum62").observation == Substitution.named("blosum62")
    added = Sum(Linear(normalized=True), Polynomial(2, coef0=0), weight=0.5)
    assert kernel_of(observation="linear:normalized=true + 0.5 * polynomial:degree=2,coef0=0").observation == added
    assert kernel_of(observation=json.dumps(added.to_dict())).observation == added
    assert kernel_of(name=json.dumps(SequenceLabeling(c=2).to_dict())) == SequenceLabeling(c=2)
    path = written(tmp_path, '[kernel]\nobservation = "linear:normalized=true + 0.5 * polynomial:degree=2,coef0=0"')
    assert kernel_of(path).observation == added


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
    assert kernel_of(str(path)) == expected
    assert kernel_of(str(path), c=0.9, observation="identity") == SequenceLabeling(
        c=0.9, observation=Identity(), prior=prior, label_kernel=((2.0,),)
    )
    assert kernel_of(str(path), TAGGED, name="tagging:decay=0.5").to_dict()["decay"] == 0.5
    assert job.corpus.path == required(job.corpus.path, "corpus", "the corpus") == str(tmp_path / "train.parquet")
    given = OptionValues({"corpus": {"path": "else.parquet"}, "cluster": {"threads": 3}})
    changed = load_job(str(path), given)
    assert (changed.corpus.path, changed.cluster.threads) == ("else.parquet", 3)
    assert changed.cluster.scheduler == "tls://host:8786"
    assert job.cluster.scheduler == "tls://host:8786"
    assert job.cluster.tls_ca == str(tmp_path / "ca.pem")
    with pytest.raises(InputError) as caught:
        required(job.model.path, "model", "the model")
    advice = "name it on the command line or as 'path' in [model] of a job file"
    assert str(caught.value) == f"the model is missing; {advice}"


def test_a_reach_that_the_corpus_chooses(tmp_path: Path) -> None:
    assert kernel_of(reach="0.25") == SequenceLabeling(reach=0.25)
    assert kernel_of(reach="auto") == SequenceLabeling(reach=1.0)
    assert kernel_of(name="sequence-labeling:reach=auto,c=0.5") == SequenceLabeling(c=0.5, reach=1.0)
    path = written(tmp_path, '[kernel]\nreach = "auto"\n')
    assert kernel_of(path) == SequenceLabeling(reach=1.0)
    assert kernel_from(load_job(path), CORPUS).notes == ("reach 1: neighbours make 50% of the matrix",)
    for written_reach, options, line in (('"grid"', {}, 2), ("[0.1, 0.2]", {}, 2), ("1", {"reach": "0.1,auto"}, None)):
        path = written(tmp_path, f"[kernel]\nreach = {written_reach}\n")
        with pytest.raises(LocatedError, match="reach names several values, but one kernel is wanted") as caught:
            kernel_of(path, **options)
        assert (caught.value.line, caught.value.key) == (line, "reach")


def test_another_kernel_takes_over_no_parameters_of_the_file_but_the_same_one_does(tmp_path: Path) -> None:
    path = written(tmp_path, "[kernel]\nc = 0.7\n")
    assert kernel_of(path, name="sequence-labeling:gap=0.5") == SequenceLabeling(c=0.7, gap=0.5)
    path = written(tmp_path, '[kernel]\nname = "tree-labeling"\nc = 0.7\n')
    assert kernel_of(path, name="sequence-labeling") == SequenceLabeling()


def test_what_an_option_gave_has_no_line_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, '[folds]\ncount = 2\nrepeats = 3\n[corpus]\npath = "tiny.parquet"\n')
    Corpus.from_sequences([["a"], ["b"], ["c"]], [["O"], ["O"], ["O"]]).save(tmp_path / "tiny.parquet")
    with pytest.raises(InputError, match="repeated folds need a seed") as caught:
        prepare(path, OptionValues())
    assert (caught.value.path, caught.value.line) == (path, 3)
    with pytest.raises(InputError, match="repeated folds need a seed") as caught:
        prepare(path, OptionValues({"folds": {"repeats": 2}}))
    assert (caught.value.path, caught.value.line) == (None, None)


def test_nothing_is_said_without_a_file_but_defaults() -> None:
    job = JobFile()
    assert (job.gram.dtype, job.cluster.threads, job.folds.count, job.output.metric) == ("float64", 1, 5, "accuracy")
    assert job.kernel == job.learner == {}


def test_paths_are_beside_the_file_and_urls_stay(tmp_path: Path) -> None:
    text = '[gram]\npath = "s3://bucket/x.zarr"\n[features]\nfeatures = "template:t"\n[cluster]\nmemory_limit = "2GiB"'
    job = load_job(written(tmp_path, text))
    assert job.gram.path == "s3://bucket/x.zarr"
    assert job.features.features == f"template:{tmp_path / 't'}"
    assert job.cluster.memory_limit == 2 << 30


NUMBER = "must be a whole number of at least"


@pytest.mark.parametrize(
    ("text", "line", "table", "key", "problem"),
    [
        ("\n[corpsu]", 2, None, "corpsu", "there is no 'corpsu'; did you mean 'corpus'?"),
        ("[cluster]\nworker = 2", 2, "cluster", "worker", "there is no 'worker'; did you mean 'workers'?"),
        (
            *("[gram]\nx = 2", 2, "gram", "x"),
            "there is no 'x'; known are path, dtype, block_rows, compression, keep, tile_cache",
        ),
        ("corpus = 3", 1, None, None, "'corpus' must be a table; write [corpus] above its settings"),
        ("[[corpus]]", 1, None, None, "'corpus' must be a table; write [corpus] above its settings"),
        ("kernel = []", 1, None, None, "'kernel' must be a table; write [kernel] above its settings"),
        ("[corpus]\npath = ''", 2, "corpus", "path", "path must be a string that is not empty, got ''"),
        (
            "[corpus]\nformat = 'conlx'",
            2,
            "corpus",
            "format",
            "format must be one of conll, jsonl, conllu, brackets, fasta, got 'conlx'",
        ),
        ("[features]\nfeatures = 3", 2, "features", "features", "features must be a string, got 3"),
        ("[features]\nwindow = 'x'", 2, "features", "window", f"window {NUMBER} 0, got 'x'"),
        ("[features]\nminimum_count = 0", 2, "features", "minimum_count", f"minimum_count {NUMBER} 1, got 0"),
        (
            "[features]\nlabel_column = 'x'",
            2,
            "features",
            "label_column",
            "label_column must be a whole number, got 'x'",
        ),
        ("[features]\nkind = 'dags'", 2, "features", "kind", "kind must be one of trees, sequences, got 'dags'"),
        ("[gram]\ndtype = 'float16'", 2, "gram", "dtype", "dtype must be one of float64, float32, got 'float16'"),
        (
            "[gram]\n\ncompression = 1",
            3,
            "gram",
            "compression",
            "compression must be one of none, lz4, zstd, got 1",
        ),
        ("[cluster]\ninline = 1", 2, "cluster", "inline", "inline must be true or false, got 1"),
        (
            "[cluster]\nmemory_limit = '-1GiB'",
            2,
            "cluster",
            "memory_limit",
            "memory_limit must be a size such as 2GiB or 500MB, got '-1GiB'",
        ),
        ("[folds]\ncount = 'two'", 2, "folds", "count", f"count {NUMBER} 2, got 'two'"),
        (
            "[output]\nmetric = 'f2'",
            2,
            "output",
            "metric",
            "metric must be one of accuracy, hamming_loss, exact_match, precision, recall, f1, span_f1, got 'f2'",
        ),
        (
            "[kernel]\nlabel_kernel = 'none.json'",
            2,
            "kernel",
            "label_kernel",
            "{folder}/none.json: the label kernel cannot be read: no such file or directory",
        ),
    ],
)
def test_what_is_refused_when_it_is_read(
    tmp_path: Path, text: str, line: int, table: str | None, key: str | None, problem: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        load_job(path)
    error = caught.value
    assert (error.path, error.line, error.table, error.key) == (path, line, table, key)
    assert f"{error.problem}; {error.advice}".removesuffix("; ") == problem.replace("{folder}", str(tmp_path))


def test_the_place_stands_before_the_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "[folds]\ncuont = 2")
    with pytest.raises(InputError) as caught:
        load_job(path)
    assert str(caught.value) == f"{path}:2 [folds]: there is no 'cuont'; did you mean 'count'?"


def test_a_secret_is_refused_with_its_line_but_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path, '[cluster]\nthreads = 1\nscheduler = "tls://me:hush@host:8786"')
    with pytest.raises(InputError) as caught:
        load_job(path)
    assert (caught.value.line, caught.value.table, caught.value.key) == (3, "cluster", "scheduler")
    assert "hush" not in str(caught.value)


def test_what_is_no_job_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; give the path of a job file"):
        load_job(str(tmp_path / "none.toml"))
    with pytest.raises(InputError, match="the job file is not valid TOML") as caught:
        load_job(written(tmp_path, "[corpus]\n[corpus"))
    assert caught.value.line == 2


KERNEL = "[corpus]\npath = 'tiny.parquet'\n[kernel]\n{}"
LEARNER = "[corpus]\npath = 'tiny.parquet'\n[[learner]]\nname = 'zscore'\n[[learner]]\n{}"


@pytest.mark.parametrize(
    ("text", "line", "table", "key", "problem"),
    [
        (
            KERNEL.format("c = [0.5, -1]"),
            4,
            "kernel",
            "c",
            "SequenceLabeling.c must be a positive number (1e-150 to 1e150), got -1",
        ),
        (KERNEL.format("c = []"), 4, "kernel", "c", "c is an empty list; give a value"),
        (
            KERNEL.format("\nd = 1"),
            5,
            "kernel",
            "d",
            "SequenceLabeling has no parameter 'd'; known are c, gap, observation, prior, label_kernel, reach",
        ),
        (
            KERNEL.format("observation = 'polynomial:degree=0'"),
            4,
            "kernel",
            "observation.degree",
            "Polynomial.degree must be a whole number of at least 1, got 0",
        ),
        (KERNEL.format("observation = 'gaussian'"), 4, "kernel", "observation.gamma", "Gaussian.gamma is missing"),
        (
            KERNEL.format("name = 'sequence-labelling'"),
            4,
            "kernel",
            "name",
            "there is no kernel, observation kernel or prior called 'sequence-labelling'; did you mean "
            "'sequence-labeling'?",
        ),
        (LEARNER.format("\nrounds = [1, 0]"), 7, "learner", "rounds", f"rounds {NUMBER} 1, got 0"),
        (
            LEARNER.format("round = 1"),
            6,
            "learner",
            "round",
            "LabelingPerceptron has no parameter 'round'; did you mean 'rounds'?",
        ),
        (
            LEARNER.format("name = 'gaussian-process'\nrank = 2"),
            7,
            "learner",
            "rank",
            'rank=2 means nothing without approximation="nystrom"',
        ),
        (
            LEARNER.format("name = 'zscoer'"),
            6,
            "learner",
            "name",
            "there is no learner called 'zscoer'; did you mean 'zscore'?",
        ),
        (
            KERNEL.format("[folds]\nseed = 1\nstratified = true\nfile = 'x'"),
            4,
            "folds",
            None,
            "folds are stratified, grouped or read from a file; choose one of them",
        ),
        (
            KERNEL.format("[folds]\nrepeats = 3"),
            5,
            "folds",
            "repeats",
            "repeated folds need a seed, and are no folds from a file",
        ),
        (KERNEL.format("[folds]\ncount = 9"), 5, "folds", "count", "2 structures can be cut into 2 to 2 folds, not 9"),
        (
            KERNEL.format("[folds]\ncount = 2\ngroup = 'town'"),
            6,
            "folds",
            "group",
            "the corpus has no column 'town'; it has id, tokens, labels",
        ),
        (
            KERNEL.format("[cluster]\nscheduler = 'tcp://127.0.0.1:8786'\ninline = true"),
            6,
            "cluster",
            "inline",
            "inline computes in this process and scheduler elsewhere; choose one of them",
        ),
        (
            KERNEL.format("name = 'tree-labeling'"),
            4,
            "kernel",
            "name",
            "TreeLabeling compares trees, but the corpus holds sequences",
        ),
    ],
)
def test_what_is_refused_before_anything_is_computed(
    tmp_path: Path, text: str, line: int, table: str, key: str | None, problem: str
) -> None:
    Corpus.from_sequences([["a"], ["b"]], [["O"], ["O"]]).save(tmp_path / "tiny.parquet")
    path = written(tmp_path, text)
    with pytest.raises(LocatedError) as caught:
        prepare(path, OptionValues())
    error = caught.value
    assert (error.path, error.line, error.table, error.key) == (path, line, table, key)
    assert f"{error.problem}; {error.advice}".removesuffix("; ") == problem
    assert isinstance(error, ValueError)
