"""Pictures of what a user of the tutorial sees: the terminal as SVG (rich), the report as PNG (headless Chromium).

Run by `make pictures`, into docs/pictures. The commands are those of docs/tutorial.md, run by transcripts.py.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich.console import Console
from transcripts import DOCS, Block, blocks_of, in_folder, run_python, run_shell, scratch_folder
from transcripts import WIDTH as WIDTH_OF_TERMINAL

PICTURES = DOCS / "pictures"
TERMINAL = "gramline cv job.toml --inline"  # the command whose output is drawn
REPORT = Path("learners.run/report.html")
OUTSIDE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", flags=re.DOTALL)  # rich would load fonts from the network
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1200, 900


def main() -> int:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        sys.stderr.write(f"none of {', '.join(BROWSERS)} is installed: the report cannot be drawn\n")
        return 1
    with scratch_folder() as folder, in_folder(folder):
        for block in blocks_of((DOCS / "tutorial.md").read_text("utf-8")):
            play(block)
        photograph(browser, folder / REPORT, PICTURES / "report.png")
    return 0


def play(block: Block) -> None:
    """Run a block of the tutorial; draw the terminal where the command to be drawn is run."""
    if block.file_name is not None:
        Path(block.file_name).write_text(block.text, "utf-8")
    elif block.language == "python":
        run_python(block, {"__name__": "__main__"})
    elif block.language == "sh":
        for line in block.text.splitlines():
            printed = run_shell(Block("sh", (), line, 0, 0))
            if line == TERMINAL:
                draw_terminal(line, printed, PICTURES / "terminal.svg")


def draw_terminal(command: str, printed: str, target: Path) -> None:
    console = Console(record=True, width=WIDTH_OF_TERMINAL, file=StringIO())
    console.print(f"$ {command}\n{printed}", markup=False, highlight=False)
    drawn = console.export_svg(title="gramline", unique_id="terminal")
    target.write_text(OUTSIDE.sub("", drawn), "utf-8")


def photograph(browser: str, page: Path, target: Path) -> None:
    """The first screen of a page."""
    options = ["--headless", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    command = [browser, *options, f"--screenshot={target}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    sys.exit(main())
