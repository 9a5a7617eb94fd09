"""Lines about a training that goes on, and silence once it has ended."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from gram_samples import KERNEL, corpus

from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.read_progress import telling_reads


def test_it_tells_passes_until_the_end(tmp_path: Path) -> None:
    gram = build_gram(KERNEL, corpus(14), tmp_path / "a.zarr", block_rows=16)
    expected = f"{2 * gram.layout.n_tiles:,} tiles read, 2.0 passes over the {gram.layout.n_tiles} stored ones"
    told = threading.Event()

    def say(line: str) -> None:
        if line.startswith(expected):
            told.set()

    with telling_reads(gram, say, every=0.01):
        for _ in range(2):
            gram.matmul(np.ones((gram.shape[1], 1)))
        assert told.wait(timeout=60)
    assert "read-progress" not in {thread.name for thread in threading.enumerate()}
