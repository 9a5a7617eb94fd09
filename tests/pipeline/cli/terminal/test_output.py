"""Lines within 80 columns, and paths as people see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.cli.terminal.output import WIDTH, folded, say_folded, say_pairs, short_path


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
