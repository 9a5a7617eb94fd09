"""The fast parts of the snapshot; all of it: python tests/house/snapshot.py FOLDER --check tests/house/snapshot.json"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import snapshot
from snapshot_parts.recording import Record, differences, visible_text

RECORDED = json.loads((Path(__file__).parent / "snapshot.json").read_text("utf-8"))
FAST = ["kernels", "learners", "unlabeled", "rankers", "imports"]


def test_what_is_computed_is_what_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    with warnings.catch_warnings(action="ignore"):
        found = snapshot.take(tmp_path / "out", FAST).sections
    assert sum(map(len, found.values())) > 500
    assert differences(RECORDED, found, other_machine=True, is_whole=False) == []


def test_differences_are_seen(tmp_path: Path) -> None:
    before, now = Record(tmp_path), Record(tmp_path)
    values = np.linspace(1, 2, 10)
    for record, factor in ((before, 1.0), (now, 1 + 1e-14)):
        record.exact("a", "noise", values * factor)
        record.numbers("a", "rounded", values * factor)
    before.numbers("a", "swapped", values)
    now.numbers("a", "swapped", values[::-1])
    before.document("a", "labels", ["X", "Y"])
    now.document("a", "labels", ["Y", "X"])
    before.text("b", "said", "in 3 s")
    now.text("b", "said", "in 40 s")
    before.text("b", "lost", "x")
    now.text("b", "more", "x")
    lines = [line.split("\n")[0] for line in differences(before.sections, now.sections)]
    assert [line.split(": ")[:3] for line in lines] == [
        ["a", "changed", "noise"],
        ["a", "changed", "swapped"],
        ["a", "changed", "labels"],
        ["b", "missing", "lost"],
        ["b", "new", "more"],
    ]
    assert len(differences(before.sections, now.sections, other_machine=True, is_whole=False)) == 3


def test_the_visible_words_of_a_page() -> None:
    page = "<html><style>p { x }</style><p>one <b>two</b>\n three</p><script>no()</script></html>"
    assert visible_text(page) == "one two three"
