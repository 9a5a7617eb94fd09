"""Run inside a network namespace: builds a store on the cluster at an address, and tells in a file how far it is."""

from __future__ import annotations

import sys
from pathlib import Path

from chaos.undisturbed import BLOCK_ROWS, KERNEL

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.events import Event, TileDone
from gramline.pipeline.executors.connect import connect
from gramline.pipeline.executors.dask import DaskExecutor
from gramline.pipeline.gram.build import build_gram


def main(address: str, corpus: str, store: str, told: str) -> None:
    def heard(event: Event) -> None:
        if isinstance(event, TileDone):
            Path(told).write_text(str(event.n_done))

    with connect(address, timeout=60, insecure_plain_text=True) as client:  # on wires that nobody else has
        client.wait_for_workers(2, timeout=120)
        executor = DaskExecutor(client, insecure_plain_text=True)
        build_gram(KERNEL, Corpus.load(corpus), store, block_rows=BLOCK_ROWS, executor=executor, progress=heard)


if __name__ == "__main__":
    main(*sys.argv[1:])
