"""Hypothesis generators for structures and kernels, and the plainest way to pack sequences for a kernel test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from gramline.kernels import (
    EmpiricalPrior,
    Gaussian,
    Identity,
    Linear,
    Polynomial,
    SequenceLabeling,
    Substitution,
    Sum,
    TabulatedPrior,
    UniformPrior,
)
from gramline.kernels.packing import MISSING, Features, PackedSequences, Vocabulary

ALPHABET = "abcde"
LABELS = ("B", "I", "O")
Bag = Mapping[str, float]


def symbol_of(bag: Bag) -> str:
    """The identity of an observation as a string; a bag of one name is called by that name."""
    return "|".join(name if value == 1 else f"{name}={value!r}" for name, value in sorted(bag.items()))


def pack(
    sequences: Sequence[Sequence[Bag]],
    labels: Sequence[Sequence[str | None]] | None = None,
    tables: Sequence[Sequence[Sequence[float]]] | None = None,
    like: PackedSequences | None = None,
    label_names: Sequence[str] = LABELS,
    binary: bool | None = None,
) -> PackedSequences:
    """Bags of feature values (or None for `labels`: all missing) as packed sequences in an extended vocabulary."""
    known = like.vocabulary if like is not None else Vocabulary(labels=tuple(label_names))
    flat = [bag for sequence in sequences for bag in sequence]
    symbols = list(known.symbols) + sorted({symbol_of(bag) for bag in flat} - set(known.symbols))
    features = list(known.features) + sorted({name for bag in flat for name in bag} - set(known.features))
    entries = [sorted((features.index(name), float(value)) for name, value in bag.items()) for bag in flat]
    values = np.array([value for row in entries for _, value in row])
    is_binary = bool((values == 1).all()) if binary is None else binary
    codes = [MISSING] * len(flat)
    if labels is not None:
        names = [name for sequence in labels for name in sequence]
        codes = [MISSING if name is None else known.labels.index(name) for name in names]
    return PackedSequences(
        starts=np.cumsum([0, *(len(sequence) for sequence in sequences)]),
        symbols=np.array([symbols.index(symbol_of(bag)) for bag in flat], np.int32),
        features=Features(
            np.cumsum([0, *(len(row) for row in entries)]),
            np.array([column for row in entries for column, _ in row], np.int32),
            None if is_binary else values,
        ),
        labels=np.array(codes, np.int32),
        vocabulary=Vocabulary(tuple(symbols), tuple(features), known.labels),
        table=None if tables is None else np.array([row for table in tables for row in table], float),
    )


def words(text: str) -> list[list[Bag]]:
    """'ab c' as two sequences of one-letter observations."""
    return [[{letter: 1.0} for letter in word] for word in text.split()]


letters = st.sampled_from(ALPHABET).map(lambda letter: {letter: 1.0})
binary_bags = st.sets(st.sampled_from(ALPHABET)).map(lambda names: dict.fromkeys(names, 1.0))
real_bags = st.dictionaries(st.sampled_from(ALPHABET), st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0]))


def sequences_of(
    bags: st.SearchStrategy[dict[str, float]], longest: int = 5, most: int = 5
) -> st.SearchStrategy[list[list[dict[str, float]]]]:
    return st.lists(st.lists(bags, min_size=1, max_size=longest), min_size=1, max_size=most)


@st.composite
def packed_sequences(
    draw: st.DrawFn, bags: st.SearchStrategy[dict[str, float]] = letters, longest: int = 5
) -> PackedSequences:
    """Sequences with labels (some missing, at least one given) and a prior table."""
    sequences = draw(sequences_of(bags, longest))
    names = st.sampled_from([*LABELS, None])
    labels = [[draw(names) for _ in sequence] for sequence in sequences]
    labels[0][0] = "B"
    tables = [[draw(distributions()) for _ in sequence] for sequence in sequences]
    return pack(sequences, labels, tables)


@st.composite
def distributions(draw: st.DrawFn) -> list[float]:
    """A prior row over LABELS, also with zeros."""
    counts = draw(st.lists(st.integers(0, 4), min_size=len(LABELS), max_size=len(LABELS)).filter(any))
    return [count / sum(counts) for count in counts]


@st.composite
def label_kernels(draw: st.DrawFn) -> list[list[float]]:
    """Positive semidefinite, with negative entries and sometimes singular."""
    entry = st.integers(-2, 2)
    root = np.array([[draw(entry) for _ in LABELS] for _ in LABELS], float)
    return (root @ root.T / 4).tolist()


simple_kernels = st.one_of(
    st.just(Identity()),
    st.builds(Linear, normalized=st.booleans()),
    st.builds(
        Polynomial,
        degree=st.integers(1, 3),
        coef0=st.sampled_from([0.0, 0.5, 1.0]),
        normalized=st.booleans(),
        unit=st.booleans(),
    ),
    st.builds(Gaussian, st.sampled_from([0.1, 1.0]), normalized=st.booleans(), unit=st.booleans()),
)
observation_kernels = st.one_of(
    simple_kernels,
    st.builds(Sum, simple_kernels, simple_kernels, weight=st.sampled_from([0.5, 2.0]), normalized=st.booleans()),
)
letter_kernels = st.one_of(
    observation_kernels,
    st.builds(
        Substitution,
        st.just(ALPHABET),
        st.just((np.eye(5) * 2 + 0.5).tolist()),
        normalized=st.booleans(),
    ),
)
priors = st.one_of(
    st.just(UniformPrior()), st.just(TabulatedPrior()), st.builds(EmpiricalPrior, st.sampled_from([0.5, 1]))
)


def sequence_kernels(
    observations: st.SearchStrategy[object] = letter_kernels,
) -> st.SearchStrategy[SequenceLabeling]:
    return st.builds(
        SequenceLabeling,
        c=st.sampled_from([0.3, 0.8, 1, 1.2]),
        gap=st.sampled_from([0.0, 0.4, 1.0]),
        observation=observations,
        prior=priors,
        label_kernel=st.none() | label_kernels(),
    )
