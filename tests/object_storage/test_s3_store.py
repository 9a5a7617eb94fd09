"""Stores on a real S3-protocol server: build, resume, verify, repair, append, stream and predict, also by command."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import cloudpickle
import numpy as np
import obstore
import pytest
from gram_samples import KERNEL, ScriptedExecutor, chunks, corpus
from object_storage.s3_server import ACCESS, SECRET

from gramline.learners import LabelingPerceptron
from gramline.pipeline import Corpus, StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.cli.main import run
from gramline.pipeline.errors import StoreError, StoreTakenError
from gramline.pipeline.executors.base import attempt
from gramline.pipeline.gram.missing import plan_store
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.strays import sweep_segments
from gramline.pipeline.gram.task import compute_tile
from gramline.pipeline.models.model import Model
from gramline.pipeline.storage.object_store import folders, open_bucket

CORPUS = corpus(8)


def remote_chunks(url: str) -> dict[str, bytes]:
    bucket = open_bucket(url)
    names = [item["path"] for page in obstore.list(bucket, "tiles/c/") for item in page]
    return {name.removeprefix("tiles/c/"): bytes(obstore.get(bucket, name).bytes()) for name in names}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("whole") / "a.zarr"
    build_gram(KERNEL, CORPUS, path, block_rows=10)
    return chunks(path)


def test_build_resume_verify_append_stream_predict(url: str, whole: dict[str, bytes]) -> None:
    gram = build_gram(KERNEL, CORPUS, url, block_rows=10)
    assert remote_chunks(url) == whole
    bucket = open_bucket(url)
    obstore.delete(bucket, "tiles/c/0/1")
    obstore.put(bucket, "tiles/c/0/2", b"torn")
    resumed = ScriptedExecutor()
    build_gram(KERNEL, CORPUS, url, executor=resumed)
    assert {(task.i, task.j) for task in resumed.calls} == {(0, 1), (0, 2)}
    obstore.put(bucket, "tiles/c/1/1", whole["2/2"])
    assert [(check.i, check.j) for check in verify_gram(url).bad] == [(1, 1)]
    assert verify_gram(url, repair=True).is_good
    assert remote_chunks(url) == whole
    dense = KERNEL.gram(CORPUS)
    np.testing.assert_allclose(gram.matmul(np.eye(len(dense))), dense, rtol=1e-12)
    learner = LabelingPerceptron(rounds=3).fit(StoredGram.open(url), CORPUS.labels)
    model = Model.of(learner, CORPUS, KERNEL)
    model.save(f"{url}.model")
    with pytest.raises(StoreTakenError):
        model.save(f"{url}.model")
    model.save(f"{url}.model", overwrite=True)
    assert Model.load(f"{url}.model").predict(CORPUS) == model.predict(CORPUS)
    grown = append_gram(url, corpus(3, seed=5))
    assert StoredGram.open(url).shape == grown.shape
    assert verify_gram(url).is_good


def test_leftovers_of_a_removed_store_are_not_taken_for_tiles(url: str, whole: dict[str, bytes]) -> None:
    bucket = open_bucket(url)
    obstore.put(bucket, "tiles/c/0/0", whole["1/1"])
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    assert remote_chunks(url) == whole


def test_of_two_creators_one_wins_and_both_end_well(
    url: str, whole: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one creates the whole store, and fills it, while the first is about to store the root document."""
    from gramline.pipeline.storage import writer as group_writer

    put, others = group_writer.put, []

    def overtaken(bucket: Any, key: str, content: bytes, **more: Any) -> bool:
        if key == "zarr.json" and not others:
            others.append("here")
            build_gram(KERNEL, CORPUS, url, block_rows=10)
        return put(bucket, key, content, **more)

    monkeypatch.setattr(group_writer, "put", overtaken)
    executor = ScriptedExecutor()
    build_gram(KERNEL, CORPUS, url, block_rows=10, executor=executor)
    assert (others, executor.calls) == (["here"], [])
    assert remote_chunks(url) == whole


def test_of_appends_at_once_none_is_lost(url: str) -> None:
    """Each ends well or in one sentence, and whoever is told so and runs it again ends well, too."""
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    more, start, refusals = [corpus(count, seed=count) for count in (2, 7, 4)], Barrier(3), []

    def append(new: Corpus) -> None:
        start.wait(60)
        while True:
            try:
                append_gram(url, new)
            except StoreError as refusal:
                refusals.append(str(refusal))
            else:
                return

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(append, more))
    said = (
        f"another append to {url} was faster, or a repair took this one for dead: these structures are not in; "
        "run it again to add them"
    )
    assert set(refusals) == {said}
    gram = StoredGram.open(url)
    assert gram.status().n_segments == 4
    assert gram.shape[0] == CORPUS.n_positions + sum(new.n_positions for new in more)
    assert verify_gram(url).is_good


def test_what_a_killed_append_left_is_swept(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    with monkeypatch.context() as patched:
        patched.setattr("gramline.pipeline.gram.store.write_attributes", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            append_gram(url, corpus(3, seed=5))
    whole = append_gram(url, corpus(3, seed=5)).to_numpy()
    assert len(folders(open_bucket(url), "rows/")) == 3
    assert sweep_segments(url) == 0
    assert sweep_segments(url, older_than=-60) > 10
    assert len(folders(open_bucket(url), "rows/")) == 2
    assert verify_gram(url).is_good
    np.testing.assert_array_equal(StoredGram.open(url).to_numpy(), whole)


def test_a_tile_that_the_server_denies_is_missing_and_never_a_number(url: str) -> None:
    gram = build_gram(KERNEL, CORPUS, url, block_rows=10)
    obstore.delete(open_bucket(url), "tiles/c/1/2")
    from gramline.pipeline.errors import TileCorruptError

    with pytest.raises(TileCorruptError) as corrupt:
        gram.to_numpy()
    assert corrupt.value.tile == (1, 2)
    assert corrupt.value.problem == "it is missing"
    with pytest.raises(TileCorruptError) as corrupt:
        gram.matmul(np.ones((gram.shape[0], 1)))
    assert corrupt.value.tile == (1, 2)


def test_credentials_never_travel(url: str) -> None:
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    plan = plan_store(TileStore(url), present=())
    sent = cloudpickle.dumps([(attempt, compute_tile, task) for task in plan.tasks])
    graph = cloudpickle.dumps(StoredGram.open(url).to_dask().dask)
    for content in (sent, graph):
        assert url.encode() in content
        assert SECRET.encode() not in content
        assert ACCESS.encode() not in content


def test_a_url_with_a_secret_in_it_is_refused_without_repeating_it(tmp_path: Path) -> None:
    for bad in (f"s3://user:{SECRET}@bucket/x.zarr", f"s3://bucket/x.zarr?X-Amz-Signature={SECRET}"):
        for action in (lambda bad=bad: build_gram(KERNEL, CORPUS, bad), lambda bad=bad: StoredGram.open(bad)):
            with pytest.raises(StoreError, match="credentials in the environment") as caught:
                action()
            assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_bucket_that_is_not_there_is_one_sentence(url: str) -> None:
    with pytest.raises(StoreError, match="there is no such bucket"):
        build_gram(KERNEL, CORPUS, url.replace("s3://bucket/", "s3://nowhere/"))


def test_by_command_on_a_cluster(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worker of a local cluster writes to the server itself; every command takes a url where it takes a path."""
    monkeypatch.chdir(tmp_path)
    CORPUS.save("c.parquet")
    for arguments in (
        ["gram", "build", "c.parquet", "--store", url, "--c", "0.8", "--block-rows", "10", "--workers", "1"],
        ["gram", "verify", url, "--inline"],
        ["fit", url, "-o", f"{url}.model", "--learner", "labeling-perceptron", "--rounds", "2"],
        ["predict", f"{url}.model", "c.parquet", "--json"],
        ["gram", "status", url],
    ):
        assert run(arguments) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert '"O"' in output.out
    assert SECRET not in output.out + output.err
