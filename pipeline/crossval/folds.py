"""Which structures are held out when: folds over whole structures, never over positions.

A fold is the sorted array of its held-out structures; everything else trains, except what a fold leaves out on top of
that: inner folds of a nested selection never see what their outer fold holds out. Folds of one repetition are disjoint
and cover the corpus, unless somebody wrote them down: those may leave structures over or, like repetitions, hold one
out again. Scores are means over folds, so a note says so and nothing is refused.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.parameters import checked
from gramline.pipeline.corpus.textfile import excerpt, read_lines
from gramline.pipeline.crossval.fold_settings import FoldSettings
from gramline.pipeline.errors import CorpusError, InputError

Held = NDArray[np.int64]
Labels = Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class Folds:
    """Held-out structures per fold, over a corpus of `n_structures`."""

    n_structures: int
    held_out: tuple[Held, ...]
    left_out: tuple[Held, ...] = ()  # per fold, neither trained nor tested on; () when nothing is

    def __post_init__(self) -> None:
        if self.left_out and len(self.left_out) != len(self.held_out):
            raise InputError(f"{len(self.left_out)} folds leave structures out, but there are {len(self.held_out)}")
        for number, held in enumerate(self.held_out):
            if len(held) == 0:
                raise InputError(f"fold {number} holds out no structure; use fewer folds")
            self._check(f"fold {number} holds out", held)
            if self.left_out:
                self._check(f"fold {number} leaves out", self.left_out[number])
                both = np.intersect1d(held, self.left_out[number])
                if len(both):
                    raise InputError(
                        f"fold {number} tests on structure {both[0]} and leaves it out; choose one of them"
                    )
            if len(self.hidden(number)) == self.n_structures:
                raise InputError(f"fold {number} holds out every structure, so nothing is left to train on")

    def _check(self, what: str, structures: Held) -> None:
        if structures.dtype.kind not in "iu":
            raise InputError(f"{what} {structures.tolist()!r}; give the numbers of structures")
        outside = structures[(structures < 0) | (structures >= self.n_structures)]
        if len(outside):
            raise InputError(f"{what} structure {outside[0]}, but the corpus has 0 to {self.n_structures - 1}")
        names, times = np.unique(structures, return_counts=True)
        if len(names) < len(structures):
            raise InputError(f"{what} structure {names[times > 1][0]} twice; name it once")

    def __len__(self) -> int:
        return len(self.held_out)

    @property
    def n_repeated(self) -> int:
        """Structures that more than one fold holds out."""
        times = np.bincount(np.concatenate(self.held_out)) if self.held_out else np.zeros(0, np.int64)
        return int((times > 1).sum())

    def n_seen_in_training(self, groups: Held) -> int:
        """Structures that a fold holds out while one of the same group, one equal to it, say, trains in that fold."""
        seen = [held[np.isin(groups[held], groups[self.training(fold)])] for fold, held in enumerate(self.held_out)]
        return len(np.unique(np.concatenate(seen))) if seen else 0

    def hidden(self, fold: int) -> Held:
        """Structures whose labels a fold must not see: held out, or left out."""
        return np.union1d(self.held_out[fold], self.left_out[fold]) if self.left_out else self.held_out[fold]

    def training(self, fold: int) -> Held:
        """Structures that train in a fold."""
        return np.setdiff1d(np.arange(self.n_structures), self.hidden(fold))


def k_fold(n_structures: int, folds: int, *, seed: int | None = None, repeats: int = 1) -> Folds:
    """`folds` parts of nearly equal size, in order or (with a seed) shuffled; `repeats` shuffles one after another."""
    _check_count(n_structures, folds, "structures")
    if repeats < 1 or (repeats > 1 and seed is None):
        raise InputError("repeated folds need a seed, and at least one repetition")
    held: list[Held] = []
    for repeat in range(repeats):
        order = np.arange(n_structures)
        if seed is not None:
            np.random.default_rng([seed, repeat]).shuffle(order)
        held.extend(np.sort(part) for part in np.array_split(order, folds))
    return Folds(n_structures, tuple(held))


def grouped(groups: Sequence[Hashable], folds: int, *, seed: int | None = None) -> Folds:
    """Structures of one group stay together; groups go, largest first, to the smallest fold."""
    sizes = Counter(groups)
    _check_count(len(sizes), folds, "groups")
    names = list(sizes)
    if seed is not None:
        np.random.default_rng(seed).shuffle(names)
    filled = [0] * folds
    fold_of: dict[Hashable, int] = {}
    for name in sorted(names, key=lambda name: -sizes[name]):
        fold_of[name] = int(np.argmin(filled))
        filled[fold_of[name]] += sizes[name]
    assigned = np.array([fold_of[name] for name in groups])
    return Folds(len(groups), tuple(np.flatnonzero(assigned == fold) for fold in range(folds)))


def stratified(labels: Sequence[Sequence[str | None]], folds: int, *, seed: int | None = None) -> Folds:
    """Every label spread over the folds: the rarest labels are dealt first, to the fold that has least of them."""
    _check_count(len(labels), folds, "structures")
    counts = [Counter(label for label in structure if label is not None) for structure in labels]
    totals: Counter[str] = sum(counts, Counter())
    order = np.arange(len(labels))
    if seed is not None:
        np.random.default_rng(seed).shuffle(order)
    rarest = {k: min((totals[label] for label in counts[k]), default=np.inf) for k in range(len(labels))}
    have: list[Counter[str]] = [Counter() for _ in range(folds)]
    sizes = [0] * folds
    assigned = np.zeros(len(labels), np.int64)
    for k in sorted(order.tolist(), key=lambda k: rarest[k]):
        rare = min(counts[k], key=lambda label: (totals[label], label), default=None)
        fold = min(range(folds), key=lambda f: (have[f][rare] if rare is not None else 0, sizes[f]))
        assigned[k] = fold
        have[fold].update(counts[k])
        sizes[fold] += 1
    return Folds(len(labels), tuple(np.flatnonzero(assigned == fold) for fold in range(folds)))


def custom_folds(folds: Iterable[Iterable[int]], n_structures: int) -> Folds:
    """Folds of somebody's own, held-out structure numbers of each; the same fold twice is a slip and refused."""
    made = Folds(n_structures, tuple(_numbers(fold, number) for number, fold in enumerate(folds)))
    if not len(made):
        raise InputError("there is no fold; give at least one list of held-out structures")
    first_with: dict[bytes, int] = {}
    for number, held in enumerate(made.held_out):
        first = first_with.setdefault(held.tobytes(), number)
        if first != number:
            raise InputError(f"fold {number} holds out the same structures as fold {first}; give it once")
    return made


def _numbers(fold: Iterable[int], number: int) -> Held:
    try:
        numbers = np.asarray(fold if isinstance(fold, np.ndarray) else list(fold))
    except (TypeError, ValueError):
        numbers = np.zeros((0, 0))
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise InputError(f"fold {number} must be a list of structure numbers, got {fold!r}")
    return np.sort(numbers.astype(np.int64))


def from_file(path: str | Path, n_structures: int) -> Folds:
    """Folds from a JSON file: a list with one list of held-out structure numbers (from 0) per fold."""
    wanted = "a JSON list of lists of structure numbers"
    try:
        content = json.loads("\n".join(read_lines(path)))
    except CorpusError as error:
        raise InputError(f"{error}; a fold file is {wanted}") from None
    except (ValueError, RecursionError) as error:
        where = (
            f" ({error})" if isinstance(error, json.JSONDecodeError) else f": line 1 is beyond all measure ({error})"
        )
        raise InputError(f"{path} is not {wanted}{where}") from None
    if not isinstance(content, list) or not content:
        raise InputError(f"{path} holds no fold; give {wanted}")
    for number, fold in enumerate(content):
        if not isinstance(fold, list):
            raise InputError(f"{path}: fold {number} is not a list; give {wanted}")
        for entry, structure in enumerate(fold):
            if type(structure) is not int or not 0 <= structure < n_structures:
                raise InputError(
                    f"{path}: fold {number}, entry {entry}: {excerpt(json.dumps(structure))} is not the number of a "
                    f"structure (0 to {n_structures - 1})"
                )
    try:
        return custom_folds(content, n_structures)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _check_count(n_items: int, folds: int, what: str) -> None:
    if not 2 <= folds <= n_items:
        raise InputError(f"{n_items} {what} can be cut into 2 to {n_items} folds, not {folds}")


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
