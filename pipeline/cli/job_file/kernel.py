"""A kernel from command-line options or from the [kernel] table of a job file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import KERNELS, from_dict
from gramline.pipeline.cli.job_file.file import JobFile
from gramline.pipeline.cli.terminal.notation import parse_record, read_matrix

F = TypeVar("F", bound=Callable[..., Any])

DEFAULTS = {  # by kind of corpus
    "sequences": "sequence-labeling",
    "trees": "tree-labeling",
    "dags": "dag-labeling",
    "parses": "subset-tree",
    "tagged": "tagging",
}


def kernel_options(command: F) -> F:
    """Adds the options of `kernel_from`."""
    for option in reversed(
        [
            click.option(
                "--kernel",
                metavar="NAME",
                help=f"{', '.join(KERNELS)}, also NAME:key=value,... [default: the one for the corpus]",
            ),
            click.option("--c", type=float, help="Weight of one matched position, above 0."),
            click.option("--gap", type=float, help="Weight of a skipped position, 0 to 1."),
            click.option(
                "--observation",
                metavar="NAME:...",
                help="identity, linear, polynomial:degree=2,normalized=true, gaussian:gamma=0.5, "
                "substitution:file=matrix.json",
            ),
            click.option("--prior", metavar="NAME", help="uniform, empirical:smoothing=1, tabulated."),
            click.option("--label-kernel", metavar="FILE", help="JSON file with a labels x labels matrix."),
        ]
    ):
        command = option(command)
    return command


def kernel_from(
    job: JobFile,
    kind: str,
    *,
    kernel: str | None,
    c: float | None,
    gap: float | None,
    observation: str | None,
    prior: str | None,
    label_kernel: str | None,
) -> Kernel:
    """The kernel that the options and the job file describe together; that of a corpus of `kind` if they name none."""
    description = job.only("kernel")
    given: dict[str, Any] = {} if kernel is None else parse_record(kernel, "the kernel")
    if kernel is not None and description.get("name") != given["name"]:
        description = {}  # another kernel on the command line does not inherit the file's parameters
    given |= {key: value for key, value in {"c": c, "gap": gap}.items() if value is not None}
    if observation is not None:
        given["observation"] = parse_record(observation, "the observation kernel")
    if prior is not None:
        given["prior"] = parse_record(prior, "the prior")
    if label_kernel is not None:
        given["label_kernel"] = read_matrix(label_kernel, "the label kernel")
    description = {"name": DEFAULTS[kind]} | description | given
    with job.locating("kernel", given, key="name"):
        chosen = from_dict(description, Kernel)  # type: ignore[type-abstract]
        chosen.require_kind(kind)
    return chosen
