"""The cache: found by what decides the numbers, also after an append; a store in use is never deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL, corpus, sentences
from tolerances import assert_close

from gramline.kernels import SequenceLabeling
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.pipeline import Corpus, append_gram
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.build import StoreChoices
from gramline.pipeline.gram.cache import GramCache, LeadingGram
from gramline.pipeline.gram.missing import compute_missing

OTHER = SequenceLabeling(c=0.3)


def fill(cache: GramCache, kernel: SequenceLabeling = KERNEL, found: Corpus | None = None) -> str:
    packed = (found or corpus()).packed()
    with cache.using(kernel, packed, StoreChoices(block_rows=16), made_from="here") as gram:
        compute_missing(gram.store, InlineExecutor())
        return Path(gram.path).parent.name


def age(cache: GramCache, name: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(cache.entry(name).folder / "used", (then, then))


def test_the_same_kernel_and_corpus_are_found_again_and_others_are_not(tmp_path: Path) -> None:
    cache = GramCache(tmp_path)
    name = fill(cache)
    with cache.using(KERNEL, corpus().packed()) as gram:  # another block size was asked for: speed, not numbers
        assert gram.status().is_complete
        assert_close(gram.to_numpy(), KERNEL.gram(corpus()))
    for kernel, found in ((OTHER, corpus()), (KERNEL, corpus(seed=1))):
        assert fill(cache, kernel, found) != name
    with cache.using(KERNEL, corpus().packed(), StoreChoices(dtype="float32")) as gram:
        assert not gram.status().n_present
    assert len(cache.entries()) == 4
    made = cache.entry(name).made
    assert (made["from"], made["structures"]) == ("here", 12)


def test_a_store_that_was_appended_to_serves_the_corpus_it_began_with(tmp_path: Path) -> None:
    cache = GramCache(tmp_path)
    name = fill(cache)
    more = Corpus.from_sequences(*sentences(7, 9), labels=["B", "O"])
    append_gram(cache.entry(name).store, more)
    with cache.using(KERNEL, corpus().packed()) as gram:
        assert isinstance(gram, LeadingGram)
        assert gram.status().is_complete
        expected = DenseGram.of(KERNEL, corpus())
        assert_close(gram.to_numpy(), expected.matrix)
        W = np.random.default_rng(0).normal(size=(gram.shape[0], 2))
        assert_close(gram.matmul(W), expected.matrix @ W)
        labels = corpus().labels
        assert gram.labels == labels
        ours, theirs = (LabelingPerceptron(5).fit(found, labels) for found in (gram, expected))
        assert np.array_equal(ours.alpha_, theirs.alpha_)
        with pytest.raises(StoreError, match="no block that ends after structure 1"):
            LeadingGram(gram.store, 1)


def test_a_store_in_use_stays(tmp_path: Path) -> None:
    cache = GramCache(tmp_path)
    used, idle = fill(cache), fill(cache, OTHER)
    with cache.using(KERNEL, corpus().packed()):
        assert cache.entry(used).is_in_use()
        assert not cache.entry(idle).is_in_use()
        told = cache.collect(everything=True, dry_run=True)
        assert ([name for name, _ in told.removed], told.in_use) == ([idle], (used,))
        assert len(cache.entries()) == 2
        freed = cache.collect(everything=True)
        assert freed == told
        assert freed.bytes > 0
    assert [entry.name for entry in cache.entries()] == [used]
    assert cache.collect(everything=True).in_use == ()
    assert list(tmp_path.iterdir()) == []


def test_a_store_used_by_another_process_stays(tmp_path: Path) -> None:
    import subprocess
    import sys

    cache = GramCache(tmp_path)
    name = fill(cache)
    lock = cache.entry(name).folder / "lock"
    hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert cache.collect(everything=True).in_use == (name,)
        other.kill()
    assert cache.collect(everything=True).in_use == ()


def test_what_nobody_used_for_long_goes_first(tmp_path: Path) -> None:
    cache = GramCache(tmp_path)
    old, young = fill(cache), fill(cache, OTHER)
    age(cache, old, 5000)
    age(cache, young, 100)
    assert [name for name, _ in cache.collect(older_than=1000, dry_run=True).removed] == [old]
    assert cache.collect(older_than=10_000).removed == ()
    total = sum(entry.bytes for entry in cache.entries())
    assert cache.collect(keep_bytes=total).removed == ()
    assert [name for name, _ in cache.collect(keep_bytes=total - 1).removed] == [old]


def test_unfinished_and_broken_stores(tmp_path: Path) -> None:
    cache = GramCache(tmp_path)
    whole = fill(cache)
    with cache.using(OTHER, corpus().packed()) as gram:
        half = Path(gram.path).parent.name
    broken = fill(cache, KERNEL, corpus(seed=4))
    (cache.entry(broken).folder / "gram.zarr" / "zarr.json").write_text("{")
    assert cache.entry(broken).status() is None
    assert {name for name, _ in cache.collect(incomplete=True).removed} == {half, broken}
    assert [entry.name for entry in cache.entries()] == [whole]


def test_names_that_fit_nothing_and_places_that_are_no_folder(tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "no store whose name begins with 'x'"), ("s3://bucket/cache", "a local folder")):
        with pytest.raises(InputError, match=said):
            GramCache(folder).entry("x")
    assert GramCache(tmp_path / "nowhere").entries() == []
