"""Reports: what the page says, that it loads nothing, and what a real browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from gram_samples import KERNEL
from png_pixels import unfiltered

from gramline.kernels import SequenceLabeling
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.solve import JobSettings
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.reporting.run_report import write_run_report

NASTY = "<script>alert(1)</script>&\"'"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
BEST_ROW, BORDER, WRONG = (230, 240, 250), (255, 140, 26), (253, 236, 234)  # colours that stand for content


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with several kernels and learners, probabilities, inner folds and unpleasant words."""
    draw = np.random.default_rng(0)
    words = ["apple", "bread", NASTY, "drum"]
    X = [[str(word) for word in draw.choice(words, draw.integers(2, 7))] for _ in range(18)]
    y = [[("B" if word in words[:2] and draw.random() < 0.8 else "O") for word in sentence] for sentence in X]
    found = Corpus.from_sequences(X, y, labels=["B", "O"])
    data = JobData(found.fingerprint, found.ids, found.tokens, found.labels, "words.parquet", found)
    variants = (
        *(Variant(k, "labeling-perceptron", {"rounds": n}) for k in (0, 1) for n in (1, 3)),
        Variant(0, "gaussian-process", {"max_sweeps": 4}),
    )
    job = Job((KERNEL, SequenceLabeling(c=0.4)), variants, FoldSpec(3, seed=1), inner_folds=2)
    folder = tmp_path_factory.mktemp("report")
    run_job(
        job,
        data,
        RunFolder(folder / "run"),
        JobSettings(
            cache=GramCache(folder / "cache"),
            block_rows=20,
            description={"job_file": "[corpus]\npath = 'words.parquet'\n"},
        ),
        executor=lambda: nullcontext(InlineExecutor()),
    )
    write_run_report(folder / "run")
    return folder / "run"


class Outline(HTMLParser):
    """Ids, tags and text of a page; fails on tags that do not nest."""

    VOID = frozenset(("meta", "br", "img", "link"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def outline(run: Path) -> Outline:
    parsed = Outline()
    parsed.feed((run / "report.html").read_text("utf-8"))
    assert parsed.open == []
    return parsed


def test_every_section_is_there_and_linked(outline: Outline) -> None:
    ids = {attributes["id"] for _, attributes in outline.tags if "id" in attributes}
    assert ids >= {
        "summary",
        "settings",
        "nested",
        "curves",
        "confusion",
        "sentences",
        "calibration",
        "gram",
        "tiles",
        "repeat",
    }
    links = {attributes["href"] for tag, attributes in outline.tags if tag == "a"}
    assert links == {f"#{name}" for name in ids - {"summary"}}


def test_the_page_says_what_the_run_found(outline: Outline, run: Path) -> None:
    summary = RunFolder(run).read_json("results.json")
    for setting in summary["settings"]:
        scores = setting["scores"]["accuracy"]
        assert f"{scores['mean']:.4f}\u00a0±\u00a0{scores['deviation']:.4f}" in outline.text
    best = summary["settings"][summary["best"]]
    assert re.search(rf"★ {re.escape(best['learner'])}", outline.text)
    for name, version in summary["versions"].items():
        assert name in outline.text
        assert version in outline.text
    assert "path = 'words.parquet'" in outline.text
    assert summary["fingerprint"] in outline.text
    assert f"{summary['nested']['mean']['accuracy']:.4f}" in outline.text


def test_the_page_is_one_file_that_loads_nothing_and_runs_nothing(outline: Outline, run: Path) -> None:
    text = (run / "report.html").read_text("utf-8")
    assert not {tag for tag, _ in outline.tags} & {"script", "link", "iframe", "object"}
    places = re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?([^"')\s>]+)""", text)
    assert places
    assert all(place.startswith(("#", "data:image/png;base64,")) for place in places)
    assert NASTY not in text
    assert NASTY in outline.text


def test_wrong_labels_stand_beside_the_right_ones(outline: Outline) -> None:
    wrong = [attributes for _, attributes in outline.tags if attributes.get("class") == "token wrong"]
    assert wrong
    assert "✗ B" in outline.text or "✗ O" in outline.text


def test_a_run_whose_stores_were_cleared_still_has_a_report(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    content = (copy / "results.json").read_text()
    (copy / "results.json").write_text(content.replace(str(run.parent / "cache"), str(tmp_path / "gone")))
    written = write_run_report(copy, tmp_path / "other.html")
    assert 'id="gram"' not in written.read_text("utf-8")
    assert 'id="settings"' in written.read_text("utf-8")
    with pytest.raises(InputError, match="is not a run"):
        write_run_report(tmp_path / "nowhere")


def browse(page: Path, *options: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={cwd / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=True)


PROBE = """<script>
  const boxes = [...document.querySelectorAll('table, svg, image, .token')].map(e => e.getBoundingClientRect());
  document.body.dataset.seen = JSON.stringify({
    visible: boxes.filter(b => b.width > 5 && b.height > 5).length, all: boxes.length,
    wide: document.documentElement.scrollWidth, view: window.innerWidth,
    loaded: performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length});
</script>"""


@needs_chromium
@pytest.mark.parametrize("width", [1000, 390])
def test_a_real_browser_lays_out_the_whole_page(run: Path, tmp_path: Path, width: int) -> None:
    """A probe appended to a copy of the page tells what the browser made of it."""
    page = tmp_path / "probe.html"
    page.write_text((run / "report.html").read_text("utf-8").replace("</body>", PROBE + "</body>"), "utf-8")
    found = browse(page, f"--window-size={width},2400", "--dump-dom", cwd=tmp_path)
    assert not re.findall(r".*CONSOLE.*", found.stderr)
    told = re.search(r'data-seen="([^"]+)"', found.stdout)
    assert told is not None
    seen = json.loads(told[1].replace("&quot;", '"'))
    assert seen["all"] > 30
    assert seen["visible"] == seen["all"]
    assert seen["wide"] <= seen["view"] <= max(width, 500)  # nothing but tables scrolls sideways
    assert seen["loaded"] == 0


@needs_chromium
def test_a_broken_page_would_be_noticed(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text(
        (run / "report.html").read_text("utf-8").replace("</body>", "<script>no()</script></body>"), "utf-8"
    )
    assert "CONSOLE" in browse(page, "--dump-dom", cwd=tmp_path).stderr


@needs_chromium
@pytest.mark.parametrize(("section", "colour"), [("settings", BEST_ROW), ("gram", BORDER), ("sentences", WRONG)])
def test_a_screenshot_shows_the_content(run: Path, tmp_path: Path, section: str, colour: tuple[int, int, int]) -> None:
    only = f"<style>h1, p, nav, #summary, section:not(#{section}) {{ display: none }}</style></head>"
    page, shot = tmp_path / "one.html", tmp_path / "shot.png"
    page.write_text((run / "report.html").read_text("utf-8").replace("</head>", only), "utf-8")
    browse(page, "--window-size=600,560", f"--screenshot={shot}", cwd=tmp_path)
    pixels = unfiltered(shot.read_bytes())
    assert pixels.shape == (560, 600, 3)
    assert (pixels == colour).all(axis=2).sum() > 200
    assert (pixels.astype(int).sum(axis=2) < 200).sum() > 50  # there is ink
