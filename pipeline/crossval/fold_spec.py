"""How folds are to be cut, as a small record: number, shuffling, repetitions, strata, groups or a file."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gramline.kernels.parameters import checked
from gramline.pipeline.crossval.fold_settings import FoldSettings
from gramline.pipeline.crossval.folds import Folds, Held, from_file, grouped, k_fold, stratified
from gramline.pipeline.errors import InputError

Labels = Sequence[Sequence[str | None]]


@dataclass(frozen=True)
class FoldSpec(FoldSettings):
    """Equal specs over equal structures give equal folds."""

    def __post_init__(self) -> None:
        checked(FoldSettings, self.to_dict(), InputError)
        if sum((self.stratified, self.group is not None, self.file is not None)) > 1:
            raise InputError("folds are stratified, grouped or read from a file", advice="choose one of them")
        if self.repeats > 1 and (self.seed is None or self.file is not None):
            raise InputError("repeated folds need a seed, and are no folds from a file", key="repeats")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def make(self, labels: Labels, groups: Sequence[Hashable] | None = None) -> Folds:
        """The folds over structures with these labels (and group names)."""
        if self.file is not None:
            return from_file(self.file, len(labels))
        if self.group is None and not self.stratified:
            return k_fold(len(labels), self.count, seed=self.seed, repeats=self.repeats)
        held: list[Held] = []
        for repeat in range(self.repeats):
            seed = None if self.seed is None else self.seed + repeat
            if self.stratified:
                held.extend(stratified(labels, self.count, seed=seed).held_out)
            elif groups is None:
                raise InputError(f"the folds are grouped by {self.group!r}, but the source has no such column")
            else:
                held.extend(grouped(groups, self.count, seed=seed).held_out)
        return Folds(len(labels), tuple(held))

    def inner(self, outer: Folds, count: int, labels: Labels, groups: Sequence[Hashable] | None = None) -> Folds:
        """`count` folds inside the training part of every outer fold, cut in the same way; they leave the rest out."""
        spec = FoldSpec(count, self.seed, 1, self.stratified, self.group)
        held: list[Held] = []
        left: list[Held] = []
        for fold in range(len(outer)):
            training = outer.training(fold)
            inside = spec.make([labels[k] for k in training], None if groups is None else [groups[k] for k in training])
            held.extend(training[part] for part in inside.held_out)
            left.extend([outer.held_out[fold]] * len(inside))
        return Folds(outer.n_structures, tuple(np.asarray(part) for part in held), tuple(left))


def joined(first: Folds, second: Folds) -> Folds:
    """The folds of both, one after the other."""
    nothing = np.zeros(0, np.int64)
    left = [folds.left_out or (nothing,) * len(folds) for folds in (first, second)]
    return Folds(first.n_structures, first.held_out + second.held_out, left[0] + left[1])
