"""The report in a real browser: laid out at several widths, light, dark and on paper, and clicked where it can be.

A probe inside a copy of the page clicks and measures; a frame around it gives it the width of a telephone, which the
window of a browser without a screen cannot have.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from png_pixels import unfiltered

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
BEST_ROW, BORDER, WRONG = (230, 240, 250), (255, 140, 26), (253, 236, 234)  # colours that stand for content
DARK = "--blink-settings=preferredColorScheme=0"
WIDE, TELEPHONE = 1280, 390

PROBE = """<script>
const seen = {errors: [], sorted: []};
window.addEventListener('error', (event) => seen.errors.push(event.message));
const root = document.documentElement;
const overflow = () => root.scrollWidth - root.clientWidth;
const boxes = () => [...document.querySelectorAll('table, figure svg, image, .rows > div')]
  .map((one) => one.getBoundingClientRect());
window.addEventListener('load', () => {
  const details = [...document.querySelectorAll('details')], folded = details.find((one) => !one.open);
  seen.overflow = [overflow()];
  seen.heights = [root.scrollHeight];
  folded.querySelector('summary').click();
  seen.opened = folded.open;
  document.getElementById('fold').click();
  seen.open = details.filter((one) => one.open).length;
  seen.overflow.push(overflow());
  seen.heights.push(root.scrollHeight);
  const found = boxes();
  seen.boxes = [found.filter((box) => box.width > 5 && box.height > 5).length, found.length];
  document.getElementById('fold').click();
  seen.closed = details.filter((one) => !one.open).length;
  seen.details = details.length;
  for (const table of document.querySelectorAll('table.sortable')) {
    const column = (number) => [...table.tBodies[0].rows].map((row) => row.cells[number].textContent.trim());
    const before = column(0).join('|');
    table.querySelectorAll('th button').forEach((button) => {
      const head = button.parentElement, orders = [];
      for (let time = 0; time < 2; time++) {
        button.click();
        orders.push([head.getAttribute('aria-sort'), column(head.cellIndex), column(0).join('|') !== before]);
      }
      seen.sorted.push({kind: table.className, head: button.textContent, orders});
    });
  }
  const narrow = [...document.querySelectorAll('td, th, dd, .legend span, summary, b')].filter(
    (one) => getComputedStyle(one).overflowX === 'hidden' && one.scrollWidth > one.clientWidth);
  seen.cut = narrow.map((one) => one.textContent);
  seen.hidden = ['.labels', '.rows'].filter((name) => [...document.querySelectorAll(name)].some(
    (one) => [one, one.closest('.wide')].some((box) => box !== null && box.scrollWidth > box.clientWidth)));
  seen.loaded = performance.getEntriesByType('resource').filter((one) => !one.name.startsWith('data:')).length;
  seen.paper = getComputedStyle(document.body).backgroundColor;
  seen.ink = getComputedStyle(document.body).color;
  seen.view = root.clientWidth;
  parent.postMessage(seen, '*');
});
</script>"""
FRAME = """<body style="margin:0"><script>addEventListener('message', (event) => {
  document.body.dataset.seen = JSON.stringify(event.data); });</script>
<iframe src="inside.html" style="border:0;width:%dpx;height:2000px"></iframe></body>"""


def browse(page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    folder = page.parent
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True)


def looked_at(report: Path, folder: Path, width: int, *options: str) -> dict[str, Any]:
    """What the probe saw and did at some width."""
    inside, frame = folder / "inside.html", folder / "frame.html"
    inside.write_text(report.read_text("utf-8").replace("<head>", f"<head>{PROBE}"), "utf-8")
    frame.write_text(FRAME % width, "utf-8")
    shown = browse(frame, f"--window-size={max(width, 500)},2000", "--virtual-time-budget=3000", "--dump-dom", *options)
    assert not re.findall(r".*CONSOLE.*", shown.stderr)
    told = re.search(r'data-seen="([^"]+)"', shown.stdout)
    assert told is not None
    seen: dict[str, Any] = json.loads(html.unescape(told[1]))
    return seen


@pytest.mark.parametrize("width", [WIDE, TELEPHONE])
def test_the_page_is_laid_out_and_can_be_clicked(run: Path, tmp_path: Path, width: int) -> None:
    seen = looked_at(run / "report.html", tmp_path, width)
    assert seen["errors"] == []
    assert seen["view"] == width
    assert seen["overflow"] == [0, 0]  # wide things scroll in their own boxes, folded or not
    assert seen["cut"] == []
    assert seen["hidden"] == []  # neither the F1 of a label nor a wrong word has to be scrolled for
    assert seen["loaded"] == 0
    assert seen["boxes"][0] == seen["boxes"][1] > 30
    # folding
    assert seen["opened"]
    assert seen["open"] == seen["closed"] == seen["details"] > 5
    assert seen["heights"][1] > seen["heights"][0]
    # sorting: every heading sorts its column both ways, and some of them change the order of the rows
    assert {"labels sortable", "settings sortable"} <= {one["kind"] for one in seen["sorted"]}
    for one in seen["sorted"]:
        (first, down, _), (second, up, _) = one["orders"]
        assert {first, second} == {"ascending", "descending"}
        assert [value for value in up if value] == [value for value in down if value][::-1] or len(set(down)) < len(
            down
        )
        assert sorted(up) == sorted(down)
    for kind in ("labels sortable", "settings sortable"):
        assert any(changed for one in seen["sorted"] if one["kind"] == kind for *_, changed in one["orders"])
    recalls = next(one for one in seen["sorted"] if (one["kind"], one["head"]) == ("labels sortable", "recall"))
    values = [float(value) for value in recalls["orders"][0][1]]
    assert values == sorted(values, reverse=True)


def test_a_dark_screen_gets_a_dark_page(run: Path, tmp_path: Path) -> None:
    seen = looked_at(run / "report.html", tmp_path, WIDE, DARK)
    darkness = [sum(map(int, re.findall(r"\d+", seen[part])[:3])) for part in ("paper", "ink")]
    assert darkness[0] < 150 < 500 < darkness[1]


def test_a_broken_page_would_be_noticed(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text(
        (run / "report.html").read_text("utf-8").replace("</body>", "<script>no()</script></body>"), "utf-8"
    )
    assert "CONSOLE" in browse(page, "--dump-dom").stderr


def test_paper_shows_what_is_folded(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    shutil.copy(run / "report.html", page)
    browse(page, "--no-pdf-header-footer", f"--print-to-pdf={tmp_path / 'page.pdf'}")
    content = (tmp_path / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 4


@pytest.mark.parametrize(("section", "colour"), [("settings", BEST_ROW), ("gram", BORDER), ("wrong", WRONG)])
def test_a_screenshot_shows_the_content(run: Path, tmp_path: Path, section: str, colour: tuple[int, int, int]) -> None:
    only = f"<style>header, p, section:not(#{section}), .confusion, .labels {{ display: none }}</style></head>"
    page, shot = tmp_path / "one.html", tmp_path / "shot.png"
    page.write_text((run / "report.html").read_text("utf-8").replace("</head>", only), "utf-8")
    browse(page, "--window-size=600,560", f"--screenshot={shot}")
    pixels = unfiltered(shot.read_bytes())
    assert pixels.shape == (560, 600, 3)
    assert (pixels == colour).all(axis=2).sum() > 200
    assert (pixels.astype(int).sum(axis=2) < 200).sum() > 50  # there is ink
