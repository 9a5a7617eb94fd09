"""Reports: what the page says, that it loads nothing, and what a real browser makes of it."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from html.parser import HTMLParser
from pathlib import Path

import pytest
from gram_samples import KERNEL

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.errors import InputError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.reporting.run_report import write_run_report


class Outline(HTMLParser):
    """Ids, tags and text of a page; fails on tags that do not nest."""

    VOID = frozenset(("meta", "br", "img", "link", "wbr"))

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
    ids = {attributes["id"] for tag, attributes in outline.tags if "id" in attributes and tag != "lineargradient"}
    assert ids == {"good", "wrong", "next", "settings", "nested", "curves", "calibration", "gram", "tiles", "repeat"}
    links = {attributes["href"] for tag, attributes in outline.tags if tag == "a"}
    assert links == {f"#{name}" for name in ids}


def test_the_first_screen_compares_with_the_baselines_of_the_run(outline: Outline, run: Path) -> None:
    summary = RunFolder(run).read_json("results.json")
    first = outline.text[: outline.text.index("Confusion matrix")]
    names = [row["name"] for row in summary["baselines"]["rows"]]
    assert names[0] == "hidden Markov perceptron"
    for name, scores in [
        *((row["name"], row["scores"]) for row in summary["baselines"]["rows"]),
        ("majority label", summary["majority"]["scores"]),
    ]:
        assert name in first
        assert f"{scores['accuracy']['mean']:.4f}" in first
    assert "strongest baseline" in first
    assert re.search(r"[\d,]+ of [\d,]+ positions are wrong", first)


def test_runs_written_before_have_no_baselines_and_say_so(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    summary = RunFolder(copy).read_json("results.json")
    del summary["baselines"]
    RunFolder(copy).write_json("results.json", summary)
    text = write_run_report(copy).read_text("utf-8")
    assert "This run has no other baselines" in text
    assert "majority label (" in text
    del summary["majority"]
    RunFolder(copy).write_json("results.json", summary)
    assert "There is no baseline to compare with." in write_run_report(copy).read_text("utf-8")


def test_leftovers_of_an_edited_job_are_not_shown(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    before = RunFolder(copy).read_json("results.json")
    data = JobData.of_corpus(Corpus.load(copy / "corpus.parquet"), "words.parquet")
    edited = Job((KERNEL,), (Variant(0, "labeling-perceptron", {"rounds": 3}),), FoldSpec(3, seed=1))
    cache = GramCache(run.parent / "cache")
    run_job(edited, data, RunFolder(copy), JobSettings(cache), executor=lambda: nullcontext(InlineExecutor()))
    after = RunFolder(copy).read_json("results.json")
    assert (len(before["stores"]), len(after["stores"])) == (2, 1)
    assert {unit["learner"] for unit in before["units"]} == {"labeling-perceptron", "gaussian-process"}
    assert {unit["learner"] for unit in after["units"]} == {"labeling-perceptron"}
    assert after["baselines"] == before["baselines"]  # the folds are the same: nothing is trained again
    text = write_run_report(copy).read_text("utf-8")
    assert "gaussian-process" not in text
    assert 'id="settings"' not in text  # there is one only
    n_tiles = {store["tiles"] for store in after["stores"]}
    assert f"{n_tiles.pop():,} on 1 worker process" in text


def test_the_page_says_what_the_run_found(outline: Outline, run: Path) -> None:
    summary = RunFolder(run).read_json("results.json")
    for setting in summary["settings"]:
        scores = setting["scores"]["accuracy"]
        assert f"{scores['mean']:.4f}\u00a0±\u00a0{scores['deviation']:.4f}" in outline.text
    best = summary["settings"][summary["best"]]
    assert re.search(rf"★\u00a0{re.escape(best['learner'])}", outline.text)
    for name, version in summary["versions"].items():
        assert name in outline.text
        assert version in outline.text
    assert "path = 'words.parquet'" in outline.text
    assert summary["fingerprint"] in outline.text
    assert f"{summary['nested']['mean']['accuracy']:.4f}" in outline.text


def test_the_page_is_one_file_that_loads_nothing(outline: Outline, run: Path, nasty: str) -> None:
    text = (run / "report.html").read_text("utf-8")
    assert not {tag for tag, _ in outline.tags} & {"link", "iframe", "object"}
    assert [attributes for tag, attributes in outline.tags if tag == "script"] == [{}]  # one, and it is in the page
    assert not re.search(r"fetch|XMLHttpRequest|import\(|eval|innerHTML", text)
    places = re.findall(r"""(?:href|src|url)\s*[=(]\s*["']?([^"')\s>]+)""", text)
    assert places
    assert all(place.startswith(("#", "data:image/png;base64,")) for place in places), places
    assert nasty not in text
    assert nasty in outline.text


def test_wrong_labels_stand_beside_the_right_ones(run: Path, outline: Outline) -> None:
    text = (run / "report.html").read_text("utf-8")
    wrong = re.findall(r'<div class="wrong"><b>[^<]*</b><span>([^<]*)</span><span class="guess">([^<]*)</span>', text)
    assert wrong
    assert all(gold != guess for gold, guess in wrong)
    shares = [int(share) for share in re.findall(r"wrong \((\d+)%\)", outline.text)]
    assert shares == sorted(shares, reverse=True)


def test_curves_say_which_set_they_are_of(outline: Outline) -> None:
    assert "Solid lines are of the training set" in outline.text
    assert "The dashed line is of the held-out set" in outline.text or "gaussian-process" in outline.text
    assert "On the training part of every fold, per sweep" in outline.text


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
