"""`gramline reproduce` around its experiments: what it lists, runs, skips, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gramline.pipeline.cli.main import run
from gramline.pipeline.errors import InputError
from gramline.pipeline.experiments.base import Experiment, ResultTable, Run
from gramline.pipeline.experiments.catalogue import EXPERIMENTS

BUILT_IN = ["labeling-usage", "zscore-artificial", "defaults"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Experiments that were run, each giving one small table; those of the four sets find none of them."""
    names: list[str] = []

    def small(self: Experiment, given: Run) -> list[ResultTable]:
        if self.name.startswith(("gpsl", "margins")):
            raise InputError("data holds none of its sets")
        names.append(self.name)
        return [ResultTable(f"T of {self.name}", ("a", "b"), ((given.seed, 0.5),))]

    monkeypatch.setattr(Experiment, "run", small)
    return names


@pytest.fixture
def gramline(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        written = capfd.readouterr()
        return code, written.out, written.err

    return call


def test_without_anything_it_lists(gramline: Callable[..., tuple[int, str, str]], ran: list[str]) -> None:
    code, out, _ = gramline("reproduce")
    assert code == 0
    assert all(name in out for name in EXPERIMENTS)
    assert ran == []


def test_what_is_not_there_is_skipped_with_a_sentence(
    gramline: Callable[..., tuple[int, str, str]], ran: list[str], tmp_path: Path
) -> None:
    code, out, _ = gramline("reproduce", "--all", "-o", str(tmp_path / "out"))
    assert (code, ran) == (0, BUILT_IN)
    wanted = "put conll2002_es/esp.train.first300 into the folder that --data names to run it"
    assert wanted in " ".join(out.split())
    assert "gpsl: Skipped: data holds none of its sets." in out
    assert {path.name for path in (tmp_path / "out").glob("*.json")} == {f"{name}.json" for name in BUILT_IN}
    report = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "T of zscore-artificial" in report


def test_a_data_folder_runs_all_it_has_files_for(
    gramline: Callable[..., tuple[int, str, str]], ran: list[str], tmp_path: Path
) -> None:
    for name in EXPERIMENTS["tree-reranking"].needs:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    code, out, _ = gramline("reproduce", "--data", str(tmp_path), "--seed", "7")
    assert (code, set(ran)) == (0, {"tree-reranking", *BUILT_IN})
    assert "scale" not in ran
    assert f"into {tmp_path} to run it" in " ".join(out.split())


def test_one_by_name_and_as_json(gramline: Callable[..., tuple[int, str, str]], ran: list[str]) -> None:
    code, out, _ = gramline("reproduce", "scale", "--json", "--seed", "3")
    found = json.loads(out)["scale"]
    assert (code, ran) == (0, ["scale"])
    assert found["tables"][0]["rows"] == [[3, 0.5]]
    assert found["command"] == "gramline reproduce scale --seed 3"


def test_pages_are_made_of_saved_runs(
    gramline: Callable[..., tuple[int, str, str]], ran: list[str], tmp_path: Path
) -> None:
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    out = str(tmp_path / "docs" / "out")
    assert gramline("reproduce", "scale", "-o", out, "--page", str(page))[0] == 0
    assert "## scale" in page.read_text("utf-8")
    gramline("reproduce", "labeling-usage", "-o", out)
    assert gramline("reproduce", "-o", out, "--page", str(page))[0] == 0
    assert ran == ["scale", "labeling-usage"]
    assert "## labeling-usage" in page.read_text("utf-8")


def test_wrong_usage_is_told(gramline: Callable[..., tuple[int, str, str]], ran: list[str]) -> None:
    code, _, error = gramline("reproduce", "tree-reranking")
    assert code == 2
    assert "--data is missing; name the folder that holds atis/train.trees, atis/dev.trees" in error
    code, _, error = gramline("reproduce", "--page", "page.md")
    assert code == 2
    assert "name it with -o" in error
    assert gramline("reproduce", "gpsl", "--data", ".")[0] == 2
    assert ran == []
