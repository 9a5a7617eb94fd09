"""gramline report, and the report that the demo ends with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any


def test_a_run_as_a_page(gramline: Any, gram: Path, tmp_path: Path) -> None:
    run = tmp_path / "cv.run"
    assert gramline("cv", gram, "--set", "rounds=1,3", "--folds", "2", "-o", run, "--inline").code == 0
    told = gramline("report", run)
    assert (told.code, told.err) == (0, "")
    assert "report written to cv.run/report.html" in told.out
    page = (run / "report.html").read_text("utf-8")
    assert "Every tile was there already" in page
    assert "labeling-perceptron(rounds=3)" in re.sub("<[^>]+>", "", page)
    assert "the run was made from a Gram matrix without its corpus" in page  # no features, no baselines
    assert "next    open " in told.out
    assert "gramline fit --from-run cv.run\n" in told.out
    other = gramline("report", run, "-o", tmp_path / "page.html", "--json").json
    assert other["bytes"] == (tmp_path / "page.html").stat().st_size


def test_what_is_not_a_run_is_refused(gramline: Any, gram: Path) -> None:
    answer = gramline("report", gram)
    assert answer.code == 2
    assert "is not a run; give the folder that `gramline cv` wrote" in answer.error


def test_the_demo_ends_with_a_report(gramline: Any, tmp_path: Path) -> None:
    told = gramline("demo", "--folder", tmp_path / "out", "--sentences", "20", "--inline", "--json").json
    page = Path(told["report"]).read_text("utf-8")
    assert Path(told["report"]) == tmp_path / "out" / "report.html"
    for part in ("good", "wrong", "curves", "gram", "tiles", "repeat"):
        assert f'id="{part}"' in page
    assert f"{told['evaluation']['accuracy']:.4f}" in page
    again = gramline("demo", "--folder", tmp_path / "out", "--sentences", "20", "--inline", "--json").json
    assert (again["computed"], Path(again["report"]).is_file()) == (0, True)
