"""Small pieces of HTML: where long names may be broken."""

from __future__ import annotations

import re

from markupsafe import Markup

BREAKS = re.compile(r"(?<=[,(/=_])(?=\w)")  # after these a long name may go on in the next line


def soft_breaks(name: str) -> Markup:
    """A name that may be broken after a comma, a bracket or a slash, never inside a word.

    >>> str(soft_breaks("perceptron(rounds=10)"))
    'perceptron(<wbr>rounds=<wbr>10)'
    """
    return Markup("<wbr>").join(BREAKS.split(name))
