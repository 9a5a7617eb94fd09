"""The tagging kernel of Collins and Duffy: common runs of tags, with or without their words, a row per sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from gramline.kernels.base import Kernel, Tile, is_same, mirror, placed, require_fit
from gramline.kernels.packing import Floats, Packed, PackedTagged
from gramline.kernels.parameters import Share, ZeroToOne
from gramline.kernels.structures.tagging_loops import Sentences, TagPostings, contiguous_runs, gapped_runs


@dataclass(frozen=True)
class Tagging(Kernel):
    """K(s, s') = sum over positions i of s, j of s' of C(i, j).

    C(i, j) = decay [same tag] (1 + [same word]) (1 + C(i + 1, j + 1)): runs of consecutive tags, each tag with or
    without its word. Positive semidefinite. Cost: pairs of positions of equal tag; with a gap all pairs of positions.
    Collins and Duffy (2002).

    >>> from gramline.kernels import Tagging
    >>> from gramline.pipeline import Corpus
    >>> Tagging().gram(Corpus.from_tagged([[("the", "D"), ("dog", "N")], [("a", "D"), ("dog", "N")]]))
    array([[8., 5.],
           [5., 8.]])
    """

    name: ClassVar[str] = "tagging"
    summary: ClassVar[str] = "common runs of tags, each with or without its word"
    packed_kind: ClassVar[str] = "tagged"
    per_position: ClassVar[bool] = False

    decay: Annotated[Share, "weight of every tag of a run, above 0 and at most 1"] = 1.0
    gap: Annotated[
        ZeroToOne | None, "between 0 and 1: runs may skip positions, each counting this much; none or 0: they may not"
    ] = None

    def tile(self, rows: Packed, cols: Packed, dtype: DTypeLike = np.float64, memory: Tile | None = None) -> Tile:
        assert isinstance(rows, PackedTagged)
        assert isinstance(cols, PackedTagged)
        out = np.zeros((len(rows), len(cols)))
        left, right = (Sentences(side.starts, side.symbols, side.tags) for side in (rows, cols))
        if self.gap:
            gapped_runs(left, right, float(self.decay), float(self.gap), out)
        else:
            contiguous_runs(left, TagPostings.of(cols), float(self.decay), out)
        if is_same(rows, cols):
            mirror(out)
        require_fit(out, dtype, type(self).__name__, "lower decay, or split the sentences")
        return placed(out, dtype, memory)

    def diagonal(self, packed: Packed) -> Floats:
        values = np.empty(len(packed))
        for sentence in range(len(packed)):
            one = packed.structures(sentence, sentence + 1)
            values[sentence] = self.tile(one, one)[0, 0]
        return values
