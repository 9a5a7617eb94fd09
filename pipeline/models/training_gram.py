"""The Gram matrix that a labeler trains on when nobody asks for a store: in memory, computed as needed, or on disk."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

from gramline.kernels.base import Kernel
from gramline.learners.estimator import Learner
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.events import Listener, Message, silent
from gramline.pipeline.executors.choice import choose_executor
from gramline.pipeline.gram.build import GramBuild, StoreChoices
from gramline.pipeline.gram.keep import Keep
from gramline.pipeline.gram.reuse import Loan, best_loan, stores_beside
from gramline.pipeline.gram.room import free_bytes
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.store import TileStore
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.models.training_choice import Choice, choose_way

DENSE_LIMIT_BYTES = 1 << 30  # a Gram matrix up to this size is held in memory
SPARE_DISK = 0.5  # of the free disk that a temporary store may take


def fits_memory(kernel: Kernel, corpus: Corpus) -> bool:
    """Whether the Gram matrix is small enough to be held in memory."""
    return 8 * _n_rows(kernel, corpus) ** 2 <= DENSE_LIMIT_BYTES


def training_gram(
    kernel: Kernel,
    corpus: Corpus,
    learner: Learner,
    *,
    beside: str | None = None,
    progress: Listener = silent,
    **options: Any,
) -> GramOperator:
    """What `learner` trains on: a matrix in memory where it fits, else values computed when it asks for them.

    A learner that factors the matrix, or for which stored tiles are cheaper (measured on a few tiles and a sample),
    gets a store that is gone with the last who holds it; `options` are those of `build_gram`. Stores in the folder of
    the path `beside` that have this matrix, or most of it, are used. `progress` is told what was chosen, and why.
    """
    if fits_memory(kernel, corpus):
        # One core is done with it sooner than workers are asked.
        return DenseGram.of(kernel, corpus, block_rows=options.get("block_rows"))
    stores = [] if beside is None else list(stores_beside(beside))
    for store in stores:
        if store.spec == GramSpec.of(kernel, corpus.packed(), None, store.spec.dtype) and _is_complete(store):
            progress(Message(f"reading the tiles of {store.url}"))
            gram = StoredGram(store)
            gram.executor = choose_executor(options.get("client"), None, progress)
            return gram
    loan = best_loan(GramBuild(kernel, corpus, None), stores) if stores else None
    has_workers = options.get("client") is not None
    # Workers see the folder of the corpus rather than this machine's folder for temporary files.
    folder = str(Path(beside).parent) if has_workers and beside is not None else None
    choice = _choice(kernel, corpus, learner, loan)
    progress(Message(str(choice)))
    if choice.stores:
        lenders = () if loan is None else (loan.lender,)
        return temporary_gram(kernel, corpus, lenders=lenders, folder=folder, progress=progress, **options)
    if has_workers:
        return temporary_gram(kernel, corpus, keep=Keep.of("none"), folder=folder, progress=progress, **options)
    return ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=options.get("block_rows"))


def _choice(kernel: Kernel, corpus: Corpus, learner: Learner, loan: Loan | None) -> Choice:
    if learner.factors_by_tiles:
        return Choice(True, f"{learner.name} factors the matrix by tiles")
    if not _has_room(kernel, corpus):
        return Choice(False, f"the tiles would take more than {SPARE_DISK:.0%} of the free disk")
    if loan is not None:
        return Choice(True, f"{loan.lender.url} has {len(loan.tiles):,} of them")
    return choose_way(kernel, corpus, learner)


def temporary_gram(
    kernel: Kernel,
    corpus: Corpus,
    *,
    lenders: Sequence[TileStore] = (),
    client: Any = None,
    block_rows: int | None = None,
    keep: Keep | None = None,
    folder: str | None = None,
    progress: Listener = silent,
) -> StoredGram:
    """A Gram matrix in a store that is gone with the last who holds it; the workers of `client` learn from it, too."""
    executor = choose_executor(client, None, progress)
    with ExitStack() as stack:
        path = Path(stack.enter_context(TemporaryDirectory(prefix="gramline-", dir=folder))) / "training.gram.zarr"
        build = GramBuild(kernel, corpus, path, StoreChoices(block_rows=block_rows, keep=keep), lenders=lenders)
        gram = build.run(executor, progress=progress)
        gram.executor = executor
        # A Gaussian-process labeler factors it again when it predicts.
        weakref.finalize(gram, stack.pop_all().close)
    return gram


def _is_complete(store: TileStore) -> bool:
    return StoredGram(store).status().is_complete


def _n_rows(kernel: Kernel, corpus: Corpus) -> int:
    return corpus.n_positions if kernel.per_position else len(corpus)


def _has_room(kernel: Kernel, corpus: Corpus) -> bool:
    """Whether half of the matrix, its upper triangle, takes a modest part of the free disk."""
    free = free_bytes(gettempdir())
    return free is None or 4 * _n_rows(kernel, corpus) ** 2 <= SPARE_DISK * free
