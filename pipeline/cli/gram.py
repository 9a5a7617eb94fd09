"""`gramline gram ...`: the list of commands around stored Gram matrices."""

from __future__ import annotations

import click

from gramline.pipeline.cli.terminal.lazy_group import LazyGroup

BUILDING = "gramline.pipeline.cli.gram_build"
KEEPING = "gramline.pipeline.cli.gram_store"
COMMANDS = {
    "plan": (f"{BUILDING}:plan", "What a build will take, before anything runs."),
    "build": (f"{BUILDING}:build", "Compute and store a Gram matrix, or go on with one."),
    "status": (f"{KEEPING}:status", "What a store holds and how much of it is done."),
    "verify": (f"{KEEPING}:verify", "Read and check every tile; compute bad ones again."),
    "append": (f"{BUILDING}:append", "Add structures to a Gram matrix."),
    "export": (f"{KEEPING}:export", "Write the full matrix as .npy or plain Zarr."),
}


@click.group(cls=LazyGroup, members=COMMANDS, help="Plan, build, check, grow and export Gram matrices.")
def gram() -> None:
    pass
