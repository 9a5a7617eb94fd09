"""The content of a corpus as one short string: equal content, equal numbers downstream, equal fingerprint.

Counts: the kind, the order of structures, observations, features, links, labels, label order, prior and tags.
Does not count: ids, groups, file names, chunks, dictionaries, or the words behind feature sets.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.corpus.flat import FlatCorpus, Names
from gramline.pipeline.corpus.names import ranked

FINGERPRINT_VERSION = 1


def fingerprint(flat: FlatCorpus, kind: str, label_names: tuple[str, ...]) -> str:
    """SHA-256 over every part that decides numbers, each written as name, byte count, little-endian bytes."""
    digest = hashlib.sha256(f"gramline corpus {FINGERPRINT_VERSION}".encode())

    def put(name: str, content: bytes) -> None:
        digest.update(f"|{name}:{len(content)}|".encode())
        digest.update(content)

    def put_array(name: str, array: NDArray[np.generic] | None, dtype: str) -> None:
        if array is not None:
            put(name, np.ascontiguousarray(array, dtype=dtype).tobytes())

    def put_names(name: str, strings: Names | None) -> None:
        if strings is not None:
            put(f"{name} names", json.dumps(strings.names).encode())
            put_array(f"{name} codes", strings.codes, "<i4")

    put("kind", kind.encode())
    put("labels", json.dumps(label_names).encode())
    put_array("starts", flat.starts, "<i8")
    observed = np.where(flat.own, flat.texts.codes, -1)
    put_names("texts", Names(*ranked(flat.texts.names, observed)))
    put_array("own", flat.own, "|b1")
    put_array("feature rows", flat.feature_indptr, "<i8")
    put_names("features", flat.features)
    put_array("values", flat.values, "<f8")
    put_array("link rows", flat.link_indptr, "<i8")
    put_array("links", flat.links, "<i4")
    if flat.labels is not None and (flat.labels.codes >= 0).any():
        put_names("label", flat.labels)
    put_array("prior", flat.prior, "<f8")
    put_names("tags", flat.tags)
    return digest.hexdigest()
