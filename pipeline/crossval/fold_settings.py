"""How folds are to be cut, as settings say it; `folds.FoldSpec` checks what they mean together. Loads nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gramline.kernels.parameters import Boolean, Text, WholeOrZero
from gramline.kernels.value_kinds import Number
from gramline.pipeline.settings_file import FilePath

MOST_REPEATS = 10_000
DUPLICATES = "duplicates"  # in the place of a column: equal structures are a group
FoldCount = Annotated[int, Number(whole=True, least=2)]


@dataclass(frozen=True)
class FoldSettings:
    """Number, shuffling, repetitions, and strata, groups or a file."""

    count: Annotated[FoldCount, "how many folds"] = 5
    seed: Annotated[WholeOrZero | None, "shuffle structures with this seed; none: in their order"] = None
    repeats: Annotated[int, Number(whole=True, least=1, most=MOST_REPEATS), "repeat the folds with other shuffles"] = 1
    stratified: Annotated[Boolean, "spread every label over the folds"] = False
    group: Annotated[
        Text | None, "a column of the corpus: structures with the same value stay together; `duplicates`: equal ones do"
    ] = None
    file: Annotated[FilePath | None, "JSON: lists of held-out structures, one per fold"] = None
