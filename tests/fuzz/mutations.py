"""Bytes made worse: seeded changes of well-formed inputs, from single bits to lines, numbers and nesting."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

ODD_NUMBERS = ["0", "-1", "1e400", "-0", "NaN", "Infinity", "2147483648", "9223372036854775808", "0x10", "1" * 5000]
ODD_PIECES = [
    *(b"(", b")", b"((((((((", b"[[[[[[", b'{"a":', b'"', b"'''", b"%x[", b"#", b"=", b",", b"..", b"../../x"),
    *(b"U00:%x[-1,0]", b"1-2", b"1.1", b"_", b"null", b"true", b"\\ud800", b"\r", b"\t\t\t", b"  ", b"\n\n\n"),
    *(b"\x00", b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\x1f\x8b"),
]
NUMBERS: list[Any] = [0, -1, 1.5, 10**15, -(10**15), 2**63, 10**30, float("inf"), float("nan")]
TEXTS: list[Any] = ["", "x", "..", "../../x", "\ud800", "A" * 3000]
ODD_VALUES: list[Any] = [None, True, False, *NUMBERS, *TEXTS, [], {}, [[]], [None], {"name": "x"}, {"": 0}]


def mutated(draw: random.Random, content: bytes) -> bytes:
    """One to four changes, one after another."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(MUTATIONS)(draw, content)
    return content


def _place(draw: random.Random, content: bytes) -> int:
    return draw.randrange(len(content) + 1)


def _flip(draw: random.Random, content: bytes) -> bytes:
    if not content:
        return b"\x00"
    place = draw.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << draw.randrange(8))]) + content[place + 1 :]


def _cut(draw: random.Random, content: bytes) -> bytes:
    return content[: _place(draw, content)]


def _drop(draw: random.Random, content: bytes) -> bytes:
    place = _place(draw, content)
    return content[:place] + content[place + draw.choice((1, 2, 8, 40)) :]


def _insert(draw: random.Random, content: bytes) -> bytes:
    place = _place(draw, content)
    return content[:place] + draw.choice(ODD_PIECES) * draw.choice((1, 1, 3, 50)) + content[place:]


def _repeat(draw: random.Random, content: bytes) -> bytes:
    first, last = sorted((_place(draw, content), _place(draw, content)))
    return content[:last] + content[first:last] * draw.choice((1, 2, 20)) + content[last:]


def _lines(draw: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    one, other = draw.randrange(len(lines)), draw.randrange(len(lines))
    what = draw.randrange(3)
    if what == 0:
        lines[one], lines[other] = lines[other], lines[one]
    elif what == 1:
        lines.insert(one, lines[other])
    else:
        del lines[one]
    return b"\n".join(lines)


def _number(draw: random.Random, content: bytes) -> bytes:
    places = [place for place, byte in enumerate(content) if 48 <= byte < 58]
    if not places:
        return _insert(draw, content)
    place = draw.choice(places)
    return content[:place] + draw.choice(ODD_NUMBERS).encode() + content[place + 1 :]


def _nest(draw: random.Random, content: bytes) -> bytes:
    opening, closing = draw.choice(((b"[", b"]"), (b"(S ", b")"), (b'{"a":', b"}"), (b"(", b")")))
    depth = draw.choice((5, 200, 3000))
    place = _place(draw, content)
    return content[:place] + opening * depth + content[place:] + closing * draw.choice((depth, depth, 0, depth - 1))


def _encode(draw: random.Random, content: bytes) -> bytes:
    what = draw.randrange(4)
    if what == 0:
        packed = gzip.compress(content, mtime=0)
        return packed if draw.random() < 0.5 else packed[: draw.randrange(len(packed))]
    text = content.decode("utf-8", "replace")
    return text.encode(("utf-16", "latin-1", "utf-8-sig")[what - 1], "replace")


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_flip, _cut, _drop, _insert, _insert, _repeat, _lines, _lines, _number, _number, _nest, _encode),
)


def mutated_document(draw: random.Random, document: Any) -> Any:
    """A JSON document with one to three of its values replaced, removed or moved."""
    document = json.loads(json.dumps(document))
    for _ in range(draw.choice((1, 1, 2, 3))):
        holder, key = draw.choice(list(_places(document)))
        what = draw.randrange(4)
        if what == 0 and isinstance(holder, dict):
            del holder[key]
        elif what == 1 and isinstance(holder[key], int) and not isinstance(holder[key], bool):
            holder[key] = draw.choice((holder[key] + 1, -holder[key], holder[key] * 10**15, holder[key] + 0.5))
        else:
            holder[key] = draw.choice(ODD_VALUES)
        if not isinstance(document, dict) or not list(_places(document)):
            break
    return document


def _places(node: Any) -> Any:
    """Every (container, key) below a node."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        yield node, key
        yield from _places(value)
