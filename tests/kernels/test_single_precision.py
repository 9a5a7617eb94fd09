"""Tiles in single precision: how far from double precision, alone or among others, and what overflows on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes
from strategies import pack

from gramline.kernels import (
    DagLabeling,
    EmpiricalPrior,
    Gaussian,
    Identity,
    Linear,
    Polynomial,
    PositionKernel,
    SequenceLabeling,
    Substitution,
    Sum,
    TabulatedPrior,
    TreeLabeling,
)
from gramline.kernels import marginalized as marginalized_module
from gramline.kernels.errors import KernelOverflowError
from gramline.kernels.marginalized import PositionLabeling
from gramline.kernels.observations import products
from gramline.kernels.packing import Features, Packed, PackedSequences, Vocabulary
from gramline.kernels.sequences import labeling as sequences
from gramline.kernels.trees import labeling as trees

ERROR = 1e-6  # relative, of every value; rounding alone makes 6e-8
LABELS = ("B", "I", "O")
POSITIVE_LABEL_KERNEL = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]]
NEGATIVE_LABEL_KERNEL = [[1.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 1.0]]


def lengths_of(rng: np.random.Generator, n: int) -> list[int]:
    lengths: list[int] = []
    while sum(lengths) < n:
        lengths.append(int(min(rng.integers(1, 30), n - sum(lengths))))
    return lengths


def spelled(seed: int, n: int = 300, *, real: bool = False) -> PackedSequences:
    """Sequences whose positions have some 20 of 400 features, a few of them frequent; every fifth position repeats."""
    rng = np.random.default_rng(seed)
    rows = [np.unique(np.minimum(rng.zipf(1.3, 30), 400)) for _ in range(n)]
    for position in range(5, n, 5):
        rows[position] = rows[position - 5]
    values = [np.random.default_rng(row.sum()).normal(size=len(row)) for row in rows] if real else None
    indices = np.concatenate(rows).astype(np.int32)
    codes: dict[bytes, int] = {}
    table = rng.dirichlet([1, 1, 1], n)
    return PackedSequences(
        starts=np.cumsum([0, *lengths_of(rng, n)]),
        symbols=np.array([codes.setdefault(row.tobytes(), len(codes)) for row in rows], np.int32),
        features=Features(np.cumsum([0, *map(len, rows)]), indices, None if values is None else np.concatenate(values)),
        labels=rng.integers(0, 3, n).astype(np.int32),
        vocabulary=Vocabulary(tuple(map(str, codes.values())), tuple(map(str, range(401))), LABELS),
        table=table,
    )


def linked(kind: str, n_symbols: int) -> Packed:
    """Trees or graphs of up to 30 nodes with that many different observations."""
    rng = np.random.default_rng(11)
    symbols, links = [], []
    for size in lengths_of(rng, 260):
        symbols.append(rng.integers(0, n_symbols, size).tolist())
        following: list[list[int]] = [[] for _ in range(size)]
        for node in range(1, size):
            following[int(rng.integers(max(0, node - 5), node))].append(node)
        links.append(following)
    return pack_nodes(symbols, links, kind=kind, n_labels=2)


def letters() -> Packed:
    rng = np.random.default_rng(5)
    return pack([[{"abcd"[code]: 1.0} for code in rng.integers(0, 4, size)] for size in lengths_of(rng, 250)])


SIMILAR = Substitution("abcd", (np.eye(4) + 0.25).tolist())
KERNELS: list[tuple[PositionLabeling, Any]] = [
    (SequenceLabeling(0.8, observation=Polynomial(2, normalized=True)), spelled),
    (SequenceLabeling(0.01, observation=Polynomial(2)), spelled),
    (SequenceLabeling(reach=0.3, observation=Polynomial(2, unit=True, normalized=True)), spelled),
    (SequenceLabeling(0.3, observation=Linear(normalized=True), prior=TabulatedPrior()), spelled),
    (SequenceLabeling(0.001, observation=Polynomial(4, 0.5), prior=EmpiricalPrior()), spelled),
    (SequenceLabeling(0.8, observation=Polynomial(9, normalized=True)), spelled),
    (SequenceLabeling(0.8, observation=Polynomial(2, 1e5, normalized=True)), spelled),
    (SequenceLabeling(0.8, observation=Gaussian(0.05), label_kernel=POSITIVE_LABEL_KERNEL), spelled),
    (SequenceLabeling(0.8, observation=Gaussian(3.0, unit=True)), spelled),
    (SequenceLabeling(0.8, observation=Sum(Identity(), Polynomial(2), normalized=True)), spelled),
    (SequenceLabeling(0.8, observation=Polynomial(2, normalized=True), label_kernel=NEGATIVE_LABEL_KERNEL), spelled),
    (SequenceLabeling(0.8, gap=0.5), spelled),
    (SequenceLabeling(reach=0.2, gap=0.7, observation=Polynomial(2, normalized=True), prior=TabulatedPrior()), spelled),
    (SequenceLabeling(0.8, prior=TabulatedPrior()), spelled),
    (SequenceLabeling(0.8), letters),
    (SequenceLabeling(0.8, observation=SIMILAR), letters),
    (PositionKernel(Polynomial(2, unit=True, normalized=True)), spelled),
    (PositionKernel(Linear(), c=0.3), spelled),
    (TreeLabeling(0.8), lambda: linked("trees", 40)),
    (TreeLabeling(0.8), lambda: linked("trees", 3)),
    (DagLabeling(0.7), lambda: linked("dags", 4)),
    (SequenceLabeling(0.5, observation=Linear()), lambda: spelled(4, real=True)),
    (SequenceLabeling(0.5, observation=Gaussian(0.1)), lambda: spelled(4, real=True)),
]
every_kernel = pytest.mark.parametrize(("kernel", "corpus"), KERNELS, ids=[repr(kernel) for kernel, _ in KERNELS])


def ready(kernel: PositionLabeling, corpus: Any) -> Packed:
    return kernel.prepare(corpus(3) if corpus is spelled else corpus())


def largest_error(single: Any, double: Any) -> float:
    """Relative, over all values that are not smaller than float32's smallest normal number."""
    is_normal = np.abs(double) > np.finfo(np.float32).tiny
    assert is_normal.any()
    return float((np.abs(single.astype(float) - double)[is_normal] / np.abs(double)[is_normal]).max())


@every_kernel
def test_differs_by_a_few_roundings(kernel: PositionLabeling, corpus: Any) -> None:
    packed = ready(kernel, corpus)
    rows, cols = packed.structures(0, len(packed) // 2), packed.structures(len(packed) // 2, len(packed))
    for a, b in ((rows, cols), (cols, rows), (packed, packed)):
        single, double = kernel.tile(a, b, np.float32), kernel.tile(a, b)
        assert single.dtype == np.float32
        assert largest_error(single, double) < ERROR
        assert not single[double == 0].any()


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_does_not_depend_on_the_others_of_its_tile(
    kernel: PositionLabeling, corpus: Any, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = ready(kernel, corpus)
    half = len(packed) // 2
    rows, cols = packed.structures(0, half), packed.structures(half, len(packed))
    whole = kernel.tile(rows, cols, dtype)
    for a, b, u, v in ((0, half, 1, 4), (2, 3, 0, len(cols)), (1, half - 1, 2, 3), (half - 2, half, 1, len(cols))):
        part = kernel.tile(rows.structures(a, b), cols.structures(u, v), dtype)
        sub = whole[rows.starts[a] : rows.starts[b], cols.starts[u] : cols.starts[v]]
        assert part.tobytes() == sub.tobytes()
    square, few = kernel.tile(packed, packed, dtype), packed.structures(2, half)
    inside = slice(int(packed.starts[2]), int(packed.starts[half]))
    assert kernel.tile(few, few, dtype).tobytes() == square[inside, inside].tobytes()
    monkeypatch.setattr(sequences, "CHUNK_COLUMNS", 37)
    monkeypatch.setattr(sequences, "COUNTED_COLUMNS", 37)
    monkeypatch.setattr(trees, "CHUNK_COLUMNS", 37)
    assert kernel.tile(rows, cols, dtype).tobytes() == whole.tobytes()


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_route_gives_the_same_bytes(
    kernel: PositionLabeling, corpus: Any, dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = ready(kernel, corpus)
    rows, cols = packed.structures(0, len(packed) // 2), packed.structures(len(packed) // 2, len(packed))
    found = set()
    for share, cost in ((0.0, 1e9), (2.0, 1e9), (0.0, 0.0)):
        for module in (sequences, trees):
            monkeypatch.setattr(module, "SPARSE_SHARE", share)
        monkeypatch.setattr(products, "GATHER_COST", cost)
        found.add(kernel.tile(rows, cols, dtype).tobytes())
    assert len(found) == 1


class TestWhatOverflowsOnTheWay:
    """A product of large numbers with a small c^2: every value fits, but not what it is made of."""

    kernel = SequenceLabeling(c=4e-19, observation=Polynomial(30))

    def packed(self) -> Packed:
        rng = np.random.default_rng(0)
        names = [f"f{number}" for number in range(60)]
        small = [[dict.fromkeys(rng.choice(names[:9], 4), 1.0) for _ in range(size)] for size in (3, 5, 2, 4)]
        large = [[dict.fromkeys(names, 1.0)]]
        return self.kernel.prepare(pack([*small[:2], *large, *small[2:]]))

    def test_is_computed_in_double_precision(self) -> None:
        packed = self.packed()
        double = self.kernel.tile(packed, packed)
        assert 1e8 < double.max() < 1e30
        with pytest.MonkeyPatch.context() as patch:
            mended: list[tuple[int, int]] = []
            original = PositionLabeling.mend

            def noted(self: Any, rows: Any, cols: Any, strip: Any, out: Any) -> None:
                mended.append((len(rows), len(cols)))
                original(self, rows, cols, strip, out)

            patch.setattr(marginalized_module.PositionLabeling, "mend", noted)
            single = self.kernel.tile(packed, packed, np.float32)
        assert (1, 1) in mended
        assert largest_error(single, double) < ERROR

    def test_and_its_neighbours_are_not(self) -> None:
        packed = self.packed()
        others = [packed.structures(0, 2), packed.structures(3, 5)]
        whole = self.kernel.tile(packed, packed, np.float32)
        places = [slice(0, int(packed.starts[2])), slice(int(packed.starts[3]), int(packed.starts[5]))]
        for a, rows in zip(others, places, strict=True):
            for b, cols in zip(others, places, strict=True):
                assert self.kernel.tile(a, b, np.float32).tobytes() == whole[rows, cols].tobytes()

    def test_a_value_that_fits_neither_way_is_refused(self) -> None:
        kernel = PositionKernel(observation=Polynomial(30))
        packed = self.packed()
        with pytest.raises(KernelOverflowError) as caught:
            kernel.tile(packed, packed, np.float32)
        assert (caught.value.row, caught.value.column, caught.value.dtype) == (2, 2, "float32")
        assert "float64" in caught.value.advice

    @pytest.mark.parametrize("kernel", [TreeLabeling(c=2.0), DagLabeling(c=2.0)], ids=repr)
    def test_deep_chains(self, kernel: PositionLabeling) -> None:
        chains = [[[node + 1] if node + 1 < size else [] for node in range(size)] for size in (200, 3)]
        packed = kernel.prepare(pack_nodes([[0] * 200, [0] * 3], chains, kind=kernel.packed_kind))
        assert np.isfinite(kernel.tile(packed, packed)).all()
        with pytest.raises(KernelOverflowError) as caught:
            kernel.tile(packed, packed, np.float32)
        assert (caught.value.row, caught.value.column) == (0, 0)


def test_equal_pairs_that_overflow_are_left_to_the_sweeps() -> None:
    kernel = SequenceLabeling(c=2.0)
    packed = kernel.prepare(pack([*[[{f"x{k}": 1.0}] for k in range(40)], [{"a": 1.0}] * 400, [{"b": 1.0}] * 3]))
    with pytest.raises(KernelOverflowError) as caught:
        kernel.tile(packed, packed, np.float32)
    assert (caught.value.row, caught.value.column) == (40, 40)
