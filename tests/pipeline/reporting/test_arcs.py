"""Trees over their words: how high arcs go, and that every link and every wrong label is drawn."""

from __future__ import annotations

import re
from itertools import pairwise

from gramline.pipeline.reporting.arcs import arcs, levels
from gramline.pipeline.reporting.content import Sentence


def test_an_arc_goes_above_all_that_lie_below_it() -> None:
    assert levels([(0, 1), (0, 2), (0, 5), (3, 4)]) == [1, 2, 3, 1]
    assert levels([]) == []
    assert levels([(2, 0), (2, 1)]) == [2, 1]  # a head behind its children


def test_every_link_has_an_arc_and_columns_do_not_overlap() -> None:
    sentence = Sentence("s", ["one", None, "<three>"], ["A", None, "B"], ["A", "A", "C"], [[1, 2], [], []])
    drawn = str(arcs(sentence))
    assert drawn.count("<path") == drawn.count("<polygon") == 2
    assert re.findall(r'class="wrong">([^<]+)<', drawn) == ["C"]
    assert "&lt;three&gt;" in drawn
    centers = [float(x) for x in re.findall(r'<text x="([^"]+)"[^>]*class="word"', drawn)]
    assert all(second - first > 20 for first, second in pairwise(centers))


def test_wide_letters_get_room() -> None:
    def width(word: str) -> int:
        drawn = re.search(r'width="(\d+)"', str(arcs(Sentence("s", [word, "a"], ["A", "A"], ["A", "A"], [[1], []]))))
        assert drawn is not None
        return int(drawn[1])

    assert width("日本語日本語") == width("twelve-wide!")
