"""Trees and graphs drawn over their words: an arc from every position to each of its children."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import east_asian_width

from markupsafe import Markup

from gramline.pipeline.reporting.charts import element, picture
from gramline.pipeline.reporting.content import Sentence

LETTER, GAP = 8.1, 14.0  # width of a letter of the monospaced font, and between two columns
LEVEL, LOWEST = 15.0, 12.0  # height of an arc per level, and of the lowest one
LINE = 18.0  # of text
ROWS = ("word", "gold", "predicted")


def arcs(sentence: Sentence) -> Markup:
    """Arcs above the words, the gold and the predicted labels below them, in columns."""
    links = sentence.links or []
    edges = [(above, below) for above, children in enumerate(links) for below in children]
    heights = levels(edges)
    columns = [
        (_shown(word, "·"), _shown(gold, "–"), guess, is_wrong) for word, gold, guess, is_wrong in sentence.positions()
    ]
    left = GAP + LETTER * max(map(len, ROWS))
    centers, place = [], left + GAP
    for word, gold, guess, _ in columns:
        width = LETTER * max(map(_cells, (word, gold, guess)))
        centers.append(place + width / 2)
        place += width + GAP
    top = LOWEST + LEVEL * max(heights, default=0) + 8
    parts = [_arc(centers[above], centers[below], top, heights[k]) for k, (above, below) in enumerate(edges)]
    for row, name in enumerate(ROWS):
        y = top + LINE * (row + 1)
        parts.append(element("text", name, x=4, y=y, class_="soft"))
        for center, (word, gold, guess, is_wrong) in zip(centers, columns, strict=True):
            text = (word, gold, guess)[row]
            kind = "word" if row == 0 else "wrong" if is_wrong and row == 2 else "label"
            parts.append(element("text", text, x=center, y=y, text_anchor="middle", class_=kind))
    title = f"{sentence.name}, drawn with an arrow from every word to each of its children"
    return element("div", picture(round(place), round(top + LINE * 3 + 10), title, *parts), class_="wide arcs")


def levels(edges: Sequence[tuple[int, int]]) -> list[int]:
    """How high each arc goes: above all shorter ones that lie below it."""
    heights = [0] * len(edges)
    spans = [(min(edge), max(edge)) for edge in edges]
    for number in sorted(range(len(edges)), key=lambda k: spans[k][1] - spans[k][0]):
        first, last = spans[number]
        inside = [
            heights[k]
            for k, (low, high) in enumerate(spans)
            if k != number and first <= low and high <= last and heights[k]
        ]
        heights[number] = 1 + max(inside, default=0)
    return heights


def _arc(start: float, end: float, bottom: float, level: int) -> Markup:
    """From the parent up, across and down to the child, where an arrow points at it."""
    y, turn = bottom - LOWEST - LEVEL * (level - 1), 6.0 if end > start else -6.0
    start += turn / 2
    end -= turn / 2
    path = f"M{start:.1f},{bottom:.1f} L{start:.1f},{y + 6:.1f} Q{start:.1f},{y:.1f} {start + turn:.1f},{y:.1f} "
    path += f"L{end - turn:.1f},{y:.1f} Q{end:.1f},{y:.1f} {end:.1f},{y + 6:.1f} L{end:.1f},{bottom:.1f}"
    head = f"{end - 3:.1f},{bottom - 5:.1f} {end + 3:.1f},{bottom - 5:.1f} {end:.1f},{bottom:.1f}"
    return element("path", d=path, class_="arc", fill="none") + element("polygon", points=head, class_="head")


def _cells(text: str) -> int:
    """Columns of a monospaced font; letters of some scripts take two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _shown(text: str | None, empty: str) -> str:
    return empty if text is None else text
