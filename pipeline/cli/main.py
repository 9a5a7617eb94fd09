"""The `gramline` command: finds the command, runs it, turns what went wrong into one line and an exit code."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from gramline.pipeline.cli.terminal.failures import FAILED, Failure, say_warnings_as_notes, to_failure
from gramline.pipeline.cli.terminal.lazy_group import Commands, LazyGroup
from gramline.pipeline.cli.terminal.shells import VARIABLE, answer_shell
from gramline.pipeline.cli.terminal.start import say_start
from gramline.pipeline.cli.terminal.stopping import install_sigterm_handler

CLI = "gramline.pipeline.cli"
COMMANDS: Commands = {
    "demo": (f"{CLI}.demo:demo", "The whole way on built-in data, in about a minute."),
    "corpus": (
        {
            "candidates": (f"{CLI}.candidates:candidates", "The n best parses of sentences."),
            "import": (f"{CLI}.corpus:import_", "Read a file into a corpus."),
            "show": (f"{CLI}.corpus:show", "What a corpus holds."),
            "split": (f"{CLI}.corpus_parts:split", "Parts by shares, of whole structures."),
            "sample": (f"{CLI}.corpus_parts:sample", "So many structures, drawn at random."),
            "dedupe": (f"{CLI}.corpus_parts:dedupe", "Without structures that occur again."),
            "generate": (f"{CLI}.corpus:generate", "Make sentences up."),
        },
        "Read, show, split and generate corpora.",
    ),
    "gram": (
        {
            "plan": (f"{CLI}.gram_plan:plan", "What a build will take, before anything runs."),
            "build": (f"{CLI}.gram_build:build", "Compute and store a Gram matrix, or go on with one."),
            "status": (f"{CLI}.gram_store:status", "What a store holds and how much of it is done."),
            "verify": (f"{CLI}.gram_store:verify", "Read and check every tile; compute bad ones again."),
            "append": (f"{CLI}.gram_build:append", "Add structures to a Gram matrix."),
            "export": (f"{CLI}.gram_store:export", "Write the full matrix as .npy or plain Zarr."),
        },
        "Plan, build, check, grow and export Gram matrices.",
    ),
    "fit": (f"{CLI}.fit:fit", "Train a labeler, from a file or a stored Gram matrix."),
    "predict": (f"{CLI}.predict:predict", "Label new structures with a model."),
    "evaluate": (f"{CLI}.evaluate:evaluate", "Compare predicted labels with the right ones."),
    "cv": (f"{CLI}.cv:cv", "Cross-validate learners, kernels and settings."),
    "report": (f"{CLI}.report:report", "A run as one HTML page."),
    "cache": (
        {
            "ls": (f"{CLI}.cache:ls", "What is there."),
            "show": (f"{CLI}.cache:show", "One Gram matrix in full."),
            "verify": (f"{CLI}.cache:verify", "Read and check every tile."),
            "rm": (f"{CLI}.cache:rm", "Delete one Gram matrix."),
            "gc": (f"{CLI}.cache:gc", "Delete what is no longer needed."),
        },
        "Look after the Gram matrices that jobs of `cv` keep.",
    ),
    "cluster": (
        {
            "certs": (f"{CLI}.cluster:certs", "Certificates for one cluster."),
            "start": (f"{CLI}.cluster:start", "A cluster on this machine, over SSH or on Slurm."),
            "check": (f"{CLI}.cluster:check", "Whether a cluster is fit for work."),
        },
        "Start, secure and check a Dask cluster.",
    ),
    "reproduce": (f"{CLI}.reproduce:reproduce", "Repeat the papers' experiments."),
    "completion": (f"{CLI}.completion:completion", "A script that completes commands in your shell."),
}

HELP = """Gram matrices of sequences, trees and graphs as Dask tasks, stored in Zarr, and labelers trained from them.

\b
Example:
  gramline fit train.conll
  gramline evaluate train.model.zarr test.conll
  gramline predict train.model.zarr new.txt
  gramline cv train.conll --set rounds=5,20
  gramline gram build train.conll -o train.gram.zarr --c 0.8

Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 130 stopped by Ctrl-C, 143 by SIGTERM. A build or a
cross-validation that was stopped goes on where it was when the same command is given again."""


@click.group(
    "gramline",
    cls=LazyGroup,
    members=COMMANDS,
    help=HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(package_name="gramline", message="gramline %(version)s", help="Show the version.")
def gramline() -> None:
    pass


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns its exit code, after at most one line on stderr."""
    try:
        # Not `gramline.main()`: click would answer Ctrl-C and usage errors in its own words.
        with gramline.make_context("gramline", list(arguments)) as context:
            gramline.invoke(context)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has seen enough; keep Python from complaining when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - this is the place where every error ends
        failure = to_failure(error) or _internal_error(error)
        if failure.line:
            click.echo(f"gramline: error: {failure.line}", err=True)
        return failure.code
    return 0


def _internal_error(error: BaseException) -> Failure:
    traceback.print_exception(error)
    return Failure("internal error, not a mistake in your input; please report it with the lines above", FAILED)


def main() -> None:
    """The entry point of the installed command."""
    if question := os.environ.get(VARIABLE):
        sys.exit(answer_shell(gramline, question))
    install_sigterm_handler()
    say_warnings_as_notes()
    say_start(sys.argv[1:], sys.stderr)
    code = run(sys.argv[1:])
    if "obstore" in sys.modules:
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End in good order, but let no interpreter be torn down.

    Threads of obstore (0.12) may still hold on to a request of zarr's; one that comes back to an interpreter that is
    being torn down aborts the process, whose exit code is then 134 whatever the command did.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # a reader that has gone, a stream that is closed
            stream.flush()
    os._exit(code)
