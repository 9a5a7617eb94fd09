"""Small pieces of HTML: where long names may be broken, and what is typed inside of sentences."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

TYPED = re.compile(r"`([^`]+)`")
BREAKS = re.compile(r"(?<=[,/_])(?=\w)|(?=\()|(?<=[ ])")  # here a long name may go on in the next line


def soft_breaks(name: str) -> Markup:
    """A name that may be broken between its parts, never inside a word: not at a hyphen either.

    >>> str(soft_breaks("perceptron(rounds=10)"))
    '<span>perceptron</span><wbr><span>(rounds=10)</span>'
    """
    parts = [part for part in BREAKS.split(name) if part]
    return Markup("<wbr>").join(Markup("<span>{}</span>").format(part) for part in parts)


def with_code(sentence: str) -> Markup:
    """A sentence in which what stands between backquotes is to be typed.

    >>> str(with_code("take `rounds = 20` or more"))
    'take <code>rounds = 20</code> or more'
    """
    return Markup(TYPED.sub(r"<code>\1</code>", str(escape(sentence))))
