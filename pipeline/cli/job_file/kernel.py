"""A kernel from command-line options or from the [kernel] table of a job file."""

from __future__ import annotations

from pathlib import Path

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import KERNELS
from gramline.pipeline.cli.job_file.file import PARTS, JobFile, kernel_part, merged
from gramline.pipeline.cli.job_file.options import table_option, together
from gramline.pipeline.cli.terminal.notation import parse_record
from gramline.pipeline.gram.spec import DEFAULT_KERNELS, kernel_for

kernel_options = together(
    table_option(
        *("kernel.name", "--kernel"),
        metavar="NAME",
        help=f"{', '.join(KERNELS)}, also NAME:key=value,... [default: the one for the corpus]",
    ),
    table_option("kernel.c", "--c", type=float, help="Weight of one matched position, above 0."),
    table_option("kernel.gap", "--gap", type=float, help="Weight of a skipped position, 0 to 1."),
    table_option(
        *("kernel.observation", "--observation"),
        metavar="NAME:...",
        help="identity, linear, polynomial:degree=2,normalized=true, gaussian:gamma=0.5, substitution:file=matrix.json",
    ),
    table_option("kernel.prior", "--prior", metavar="NAME", help="uniform, empirical:smoothing=1, tabulated."),
    table_option(
        "kernel.label_kernel", "--label-kernel", metavar="FILE", help="JSON file with a labels x labels matrix."
    ),
)


def kernel_from(job: JobFile, kind: str) -> Kernel:
    """The kernel that the options and the job file describe together; that of a corpus of `kind` if they name none."""
    listed, written = job.kernel, job.given.of("kernel")
    given = parse_record(written["name"], "the kernel") if "name" in written else {}
    for key, value in written.items():
        if key != "name":
            given[key] = kernel_part(value, key, Path()) if key in PARTS else value
    with job.locating("kernel", given, key="name"):
        return kernel_for(merged(listed, given, DEFAULT_KERNELS[kind]), kind)
