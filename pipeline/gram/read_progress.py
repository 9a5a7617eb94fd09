"""How far a training over stored tiles is, for every learner alike: told by the tiles it has read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

from gramline.pipeline.gram.stored import StoredGram

EVERY = 10.0  # seconds between two lines


@contextmanager
def telling_reads(gram: StoredGram, say: Callable[[str], None], every: float = EVERY) -> Iterator[None]:
    """Say a line every so often until the block ends: passes over the tiles so far, and how fast they come."""
    ended = Event()
    begin, before = perf_counter(), gram.tile_reads
    tile_bytes = gram.dtype.itemsize * gram.layout.rows.block_rows * gram.layout.cols.block_rows

    def tell() -> None:
        while not ended.wait(every):
            reads = gram.tile_reads - before
            speed = reads * tile_bytes / (perf_counter() - begin) / 1e9
            say(
                f"{reads:,} tiles read, {reads / gram.layout.n_tiles:.1f} passes over the {gram.layout.n_tiles:,} "
                f"stored ones, {speed:.1f} GB/s"
            )

    teller = Thread(target=tell, name="read-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
