"""An object store that fails, stalls, cuts answers or denies what it has, through a proxy: nothing wrong is read."""

from __future__ import annotations

import errno
from datetime import timedelta

import numpy as np
import pytest
from gram_samples import KERNEL, ScriptedExecutor, corpus
from object_storage.faulty_proxy import Fault, Proxy

from gramline.pipeline import StoredGram, append_gram, build_gram, verify_gram
from gramline.pipeline.errors import (
    StorageUnavailableError,
    StoreDamagedError,
    StoreError,
    TileCorruptError,
    TileFailedError,
)
from gramline.pipeline.storage import object_store
from gramline.pipeline.storage.places import refusal_number

CORPUS = corpus(4)
DOCUMENTS = ("tiles/zarr.json", "zarr.json")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits of milliseconds instead of seconds."""
    backoff = {"init_backoff": timedelta(milliseconds=5), "max_backoff": timedelta(milliseconds=20), "base": 2}
    more = {"max_retries": 4, "retry_timeout": timedelta(seconds=20), "backoff": backoff}
    monkeypatch.setattr(object_store, "RETRIES", more)
    monkeypatch.setattr(object_store, "TIMEOUTS", {"timeout": "2s", "connect_timeout": "2s"})


def test_failures_that_pass_are_tried_again(url: str, proxy: Proxy) -> None:
    faults = [
        proxy.add(Fault("PUT", "tiles/c/0/0", 2, status=500)),
        proxy.add(Fault("PUT", "tiles/c/0/1", 2, status=503)),
        proxy.add(Fault("PUT", "tiles/c/1/1", 1, cut=0)),  # stored, but the answer is lost
        proxy.add(Fault("GET", "rows/0/symbols/c", 1, cut=250)),  # the answer breaks off half-way
        proxy.add(Fault("GET", "list-type=2", 1, status=503)),
        proxy.add(Fault("GET", "rows/0/labels/c", 1, delay=4.0)),  # longer than the timeout
    ]
    executor = ScriptedExecutor()
    gram = build_gram(KERNEL, CORPUS, url, block_rows=10, executor=executor)
    assert [fault.hits for fault in faults] == [fault.times for fault in faults]
    assert len(executor.calls) == gram.layout.n_tiles  # below the tasks: none of them was run twice
    np.testing.assert_array_equal(gram.to_numpy(), KERNEL.gram(CORPUS))
    assert verify_gram(url).is_good


def test_a_failure_that_stays_ends_in_one_sentence_and_goes_on_later(url: str, proxy: Proxy) -> None:
    fault = proxy.add(Fault("PUT", "tiles/c/0/1", 1000, status=500))
    with pytest.raises(TileFailedError) as failed:
        build_gram(KERNEL, CORPUS, url, block_rows=10, retries=1)
    assert (failed.value.url, failed.value.tile, failed.value.tries) == (url, (0, 1), 2)
    assert "500" in failed.value.problem
    assert "\n" not in str(failed.value)
    assert fault.hits == 2 * 5  # two tries of the task, five of each request
    proxy.faults.clear()
    resumed = ScriptedExecutor()
    build_gram(KERNEL, CORPUS, url, executor=resumed)
    assert [(task.i, task.j) for task in resumed.calls] == [(0, 1)]


def test_an_append_whose_last_answer_is_lost_has_arrived(url: str, proxy: Proxy) -> None:
    """Asked again, the server says that somebody changed the document; that was us."""
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    lost = [proxy.add(Fault("PUT", f"{url.rpartition('/')[2]}/{name}", 1, cut=0)) for name in DOCUMENTS]
    assert append_gram(url, corpus(3, seed=5)).status().n_segments == 2
    assert [fault.hits for fault in lost] == [1, 1]
    assert verify_gram(url).is_good


def test_a_server_that_is_down_is_no_refusal(url: str, proxy: Proxy) -> None:
    """What may pass must not end a task for good: it is an error that executors try again."""
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    proxy.add(Fault("GET", "", 1000, status=503))
    with pytest.raises(StorageUnavailableError, match=r"did not answer as it should.*run it again"):
        StoredGram.open(url)


def test_a_refusal_is_not_tried_again(url: str, proxy: Proxy) -> None:
    fault = proxy.add(Fault("GET", "zarr.json", 1000, status=403))
    with pytest.raises(StoreError) as caught:
        StoredGram.open(url)
    assert refusal_number(caught.value) == errno.EACCES
    assert fault.hits == 1


def test_a_tile_that_is_denied_is_missing_and_never_nan(url: str, proxy: Proxy) -> None:
    gram = build_gram(KERNEL, CORPUS, url, block_rows=10)
    proxy.add(Fault("GET", "tiles/c/0/1", 1, status=404))
    with pytest.raises(TileCorruptError) as corrupt:
        gram.to_numpy()
    assert corrupt.value.tile == (0, 1)
    assert corrupt.value.problem == "it is missing"
    assert np.isfinite(gram.to_numpy()).all()  # the server has come to its senses
    proxy.add(Fault("GET", "rows/0/symbols/c", 1, status=404))
    with pytest.raises(StoreDamagedError) as damaged:
        StoredGram.open(url).row_corpus  # noqa: B018 - reading it is the test
    assert damaged.value.problem == "block 0: rows/0/symbols is missing"
    proxy.add(Fault("GET", "rows/0/lengths/c", 1, status=404))
    with pytest.raises(StoreDamagedError):
        StoredGram.open(url)


def test_a_store_that_is_denied_is_not_built_over(url: str, proxy: Proxy) -> None:
    """A false 404 for the root document looks like no store at all; the list of objects knows better."""
    build_gram(KERNEL, CORPUS, url, block_rows=10)
    proxy.add(Fault("GET", "zarr.json", 2, status=404))
    executor = ScriptedExecutor()
    gram = build_gram(KERNEL, CORPUS, url, block_rows=10, executor=executor)
    assert executor.calls == []
    np.testing.assert_array_equal(gram.to_numpy(), KERNEL.gram(CORPUS))
