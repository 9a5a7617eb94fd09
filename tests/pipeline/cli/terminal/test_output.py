"""Lines within 80 columns, and paths as people see them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gramline.pipeline.cli.terminal.output import WIDTH, folded, say_folded, say_next, say_pairs, say_table, short_path


def test_a_short_line_stays_as_it_is() -> None:
    assert folded("x.zarr: 3 of 4  tiles") == "x.zarr: 3 of 4  tiles"


def test_a_long_path_is_broken_after_a_slash_and_a_long_name_anywhere() -> None:
    path = "/".join(["", "a" * 30, "b" * 30, "c" * 30])
    assert folded(path).split("\n") == [f"/{'a' * 30}/{'b' * 30}/", f"  {'c' * 30}"]
    lines = folded("s3://" + "d" * 200).split("\n")
    assert max(map(len, lines)) <= WIDTH
    assert "".join(line.strip() for line in lines) == "s3://" + "d" * 200


def test_values_go_on_below_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    say_pairs({"a": "x", "store": "y" * 74, "empty": ""})
    say_folded("matrix  ", "z " * 40)
    assert capsys.readouterr().out.splitlines() == [
        "a      x",
        f"store  {'y' * 73}",
        "       y",
        "empty",
        f"matrix  {'z ' * 36}".rstrip(),
        f"        {'z ' * 4}".rstrip(),
    ]


def test_paths_are_shown_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert short_path(str(tmp_path / "cache" / "x.zarr")) == "cache/x.zarr"
    assert short_path(f"{tmp_path}-2/x.zarr") == f"{tmp_path}-2/x.zarr"
    assert short_path("s3://bucket/x.zarr") == "s3://bucket/x.zarr"


def table_of(capsys: pytest.CaptureFixture[str], *arguments: Any, **options: Any) -> list[str]:
    say_table(*arguments, **options)
    return capsys.readouterr().out.splitlines()


def test_a_table_breaks_between_words_only(capsys: pytest.CaptureFixture[str]) -> None:
    header = ["set", "learner", "default", "best of its grid", "the best setting"]
    row = ["sales log", "hidden-markov-perceptron, dual", "14.06", "13.75", "ridge 0.01 transition ridge 1000"]
    lines = table_of(capsys, header, [row], n_left=2, texts=(4,))
    assert max(map(len, lines)) <= WIDTH
    words = {word for line in lines for word in line.split()}
    assert words >= {"hidden-markov-perceptron,", "transition", "default"}
    assert all(line == line.rstrip() for line in lines)


def test_a_table_that_is_too_wide_goes_on_below(capsys: pytest.CaptureFixture[str]) -> None:
    header = ["name", *(f"column-number-{k}" for k in range(9))]
    lines = table_of(capsys, header, [["first", *map(str, range(9))]], "a title")
    assert max(map(len, lines)) <= WIDTH
    assert "".join(lines).count("first") == 3
    assert "".join(lines).count("a title") == 1
    assert {word for line in lines for word in line.split()} >= {*header[1:], *map(str, range(9))}


def test_a_word_that_is_wider_than_a_line_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    lines = table_of(capsys, ["path", "n"], [["x" * 200, "1"]])
    assert max(map(len, lines)) <= WIDTH
    assert "".join(lines).count("x") == 200


def test_what_to_type_next_stands_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    say_next("gramline one", "gramline two")
    assert capsys.readouterr().out == "next    gramline one\n        gramline two\n"
