"""`make docs`: the site is built without a warning, has every public name and page, and can be searched from a file."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("kernels", "learners", "pipeline")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    options = ["--fail-on-warning", "--quiet", "-c", "docs", "-d", str(target / "read")]
    job = subprocess.run(
        [sys.executable, "-m", "sphinx", *options, ".", str(target / "html")], cwd=ROOT, capture_output=True, text=True
    )
    assert (job.returncode, job.stderr) == (0, "")
    return target / "html"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_has_its_place(site: Path, package: str) -> None:
    page = (site / "docs" / "api" / f"{package}.html").read_text("utf-8")
    names = import_module(f"gramline.{package}").__all__
    assert {name for name in names if f'id="gramline.{package}.{name}"' not in page} == set()


def test_every_page_is_in_it(site: Path) -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    assert {page.stem for page in pages if not (site / page.relative_to(ROOT).with_suffix(".html")).is_file()} == set()


def test_the_search_loads_nothing_from_elsewhere(site: Path) -> None:
    page = (site / "search.html").read_text("utf-8")
    assert 'src="http' not in page
    assert "nystrom" in (site / "searchindex.js").read_text("utf-8")
