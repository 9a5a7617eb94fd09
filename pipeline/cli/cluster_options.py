"""Options that say where tiles are computed; workplaces.py, which needs Dask, does what they say."""

from __future__ import annotations

from gramline.pipeline.cli.job_file.options import certificate_options, table_option, threads_option, together

cluster_options = together(
    table_option(
        "cluster.scheduler",
        "--scheduler",
        metavar="ADDRESS",
        help="Dask scheduler, tls://host:8786 or tcp://host:8786.",
    ),
    table_option("cluster.workers", "--workers", help="Local worker processes [default: one per core]."),
    threads_option,
    table_option("cluster.memory_limit", "--memory-limit", help="Memory of each worker, such as 2GiB."),
    certificate_options,
    table_option("cluster.inline", "--inline/--cluster", help="Compute in this process, without Dask."),
)
