"""A kernel from command-line options or from the [kernel] table of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gramline.kernels.catalogue import KERNELS
from gramline.pipeline.cli.job_file.file import PARTS, JobFile, kernel_part, merged
from gramline.pipeline.cli.job_file.options import table_option, together
from gramline.pipeline.cli.terminal.notation import parse_record, parse_settings
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.kernel_choice import REACH, KernelChoice, choose_kernel
from gramline.pipeline.gram.spec import DEFAULT_KERNELS

kernel_options = together(
    table_option(
        *("kernel.name", "--kernel"),
        metavar="NAME",
        help=f"{', '.join(KERNELS)}, also NAME:key=value,... [default: the one for the corpus]",
    ),
    table_option("kernel.c", "--c", type=float, help="Weight of one matched position, above 0."),
    table_option(
        *("kernel.reach", "--reach"),
        metavar="NUMBER|auto",
        help="Weight of one matching neighbour; auto: neighbours make half of the matrix.",
    ),
    table_option("kernel.gap", "--gap", type=float, help="Weight of a skipped position, 0 to 1."),
    table_option(
        *("kernel.observation", "--observation"),
        metavar="NAME:...",
        help="identity, linear, polynomial:degree=2,normalized=true, gaussian:gamma=0.5, substitution:blosum62 (or "
        "blosum45, blosum80, pam120, pam250, file=matrix.json), or a sum: 'linear:normalized=true + 0.5 * "
        "polynomial:degree=3'.",
    ),
    table_option(
        *("kernel.prior", "--prior"),
        metavar="NAME",
        help="uniform, empirical:smoothing=1, tabulated, learned:learner=kernel-crf,dual=false,folds=5.",
    ),
    table_option(
        "kernel.label_kernel", "--label-kernel", metavar="FILE", help="JSON file with a labels x labels matrix."
    ),
)


def kernel_options_of(job: JobFile) -> dict[str, Any]:
    """What options say of the kernel, as a job file would; several values of a reach are a list."""
    written: Mapping[str, Any] = job.given.of("kernel")
    given = parse_record(written["name"], "the kernel") if "name" in written else {}
    for key, value in written.items():
        if key == REACH:
            values = parse_settings(value)
            given[key] = values if len(values) > 1 else values[0]
        elif key != "name":
            given[key] = kernel_part(value, key, Path(), job.files) if key in PARTS else value
    return given


def kernel_from(job: JobFile, corpus: Corpus) -> KernelChoice:
    """The kernel that the options and the job file describe together, for a corpus; its default if they name none."""
    listed, given = job.kernel, kernel_options_of(job)
    with job.locating("kernel", given, key="name"):
        return choose_kernel(merged(listed, given, DEFAULT_KERNELS[corpus.kind]), corpus)
