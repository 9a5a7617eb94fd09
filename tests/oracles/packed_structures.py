"""Packed corpora written out by hand from nested lists, for kernel tests that should not need the pipeline."""

import json

import numpy as np

from gramline.kernels.packing import (
    Features,
    LinkedPacked,
    PackedDags,
    PackedParses,
    PackedSequences,
    PackedTagged,
    PackedTrees,
    Vocabulary,
)


def no_features(n):
    return Features(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), None)


def pack_parses(trees, vocabulary=None):
    """Nested lists ["S", ["NP", "they"], ...] as PackedParses; pass one dict for corpora that shall meet."""
    codes = {} if vocabulary is None else vocabulary
    starts, symbols, indptr, targets = [0], [], [0], []
    for tree in trees:
        children = []
        waiting = [(tree, None)]
        while waiting:
            node, parent = waiting.pop()
            number = len(children)
            children.append([])
            if parent is not None:
                children[parent].append(number)
            key = json.dumps([node[0], *(child if isinstance(child, str) else [child[0]] for child in node[1:])])
            symbols.append(codes.setdefault(key, len(codes)) if len(node) > 1 else -1)
            waiting += [(child, number) for child in reversed(node[1:]) if not isinstance(child, str)]
        for own in children:
            targets += own
            indptr.append(len(targets))
        starts.append(len(symbols))
    return PackedParses(
        starts=np.array(starts),
        symbols=np.array(symbols, np.int32),
        features=no_features(len(symbols)),
        labels=np.full(len(symbols), -1, np.int32),
        vocabulary=Vocabulary(symbols=tuple(codes)),
        link_indptr=np.array(indptr),
        link_targets=np.array(targets, np.int32),
    )


def pack_tagged(sentences, words=None, tags=None):
    """[[(word, tag), ...], ...] as PackedTagged; pass the dicts for corpora that shall meet."""
    words, tags = ({} if words is None else words), ({} if tags is None else tags)
    flat = [pair for sentence in sentences for pair in sentence]
    symbols = [words.setdefault(word, len(words)) for word, _ in flat]
    codes = [tags.setdefault(tag, len(tags)) for _, tag in flat]
    return PackedTagged(
        starts=np.cumsum([0, *map(len, sentences)]),
        symbols=np.array(symbols, np.int32),
        features=no_features(len(flat)),
        labels=np.full(len(flat), -1, np.int32),
        vocabulary=Vocabulary(symbols=tuple(words), features=tuple(tags)),
        tags=np.array(codes, np.int32),
    )


def pack_nodes(structures, links=None, *, kind=None, n_labels=1, table=None):
    """Structures of symbol numbers as sequences, or with links[i][node] = target nodes as trees or DAGs."""
    flat = np.array([symbol for structure in structures for symbol in structure], np.int32)
    given = {
        "starts": np.cumsum([0, *map(len, structures)]),
        "symbols": flat,
        "features": no_features(len(flat)),
        "labels": np.full(len(flat), -1, np.int32),
        "vocabulary": Vocabulary(
            symbols=tuple(f"w{code}" for code in range(50)), labels=tuple(f"y{code}" for code in range(n_labels))
        ),
        "table": table,
    }
    if links is None:
        return PackedSequences(**given)
    packed: type[LinkedPacked] = PackedTrees if kind == "trees" else PackedDags
    targets = [own for structure in links for own in structure]
    return packed(
        **given,
        link_indptr=np.cumsum([0, *map(len, targets)]),
        link_targets=np.array([target for own in targets for target in own], np.int32),
    )
