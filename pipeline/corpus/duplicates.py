"""Structures that occur more than once: fingerprints of what is observed, whatever their labels are."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from gramline.kernels.packing import MISSING, LinkedPacked, Offsets, PackedTagged
from gramline.pipeline.corpus.corpus import Corpus

DIGEST_BYTES = 16


def structure_fingerprints(corpus: Corpus) -> list[str]:
    """A hash per structure of its observations, tags and links, in the order of its positions; labels do not count.

    Equal in every corpus and process for equal structures. An observation is the token, or its features with their
    values; the word behind a feature set does not count.

    >>> from gramline.pipeline import Corpus
    >>> first, second, third = structure_fingerprints(Corpus.from_sequences([["a", "b"], ["a"], ["a", "b"]]))
    >>> first == third, first == second
    (True, False)
    """
    packed = corpus.packed()
    names = [
        blake2b(name.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
        for name in packed.vocabulary.symbols
    ]
    names.append(bytes(DIGEST_BYTES))  # what MISSING looks up: the bare symbol of a parse
    of_symbol = np.frombuffer(b"".join(names), f"V{DIGEST_BYTES}")
    assert MISSING == -1
    observed = of_symbol[packed.symbols]
    tags = (
        np.array([*packed.vocabulary.features, ""], object)[packed.tags] if isinstance(packed, PackedTagged) else None
    )
    prints: list[str] = []
    for first, last in zip(packed.starts[:-1].tolist(), packed.starts[1:].tolist(), strict=True):
        digest = blake2b(corpus.kind.encode(), digest_size=DIGEST_BYTES)
        digest.update(observed[first:last].tobytes())
        if tags is not None:
            digest.update("\x1f".join(tags[first:last]).encode("utf-8", "surrogatepass"))
        if isinstance(packed, LinkedPacked):
            indptr = packed.link_indptr[first : last + 1]
            digest.update(np.diff(indptr).astype("<i8").tobytes())
            digest.update(packed.link_targets[indptr[0] : indptr[-1]].astype("<i8").tobytes())
        prints.append(digest.hexdigest())
    return prints


def duplicate_groups(corpus: Corpus) -> Offsets:
    """For every structure the number of the first one equal to it (or its own), shape (n_structures,).

    Structures with the same number belong into one fold: trained on one, a kernel has seen the other.

    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_sequences([["a", "b"], ["a"], ["a", "b"]], [["X", "Y"], ["X"], ["Y", "Y"]])
    >>> duplicate_groups(corpus).tolist()
    [0, 1, 0]
    """
    first: dict[str, int] = {}
    numbers = [first.setdefault(name, number) for number, name in enumerate(structure_fingerprints(corpus))]
    return np.array(numbers, np.int64)
