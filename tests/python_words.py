"""What nobody who works on a command line should read: the syntax and the class names of Python."""

from __future__ import annotations

import re

from gramline.kernels.catalogue import KERNELS, OBSERVATIONS, PRIORS
from gramline.learners.catalogue import LEARNERS

CLASSES = {place.partition(":")[2] for table in (KERNELS, OBSERVATIONS, PRIORS, LEARNERS) for place in table.values()}
# Names that are also words of a sentence (Linear, Sum) are known by what follows them.
MIXED = sorted(name for name in CLASSES if re.fullmatch(r"[A-Z][a-z]+[A-Z]\w+", name))
SYNTAX = re.compile(
    rf"\b(?:{'|'.join(MIXED)})\b"
    rf"|\b(?:{'|'.join(sorted(CLASSES))})[.(]"
    r"|\b[a-z_]+=(?:True|False|None|['\"]|\s|,|\))"
    r"|\b[A-Za-z_]+\(\)|__[a-z]+|\bpass [a-z_]+=|\bin Python\b|\bargument of type\b|\bkeyword argument"
)
QUOTED = re.compile(r"'[^']*'|`[^`]*`")  # what was given is shown as it was; commands stand in backticks


def python_words(text: str) -> list[str]:
    """Every piece of Python in what a command says."""
    return SYNTAX.findall(QUOTED.sub("''", text))
