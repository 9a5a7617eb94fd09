"""Compiled loops of the tagging kernel: contiguous runs over tag postings, gapped runs over whole rows."""

from __future__ import annotations

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets


@jit
def contiguous_runs(
    row_starts: Offsets,
    row_words: Ints,
    row_tags: Ints,
    col_words: Ints,
    follows: Ints,
    structures: Ints,
    tag_starts: Offsets,
    tag_positions: Ints,
    decay: float,
    out: Floats,
) -> None:
    """out[i, j] = sum of C over the positions of two sentences, only positions of equal tag visited.

    C(p, q) = decay (1 + [same word]) (1 + C(p + 1, q + 1)). `follows[q]` is q + 1, or the sentinel position
    len(col_words), where C is always 0, at the end of a sentence; int32 (m,). `tag_positions[tag_starts[k]:
    tag_starts[k + 1]]` are the column positions of tag k.
    """
    current = np.zeros(len(col_words) + 1)
    following = np.zeros(len(col_words) + 1)  # C(p + 1, .)
    n_tags = len(tag_starts) - 1
    for sentence in range(len(row_starts) - 1):
        row = out[sentence]
        for position in range(row_starts[sentence + 1] - 1, row_starts[sentence] - 1, -1):
            word, tag = row_words[position], row_tags[position]
            if tag < n_tags:
                for posting in range(tag_starts[tag], tag_starts[tag + 1]):
                    other = tag_positions[posting]
                    value = decay * (1.0 + following[follows[other]])
                    if col_words[other] == word:
                        value *= 2.0
                    current[other] = value
                    row[structures[other]] += value
            if position + 1 < row_starts[sentence + 1] and row_tags[position + 1] < n_tags:
                stale = row_tags[position + 1]
                for posting in range(tag_starts[stale], tag_starts[stale + 1]):
                    following[tag_positions[posting]] = 0.0
            current, following = following, current
        if row_starts[sentence + 1] > row_starts[sentence] and row_tags[row_starts[sentence]] < n_tags:
            stale = row_tags[row_starts[sentence]]
            for posting in range(tag_starts[stale], tag_starts[stale + 1]):
                following[tag_positions[posting]] = 0.0


@jit
def gapped_runs(
    row_starts: Offsets,
    row_words: Ints,
    row_tags: Ints,
    col_starts: Offsets,
    col_words: Ints,
    col_tags: Ints,
    decay: float,
    gap: float,
    out: Floats,
) -> None:
    """out[i, j] = sum of C, with S in the place of the next C: an appearance with g skipped positions counts gap^g.

    C(p, q) = decay [same tag] (1 + [same word]) (1 + S(p + 1, q + 1)), r(p, q) = C(p, q) + gap r(p, q + 1),
    S(p, q) = r(p, q) + gap S(p + 1, q).
    """
    sums = np.zeros(len(col_words) + 1)  # S(p + 1, .), overwritten by S(p, .) from the right
    for sentence in range(len(row_starts) - 1):
        sums[:] = 0.0
        for position in range(row_starts[sentence + 1] - 1, row_starts[sentence] - 1, -1):
            word, tag = row_words[position], row_tags[position]
            for other in range(len(col_starts) - 1):
                total = 0.0
                running = 0.0
                diagonal = 0.0  # S(p + 1, q + 1)
                for q in range(col_starts[other + 1] - 1, col_starts[other] - 1, -1):
                    value = 0.0
                    if col_tags[q] == tag:
                        value = decay * (1.0 + diagonal)
                        if col_words[q] == word:
                            value *= 2.0
                    total += value
                    running = value + gap * running
                    diagonal = sums[q]
                    sums[q] = running + gap * diagonal
                out[sentence, other] += total
