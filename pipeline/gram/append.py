"""More structures for a finished Gram matrix: they become new blocks, and only their tiles are computed."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.packing import Packable, Packed, check_packable
from gramline.learners.labels import first_unknown_label
from gramline.learners.operators.layout import BlockLayout
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.packed import packed_fingerprint
from gramline.pipeline.errors import InputError, StoreChangedError, StoreError
from gramline.pipeline.events import Listener, silent
from gramline.pipeline.executors.base import Executor
from gramline.pipeline.executors.choice import check_run, choose_executor
from gramline.pipeline.gram.missing import compute_missing
from gramline.pipeline.gram.packed_blocks import extends
from gramline.pipeline.gram.room import Room
from gramline.pipeline.gram.spec import counts_labels, has_learned_prior
from gramline.pipeline.gram.store import TileStore, absolute
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.locks import FileLock
from gramline.pipeline.storage.places import is_in_memory, is_local, local_path, memory_lock


def append_gram(
    path: str | os.PathLike[str],
    corpus: Packable | Packed,
    *,
    client: Any = None,
    executor: Executor | None = None,
    limit_bytes: int | None = None,
    retries: int = 2,
    progress: Listener = silent,
) -> StoredGram:
    """The symmetric Gram matrix at `path` with the structures of `corpus` after its own; only new tiles are computed.

    Appending the corpus that was appended last only completes it, so an interrupted append is simply run again.

    Parameters
    ----------
    path : of a symmetric store; a kernel with an EmpiricalPrior is refused, all its tiles would change
    corpus : further structures, whose labels the store must know
    client, executor, limit_bytes, retries, progress : as for `build_gram`

    Returns
    -------
    StoredGram of shape (n + m, n + m): the n rows that were there, and the m of `corpus`

    >>> import tempfile
    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, append_gram, build_gram
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = build_gram(SequenceLabeling(), Corpus.from_sequences([["a", "b"]]), f"{folder}/a.gram.zarr")
    ...     append_gram(f"{folder}/a.gram.zarr", Corpus.from_sequences([["b"]])).shape
    (3, 3)
    """
    runner = choose_executor(client, executor, progress)
    check_run(limit_bytes, retries, progress)
    check_packable(corpus)
    url = absolute(path)
    with _one_at_a_time(TileStore(url).url):
        try:
            store = _with_segment(TileStore(url), corpus)
        except StoreChangedError:
            raise StoreError(
                f"another append to {url} was faster, or a repair took this one for dead: these structures are not in",
                advice="run it again to add them",
            ) from None
    compute_missing(store, runner, limit_bytes=limit_bytes, retries=retries, progress=progress)
    return StoredGram(store)


def _with_segment(store: TileStore, corpus: Packable | Packed) -> TileStore:
    kernel = store.kernel
    _refuse_what_would_change(store, kernel)
    before = StoredGram(store).row_corpus
    _refuse_unknown_labels(store, before, corpus)
    packed = corpus if isinstance(corpus, Packed) else corpus.packed(like=before)
    if len(packed) == 0:
        raise InputError("the corpus to append is empty", advice="it needs at least one structure")
    if not extends(packed.vocabulary, before.vocabulary) or packed.vocabulary.labels != before.vocabulary.labels:
        raise StoreError(
            f"the corpus to append has another vocabulary or other labels than {store.url}",
            advice="pack it with like= the stored corpus",
        )
    fingerprint = packed_fingerprint(packed)
    if len(store.spec.rows) > 1 and store.spec.rows[-1] == fingerprint:
        return store
    ready = kernel.prepare(packed, like=before)
    layout = BlockLayout.of(kernel.row_lengths(ready), store.layout.rows.block_rows)
    _require_room(store, layout)
    return store.appended(replace(store.spec, rows=(*store.spec.rows, fingerprint)), ready, layout)


def _require_room(store: TileStore, layout: BlockLayout) -> None:
    """Refuse structures whose tiles are more than the disk has left, before anything of them is written."""
    n_new = store.keep.n_tiles(store.grown_layout(layout), store.tiles.tile_bytes) - len(store.present())
    if store.compression == "none":  # how small compressed tiles become is known when they are written
        Room.at(store.url, n_new * store.tiles.tile_bytes).require("free some space, or append fewer structures")


def _refuse_unknown_labels(store: TileStore, before: Packed, corpus: Packable | Packed) -> None:
    """A label that the store does not know would be packed as a missing one."""
    known = before.vocabulary.labels
    if not known or not isinstance(corpus, Corpus) or not set(corpus.label_names) - set(known):
        return
    if unknown := first_unknown_label(corpus.labels, known):
        structure, position, label = unknown
        raise StoreError(
            f"{store.url} has no label {label!r} ({', '.join(known)})",
            advice="rebuild the whole corpus, or leave the position without a label",
            structure=structure,
            position=position,
        )


def _refuse_what_would_change(store: TileStore, kernel: Kernel) -> None:
    if not store.layout.is_symmetric:
        advice = "only a symmetric one can be appended to"
        raise StoreError(f"{store.url} is a Gram matrix between two corpora", advice=advice)
    if counts_labels(kernel):
        which = "a learned" if has_learned_prior(kernel) else "an empirical"
        raise StoreError(
            f"the kernel of {store.url} has {which} prior: new training labels would change every finished tile",
            advice="rebuild the whole corpus",
        )


def _one_at_a_time(url: str) -> AbstractContextManager[object]:
    """Of two appends to a store on this machine the second waits until the first one's structures are in.

    Elsewhere nobody can wait for a lock that its owner may never release: there the second one to finish is refused.
    """
    if is_in_memory(url):
        return memory_lock(url)
    lock = FileLock.acquire(local_path(url) / "append.lock") if is_local(url) else None
    return lock or nullcontext()
