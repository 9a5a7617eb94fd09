"""Compiled loops of the tagging kernel: contiguous runs over tag postings, gapped runs over whole rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramline.kernels._jit import jit
from gramline.kernels.packing import Floats, Ints, Offsets, PackedTagged


class Sentences(NamedTuple):
    """Tagged sentences as flat arrays."""

    starts: Offsets  # shape (n_sentences + 1,)
    words: Ints  # shape (n,)
    tags: Ints  # shape (n,)


class TagPostings(NamedTuple):
    """The positions of the columns by tag."""

    words: Ints  # shape (m,)
    follows: Ints  # q + 1, or the sentinel m at the end of a sentence; shape (m,)
    sentences: Ints  # sentence of each position, shape (m,)
    tag_starts: Offsets  # positions of tag k are positions[tag_starts[k]:tag_starts[k + 1]]
    positions: Ints  # shape (m,)

    @classmethod
    def of(cls, packed: PackedTagged) -> TagPostings:
        n_positions = packed.n_positions
        follows = np.arange(1, n_positions + 1, dtype=np.int32)
        follows[packed.starts[1:][packed.lengths > 0] - 1] = n_positions
        sentences = np.repeat(np.arange(len(packed), dtype=np.int32), packed.lengths)
        positions = np.argsort(packed.tags, kind="stable").astype(np.int32)
        tag_starts = np.searchsorted(packed.tags[positions], np.arange(int(packed.tags.max(initial=-1)) + 2))
        return cls(packed.symbols, follows, sentences, tag_starts.astype(np.int64), positions)


@jit
def contiguous_runs(rows: Sentences, cols: TagPostings, decay: float, out: Floats) -> None:
    """out[i, j] = sum of C over the positions of two sentences; visits only positions of equal tag.

    C(p, q) = decay (1 + [same word]) (1 + C(p + 1, q + 1)), and 0 at the sentinel position.
    """
    row_starts, row_words, row_tags = rows.starts, rows.words, rows.tags
    col_words, follows, sentences = cols.words, cols.follows, cols.sentences
    tag_starts, tag_positions = cols.tag_starts, cols.positions
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
                    row[sentences[other]] += value
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
def gapped_runs(rows: Sentences, cols: Sentences, decay: float, gap: float, out: Floats) -> None:
    """out[i, j] = sum of C, with S instead of the next C: a run that skips g positions counts gap^g.

    C(p, q) = decay [same tag] (1 + [same word]) (1 + S(p + 1, q + 1)), r(p, q) = C(p, q) + gap r(p, q + 1),
    S(p, q) = r(p, q) + gap S(p + 1, q).
    """
    row_starts, row_words, row_tags = rows.starts, rows.words, rows.tags
    col_starts, col_words, col_tags = cols.starts, cols.words, cols.tags
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
