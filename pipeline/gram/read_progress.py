"""Tiles read so far, told now and then while something trains; tested in test_stored.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

from gramline.pipeline.events import Listener, TilesRead
from gramline.pipeline.gram.stored import StoredGram

REPORT_SECONDS = 1.0  # between two events about a training


@contextmanager
def report_reads(gram: StoredGram, progress: Listener, every: float = REPORT_SECONDS) -> Iterator[None]:
    """Report the tiles read so far every so many seconds until the block ends."""
    ended = Event()
    begin, before = perf_counter(), gram.tile_reads
    tile_bytes = gram.dtype.itemsize * gram.layout.rows.block_rows * gram.layout.cols.block_rows

    def report() -> None:
        while not ended.wait(every):
            reads = gram.tile_reads - before
            progress(TilesRead(reads, gram.layout.n_tiles, reads * tile_bytes / (perf_counter() - begin)))

    reporter = Thread(target=report, name="read-progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        ended.set()
        reporter.join()
