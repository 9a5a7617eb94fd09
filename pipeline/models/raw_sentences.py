"""A few raw sentences straight to packed arrays, in a vocabulary that is indexed once.

Gives the arrays that a corpus of the same sentences packs to, without its tables. Whatever is unusual, and whatever is
wrong, is left to the corpus, which has the words for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.packing import MISSING, Features, Ints, Packed, PackedSequences, Vocabulary
from gramline.kernels.ranges import offsets_from_lengths
from gramline.pipeline.corpus.flat import NameCodes
from gramline.pipeline.corpus.pack import FEATURE_SET_MARK, name_lanes, sum_lanes
from gramline.pipeline.corpus.recipe import LISTS, Recipe
from gramline.pipeline.corpus.tokens import canonical_rows
from gramline.pipeline.errors import CorpusError
from gramline.pipeline.models.raw_features import REMEMBERED, Group, UnusualError, describer_of

FEW = 64  # sentences; more of them are faster as a corpus
REFUSALS = (UnusualError, CorpusError, AttributeError, LookupError, TypeError, ValueError)


class PackedRaw(NamedTuple):
    """Packed sentences, and whether the vocabulary has none of their features."""

    packed: Packed
    is_strange: bool


class Needs(NamedTuple):
    """What the reader of the packed sentences looks at."""

    symbols: bool  # the identity of observations; else all are MISSING
    new_features: bool  # features that the vocabulary does not have; else they are left out


class RawSentences:
    """Packs sentences in the vocabulary of `support`, described by `recipe` (None: features are given)."""

    def __init__(self, support: Packed, recipe: Recipe | None, needs: Needs) -> None:
        names = support.vocabulary
        self._needs, self._names = needs, names.features
        self._vocabulary = names if needs.new_features else Vocabulary((), (), names.labels)
        self._features = {name: code for code, name in enumerate(names.features)}
        self._symbols = {name: code for code, name in enumerate(names.symbols)} if needs.symbols else {}
        self._lanes = np.zeros((len(names.features), 2), np.uint64)
        self._has_lanes = np.zeros(len(names.features), bool)
        self._groups: dict[Group, tuple[list[int], list[str]]] = {}
        self._describe = describer_of(recipe or Recipe(LISTS), self._features)

    def pack(self, sentences: Sequence[Any]) -> PackedRaw | None:
        """The packed sentences; None where they are not for this way."""
        try:
            return self._pack(sentences)
        except REFUSALS:  # a corpus says what is wrong
            return None

    def _pack(self, sentences: Sequence[Any]) -> PackedRaw:
        lengths = list[int]()
        texts = list[str | None]()  # of tokens that are their own feature
        counts, codes = list[int](), list[int]()
        values: dict[int, float] = {}  # by place in `codes`; the rest is 1
        unknown = NameCodes()
        known, n_known, groups = self._features, len(self._features), self._groups
        for sentence in sentences:
            if not isinstance(sentence, list | tuple) or not sentence:
                raise UnusualError
            lengths.append(len(sentence))
            for position in self._describe(sentence):
                before = len(codes)
                numbers = position.values or [1.0] * len(position.names)
                for name, number in zip(position.names, numbers, strict=True):
                    if number == 0:  # says nothing, and is no new feature
                        continue
                    if position.values is not None:
                        values[len(codes)] = number
                    code = known.get(name)
                    codes.append(n_known + unknown[name] if code is None else code)
                for group in position.groups:
                    old, new = groups.get(group) or self._coded(group)
                    codes += old
                    if new:
                        codes += [n_known + unknown[name] for name in new]
                texts.append(position.text)
                counts.append(len(codes) - before)
        added = sorted(unknown)
        "".join(added).encode()  # fails on what is no text
        flat = np.array(codes, np.int32)
        if added:
            rank = np.empty(len(added), np.int32)
            rank[[unknown[name] for name in added]] = np.arange(len(added), dtype=np.int32)
            is_new = flat >= n_known
            flat[is_new] = n_known + rank[flat[is_new] - n_known]
        rows = np.array(counts, np.int64), flat, _numbers(values, len(flat))
        features = Features(*canonical_rows(*rows, n_known + len(added)))
        is_strange = flat.size > 0 and int(flat.min()) >= n_known
        symbols = np.full(len(texts), MISSING, np.int32)
        no_labels = symbols
        if self._needs.symbols:
            symbols = self._symbol_codes(features, texts, added)
        if added and not self._needs.new_features:
            features = _known(features, n_known)
        packed = PackedSequences(offsets_from_lengths(lengths), symbols, features, no_labels, self._vocabulary)
        return PackedRaw(packed, is_strange)

    def _coded(self, group: Group) -> tuple[list[int], list[str]]:
        """Codes of the known names of a group, and the other names."""
        if len(self._groups) > REMEMBERED:
            self._groups.clear()
        codes = [self._features[name] for name in group if name in self._features]
        coded = self._groups[group] = codes, [name for name in group if name not in self._features]
        return coded

    def _symbol_codes(self, features: Features, texts: Sequence[str | None], added: Sequence[str]) -> Ints:
        """The identity of every observation: its text, or the digest of its features."""
        names = [text or "" for text in texts]
        if None in texts:
            digests = sum_lanes(features, self._lanes_of(features.indices, added)).tobytes()
            for position, text in enumerate(texts):
                if text is None:
                    names[position] = FEATURE_SET_MARK + digests[16 * position : 16 * position + 16].hex()
        new = sorted({name for name in names if name not in self._symbols})
        code_of = {name: len(self._symbols) + rank for rank, name in enumerate(new)}
        return np.array([code_of[name] if name in code_of else self._symbols[name] for name in names], np.int32)

    def _lanes_of(self, indices: Ints, added: Sequence[str]) -> NDArray[np.uint64]:
        """The lanes of every entry, shape (nnz, 2), drawn when they are first needed; new features are the last."""
        is_known = indices < len(self._features)
        used = indices[is_known]
        missing = np.unique(used[~self._has_lanes[used]])
        if len(missing):
            self._lanes[missing] = name_lanes([self._names[code] for code in missing])
            self._has_lanes[missing] = True
        if not added:
            return self._lanes[indices]
        lanes = np.empty((len(indices), 2), np.uint64)
        lanes[is_known] = self._lanes[used]
        lanes[~is_known] = name_lanes(added)[indices[~is_known] - len(self._features)]
        return lanes


def _numbers(values: dict[int, float], size: int) -> NDArray[np.float64] | None:
    """The values of all features; None where nobody gave any."""
    if not values:
        return None
    numbers = np.ones(size)
    numbers[list(values)] = list(values.values())
    if not np.isfinite(numbers).all():
        raise UnusualError
    return numbers


def _known(features: Features, n_known: int) -> Features:
    """Without the features that the vocabulary does not have."""
    is_known = features.indices < n_known
    before = offsets_from_lengths(is_known)
    values = None if features.values is None else features.values[is_known]
    return Features(before[features.indptr], features.indices[is_known], values)
