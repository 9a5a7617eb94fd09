"""Options of tables: their types are those that the job file declares, and a command gets what was given, at once."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from gramline.pipeline.cli.job_file.file import OptionValues, load_job
from gramline.pipeline.cli.job_file.options import certificate_options, table_option, takes_given, together
from gramline.pipeline.errors import InputError

HEARD: list[OptionValues] = []


@click.command()
@table_option("folds.count", "--folds")
@table_option("gram.dtype", "--dtype")
@table_option("cluster.memory_limit", "--memory-limit")
@table_option("cluster.inline", "--inline/--cluster")
@table_option("kernel.c", "--c", type=float)
@takes_given
def command(given: OptionValues) -> None:
    HEARD.append(given)


def heard(*arguments: str) -> OptionValues:
    HEARD.clear()
    assert CliRunner().invoke(command, arguments, catch_exceptions=False).exit_code == 0
    return HEARD[0]


def test_only_what_was_given_is_handed_on() -> None:
    assert heard() == OptionValues()
    given = heard("--folds", "3", "--memory-limit", "2GiB", "--cluster", "--c", "0.5")
    assert given.tables == {
        "folds": {"count": 3},
        "cluster": {"memory_limit": 2 << 30, "inline": False},
        "kernel": {"c": 0.5},
    }
    assert given.of("gram") == {}
    job = load_job(None, given)
    assert (job.folds.count, job.cluster.memory_limit, job.cluster.inline, job.gram.dtype) == (
        3,
        2 << 30,
        False,
        "float64",
    )


@pytest.mark.parametrize("arguments", [("--folds", "1"), ("--folds", "x"), ("--dtype", "int8")])
def test_the_type_is_the_declared_one(arguments: tuple[str, str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2


def test_a_size_is_refused_in_our_words() -> None:
    with pytest.raises(InputError, match="--memory-limit must be a size such as 2GiB or 500MB, got 'much'"):
        CliRunner().invoke(command, ["--memory-limit", "much"], catch_exceptions=False)


def test_plain_text_comes_from_an_option_only() -> None:
    seen: list[OptionValues] = []
    connected = click.command()(together(certificate_options)(lambda given: seen.append(given)))
    CliRunner().invoke(connected, ["--insecure-plain-text", "--tls-ca", "ca.pem"], catch_exceptions=False)
    assert seen == [OptionValues({"cluster": {"tls_ca": "ca.pem"}}, insecure_plain_text=True)]
