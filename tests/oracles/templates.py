"""CRF++ templates by the letter: every macro looked up token by token, every string spelled out."""

import re
from collections import Counter

MACRO = re.compile(r"%x\[(-?\d+),(\d+)\]")


def expand(line, sentence, position):
    """One U line at one position; `sentence` is a list of tokens, each a list of columns."""

    def lookup(match):
        row, column = position + int(match.group(1)), int(match.group(2))
        if row < 0:
            return f"_B{row}"
        if row >= len(sentence):
            return f"_B+{row - len(sentence) + 1}"
        return sentence[row][column]

    return MACRO.sub(lookup, line)


def features(lines, sentences):
    """For every sentence, for every position, the set of its features."""
    patterns = [line.strip() for line in lines if line.startswith("U")]
    return [
        [{expand(pattern, sentence, position) for pattern in patterns} for position in range(len(sentence))]
        for sentence in sentences
    ]


def kept(lines, sentences, minimum_count):
    """The features that occur at least `minimum_count` times."""
    counts = Counter(name for sentence in features(lines, sentences) for names in sentence for name in names)
    return {name for name, count in counts.items() if count >= minimum_count}
