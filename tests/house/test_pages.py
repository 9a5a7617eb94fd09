"""The pages do what they say: every command runs and prints what stands below it; every link leads somewhere."""

from __future__ import annotations

import html
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from free_port import free_port

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "transcripts.py"
MARKDOWN = sorted(
    path.relative_to(ROOT)
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*.md")]
)
FENCED = re.compile(r"^```.*?^```$", flags=re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def load(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look for their module
    spec.loader.exec_module(module)
    return module


transcripts = load(SCRIPT)


def run_script(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own: what is printed there is all its own."""
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("page", transcripts.PAGES)
def test_commands_print_what_the_page_says(page: str, tmp_path: Path) -> None:
    """Otherwise: look at the difference, then make pages."""
    job = run_script("--check", page, folder=tmp_path)
    assert job.returncode == 0, job.stderr


@pytest.mark.parametrize("page", transcripts.PAGES)
def test_no_output_is_empty_and_none_is_wider_than_a_terminal(page: str) -> None:
    outputs = [
        block.text
        for block in transcripts.blocks_of((ROOT / page).read_text("utf-8"))
        if block.language == "text" and block.file_name is None
    ]
    assert outputs
    assert all(output.strip() for output in outputs)
    assert [line for output in outputs for line in output.splitlines() if len(line) > transcripts.WIDTH] == []


@pytest.mark.timeout(300)
def test_the_way_through_a_cluster_can_be_gone(tmp_path: Path) -> None:
    """Every command of the page, among them a `kill -9` in the middle of a cross-validation, on a port of our own."""
    text, port = (ROOT / "docs" / "cluster.md").read_text("utf-8"), "18787"
    assert text.count(port) == 3
    (tmp_path / "cluster.md").write_text(text.replace(port, str(free_port())), "utf-8")
    job = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path / "cluster.md")],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = job.communicate()
        assert (job.returncode, errors) == (0, "")
    finally:
        with suppress(ProcessLookupError):  # a page that is wrong leaves its cluster behind
            os.killpg(job.pid, signal.SIGTERM)


SAME = [
    ("took 1.2 s", "took 15 s"),
    ("about 3 min 10 s left", "12 s left"),
    ("33.6 MB: a.zarr", "1.2 GB: a.zarr"),
    ("49 tiles read (1.6 GB)", "50 tiles read (1.7 GB)"),
    ("with 42 tile reads of 1 stored tile", "with 43 tile reads of 1 stored tile"),
    ("until 2026-12-18 05:02 UTC", "until 2027-01-02 11:00 UTC"),
    ("a 0.9912 ± 0.0100   0.744\nb", "a 0.9912 ± 0.0100   0.514\nb"),
    (" a   0.9912 \n ─────", " a 0.9911\n ───────"),
]
DIFFERENT = [
    ("accuracy 0.99", "accuracy 0.91"),
    ("3 tiles computed", "4 tiles computed"),
    ("60 structures", "60 sentences"),
    ("0.5 0.6", "0.5"),
]


@pytest.mark.parametrize(("before", "after"), SAME)
def test_times_sizes_and_widths_are_not_compared(before: str, after: str) -> None:
    assert transcripts.same(before, after)


@pytest.mark.parametrize(("before", "after"), DIFFERENT)
def test_everything_else_is(before: str, after: str) -> None:
    assert not transcripts.same(before, after)


BAD = {
    "a command fails": "```sh\ngramline corpus show nothing.parquet\n```\n",
    "a command that should fail does not": "```sh exit=2\ngramline --version\n```\n",
    "Python fails": "```python\nraise ValueError\n```\n",
    "other output": "```python\nprint(1)\n```\n\n```text\n2\n```\n",
    "output of nothing": "```python\nprint(1)\n```\n\nwords\n\n```text\n1\n```\n",
}


@pytest.mark.parametrize("page", BAD.values(), ids=list(BAD))
def test_a_page_that_is_wrong_is_noticed(page: str, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(page, "utf-8")
    job = run_script("--check", str(tmp_path / "page.md"), folder=tmp_path)
    assert (job.returncode, "page.md" in job.stderr) == (1, True)


def test_output_is_pasted_and_cut(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfor n in range(9):\n    print(n)\n```\n\n```text first=2 last=1\n```\n\n"
        "```toml a.toml\nb = 1\n```\n\n```sh\ncat a.toml\npwd\n```\n\n```text\n```\n",
        "utf-8",
    )
    assert run_script(str(page), folder=tmp_path).returncode == 0
    outputs = [block.text for block in transcripts.blocks_of(page.read_text("utf-8")) if block.language == "text"]
    assert outputs == ["0\n1\n...\n8\n", "b = 1\n.\n"]


def test_the_files_of_a_run_are_those_the_guide_lists() -> None:
    guide = (ROOT / "docs" / "jobs.md").read_text("utf-8")
    (printed,) = [block.text for block in transcripts.blocks_of(guide) if block.language == "text"]
    named = set(re.findall(r"^\| `([a-z]+\.[a-z]+)` \|", guide, flags=re.MULTILINE))
    assert named
    assert named <= set(printed.split())


def test_make_does_what_the_transcripts_run_for_it() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for command, done in transcripts.MADE_BY_MAKE.items():
        target = command.removeprefix("make ")
        assert re.search(rf"^{target}: \$\(VENV\)/\.installed .*\n\t\$\(BIN\)/{done}\n\n", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "target",
    sorted(
        {
            target
            for page in MARKDOWN
            for target in re.findall(r"(?:`|^)make ([a-z-]+)", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE)
        }
    ),
)
def test_the_make_targets_are_there(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)


def test_commits_are_checked_by_what_make_test_runs_first() -> None:
    hooks = re.findall(
        r"^ +entry: make (\w+)$", (ROOT / ".pre-commit-config.yaml").read_text("utf-8"), flags=re.MULTILINE
    )
    (first,) = re.findall(r"^test: (.*?)  ##", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert hooks == first.split()


# --- links ------------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The names of the headings of a page, as GitHub makes them: small letters and hyphens, numbered if twice."""
    names: dict[str, int] = {}
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text("utf-8")), flags=re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        names[name] = names.get(name, 0) + 1
    return {f"{name}-{k}" if k else name for name, times in names.items() for k in range(times)}


def links() -> list[tuple[Path, str]]:
    found = []
    for page in MARKDOWN:
        text = re.sub(r"`[^`\n]*`", "", FENCED.sub("", (ROOT / page).read_text("utf-8")))
        found += [
            (page, link) for link in LINK.findall(text) if not link.startswith(("http://", "https://", "mailto:"))
        ]
    return found


def test_every_link_leads_somewhere() -> None:
    broken = []
    for page, link in links():
        name, _, anchor = link.partition("#")
        target = (ROOT / page).parent / name if name else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{page}: {link}")
    assert len(links()) > 60
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [Path("README.md")]
    while waiting:
        page = waiting.pop()
        if page in reached or page not in MARKDOWN:
            continue
        reached.add(page)
        inside = [((ROOT / page).parent / link.partition("#")[0]).resolve() for where, link in links() if where == page]
        waiting += [path.relative_to(ROOT) for path in inside if path.is_relative_to(ROOT)]
    assert set(MARKDOWN) - reached == set()


def test_the_picture_of_the_terminal_has_the_scores_of_the_tutorial() -> None:
    """Otherwise: make pictures, after make pages."""
    drawn = html.unescape((ROOT / "docs" / "pictures" / "terminal.svg").read_text("utf-8"))
    tutorial = (ROOT / "docs" / "tutorial.md").read_text("utf-8")
    pictured, told = (re.findall(r"\d\.\d{4} ± \d\.\d{4}", text.replace("\u00a0", " ")) for text in (drawn, tutorial))
    assert len(told) > 10
    assert pictured == told


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "pictures").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_suit_light_and_dark_load_nothing_and_are_shown(picture: Path) -> None:
    text = picture.read_text("utf-8")
    if picture.name != "terminal.svg":  # a dark window on every page
        assert "prefers-color-scheme: dark" in text
        assert "<title" in text
    assert set(re.findall(r"https?://[^\"') ]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert any(picture.name in (ROOT / page).read_text("utf-8") for page in MARKDOWN)
