"""Linear, Polynomial, Gaussian and their sums against dictionaries of features, on every route of the products."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import observations as oracle
from strategies import binary_bags, observation_kernels, pack, real_bags, sequences_of
from tolerances import assert_close

from gramline.kernels import Gaussian, Identity, Linear, Polynomial, Sum
from gramline.kernels.observations import count_loops, product_loops, products
from gramline.kernels.observations.base import GatheredStrips
from gramline.kernels.observations.count_loops import SinglePowers
from gramline.kernels.observations.indexed import room_for_columns
from gramline.kernels.observations.product_loops import RowSlots, SlottedColumns
from gramline.kernels.packing import Features, PackedSequences


def values(kernel, rows, cols):
    out = np.full((rows.n_positions, cols.n_positions), np.nan)
    strips = kernel.strips(rows, cols)
    for first in range(0, len(out), 3):
        strips.fill(first, min(first + 3, len(out)), out[first : first + 3])
    return out


def comparison(kernel):
    compare = {
        Identity: lambda: lambda x, y: float(x == y),
        Linear: lambda: oracle.dot,
        Polynomial: lambda: oracle.polynomial(kernel.degree, kernel.coef0),
        Gaussian: lambda: oracle.gaussian(kernel.gamma),
        Sum: lambda: oracle.added(comparison(kernel.first), comparison(kernel.second), kernel.weight),
    }[type(kernel)]()
    if isinstance(kernel, Polynomial | Gaussian) and kernel.unit:
        compare = oracle.of_unit_rows(compare)
    return oracle.normalized(compare) if kernel.normalized else compare


def expected(kernel, rows, cols):
    compare = comparison(kernel)
    return [[compare(x, y) for sequence in cols for y in sequence] for part in rows for x in part]


bags = st.one_of(sequences_of(binary_bags), sequences_of(real_bags))


@given(bags, bags, observation_kernels)
@settings(max_examples=150)
def test_values(rows, cols, kernel):
    left = pack(rows)
    right = pack(cols, like=left)
    assert_close(values(kernel, left, right), expected(kernel, rows, cols))


@pytest.mark.parametrize(
    "kernel",
    [Linear(), Polynomial(3, normalized=True), Polynomial(unit=True), Gaussian(0.05), Gaussian(0.5, unit=True)],
    ids=repr,
)
@pytest.mark.parametrize("is_binary", [True, False])
@pytest.mark.parametrize("gather_cost", [0.0, 1e9])
@pytest.mark.parametrize("dense_share", [0.0, 0.2, 2.0])
def test_every_route_gives_the_same(kernel, is_binary, gather_cost, dense_share, monkeypatch):
    rng = np.random.default_rng(5)
    names = [f"f{i}" for i in range(12)]
    popularity = np.linspace(0.9, 0.02, 12)

    def corpus(n):
        picked = [
            [name for name, share in zip(names, popularity, strict=True) if rng.random() < share] for _ in range(n)
        ]
        return [[{name: 1.0 if is_binary else float(rng.normal()) for name in bag}] for bag in picked]

    rows, cols = corpus(11), corpus(70)
    rows += rows[:2]
    cols += cols[:3] + rows[:2]
    left = pack(rows)
    right = pack(cols, like=left)
    monkeypatch.setattr(products, "GATHER_COST", gather_cost)
    monkeypatch.setattr(products, "DENSE_SHARE_OF_COUNTS", dense_share)
    monkeypatch.setattr(products, "DENSE_SHARE_OF_SUMS", dense_share)
    assert isinstance(kernel.strips(left, right), GatheredStrips) == (gather_cost == 0)
    assert_close(values(kernel, left, right), expected(kernel, rows, cols))


@pytest.mark.parametrize("size", [255, 256, 65536])
@pytest.mark.parametrize("kernel", [Linear(), Gaussian(1e-5)], ids=repr)
def test_counts_are_wide_enough(size, kernel):
    indices = np.concatenate([np.arange(size), np.arange(size), [0, size + 7]])
    packed = PackedSequences(
        starts=np.array([0, 3]),
        symbols=np.array([0, 0, 1]),
        features=Features(np.array([0, size, 2 * size, 2 * size + 2]), indices, None),
        labels=np.array([-1, -1, -1]),
    )
    products_of = np.array([[size, size, 1.0], [size, size, 1.0], [1.0, 1.0, 2.0]])
    if isinstance(kernel, Gaussian):
        sizes = products_of.diagonal()
        products_of = np.exp(-1e-5 * (sizes[:, None] + sizes - 2 * products_of))
    assert_close(values(kernel, packed, packed), products_of)


def test_dense_real_features():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, 30))
    packed = PackedSequences(
        starts=np.array([0, 20]),
        symbols=np.arange(20),
        features=Features(np.arange(21) * 30, np.tile(np.arange(30), 20), table.ravel()),
        labels=np.full(20, -1),
    )
    assert_close(values(Linear(), packed, packed), table @ table.T)
    assert_close(values(Polynomial(2), packed, packed), (table @ table.T + 1) ** 2)


@given(sequences_of(real_bags))
@settings(max_examples=40)
def test_real_values_do_not_depend_on_the_tile(rows):
    packed = pack(rows, binary=False)
    whole = values(Linear(), packed, packed)
    assert np.array_equal(whole, whole.T)
    first = packed.structures(0, 1)
    assert np.array_equal(values(Linear(), first, packed), whole[: first.n_positions])


def test_tokens_without_features():
    packed = pack([[{}, {"a": 1.0}], [{}]])
    assert_close(values(Linear(normalized=True), packed, packed), np.diag([0.0, 1.0, 0.0]))
    assert_close(values(Polynomial(2), packed, packed), [[1, 1, 1], [1, 4, 1], [1, 1, 1]])
    assert_close(values(Gaussian(1.0), packed, packed)[0], [1.0, np.exp(-1.0), 1.0])


def test_no_features_at_all():
    packed = pack([[{}], [{}]])
    assert np.array_equal(values(Linear(), packed, packed), np.zeros((2, 2)))


@given(bags, observation_kernels)
@settings(max_examples=60)
def test_diagonal_is_before_normalization(rows, kernel):
    packed = pack(rows)
    plain = type(kernel)(**(kernel.get_params() | {"normalized": False}))
    assert_close(kernel.diagonal(packed), values(plain, packed, packed).diagonal())


def test_numpy_numbers_become_plain_ones():
    kernel = Polynomial(np.int64(3), np.float32(0.5), np.bool_(True))
    assert repr(kernel) == "Polynomial(degree=3, coef0=0.5, normalized=True, unit=False)"
    assert Polynomial(2.0) == Polynomial(2)


class TestCompiledEqualsInterpreted:
    features = Features(
        np.array([0, 2, 2, 5, 9, 13]), np.array([0, 3, 1, 3, 7, 0, 1, 3, 9, 0, 1, 2, 3]), np.linspace(-1, 2, 13)
    )

    @pytest.mark.parametrize("least", [1, 2, 3, 99])
    def test_products(self, least):
        results = []
        for pick in (lambda f: f, lambda f: f.py_func):
            f = self.features
            slots, col_slots, n_dense, rare = pick(product_loops.assign_slots)(f.indices, f.indices, least)
            assert np.array_equal(pick(product_loops.count_columns)(f.indices, f.indices)[[0, 1, 3]], [3, 3, 4])
            rare_cols, sums = np.empty(rare[-1], np.int32), np.empty((5, 5))
            cols = SlottedColumns(np.empty((n_dense, 5)), rare, rare_cols, np.empty(rare[-1]))
            pick(product_loops.place_features)(f.indptr, col_slots, f.values, cols)
            pick(product_loops.fill_products)(0, RowSlots(f.indptr, slots, f.values), cols, sums)
            results.append(sums)
        assert np.array_equal(*results)

    @pytest.mark.parametrize("least", [1, 2, 3, 99])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
    def test_counts(self, least, dtype, monkeypatch):
        f = self.features
        slots, col_slots, n_dense, rare = product_loops.assign_slots(f.indices, f.indices, least)
        rows, singles = RowSlots(f.indptr, slots, np.empty(0)), np.linspace(0.5, 1.5, 5, dtype=np.float32)
        inner = {
            name: getattr(count_loops, name)
            for name in ("room_for_counts", "raised", "raise_counts", "raise_cosines", "scale_line")
        }
        results = []
        for pick in (lambda f: f, lambda f: f.py_func):
            for name, loop in inner.items():
                monkeypatch.setattr(count_loops, name, pick(loop))
            cols = room_for_columns(n_dense, 5, rare, counts=True)
            pick(count_loops.place_columns)(f.indptr, col_slots, cols)
            counts = np.empty((2, 64 * cols.dense.shape[1]), dtype)
            table, counted, distances = np.arange(20.0), np.empty((5, 5)), np.empty((5, 5))
            pick(count_loops.fill_from_counts)(0, rows, cols, table, counts, counted)
            pick(count_loops.fill_from_distances)(0, rows, cols, np.diff(f.indptr), table, counts, distances)
            pick(count_loops.count_common)(3, rows, cols, count_loops.room_for_counts(cols), counts)
            powers, lines = np.empty((2, 4, 5, 5), np.float32), np.empty((2, 4, 2, 5), np.float32)
            for number, units in enumerate((singles[:0], singles)):
                for degree in range(1, 5):
                    how = SinglePowers(np.float32(0.5), degree, singles, singles, units, units)
                    pick(count_loops.raise_rows)(3, (0, 5), counts, how, lines[number, degree - 1])
                    room, power = np.empty_like(counts), powers[number, degree - 1]
                    pick(count_loops.fill_powers)(0, rows, cols, 5, how, room, power)
            results.append((counted, distances, counts[:, :5], powers, lines))
        for compiled, interpreted in zip(*results, strict=True):
            assert np.array_equal(compiled, interpreted)

    @pytest.mark.parametrize("is_compiled", [True, False])
    def test_lines(self, is_compiled, monkeypatch):
        dense = np.random.default_rng(3).integers(0, 1 << 63, (60, 8), np.uint64)
        dense[-1] = 0
        bits = np.unpackbits(dense.view(np.uint8)[:, :, None], axis=2, bitorder="little")  # of a line, a byte
        if not is_compiled:
            for name in ("add_bits", "add_eight", "interleave", "spread", "sum_lines"):
                monkeypatch.setattr(count_loops, name, getattr(count_loops, name).py_func)
        nothing = np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0)
        room = count_loops.room_for_counts(SlottedColumns(dense, *nothing))
        for n_lines in (1, 8, 21, count_loops.MOST_LINES):
            room.lines[:n_lines] = np.arange(n_lines)
            counts = count_loops.sum_lines(dense, n_lines, room)
            assert np.array_equal(counts, bits[:n_lines].sum(axis=0).T.ravel())

    @pytest.mark.parametrize("is_compiled", [True, False])
    @pytest.mark.parametrize("least", [1, 3, 99])
    def test_more_features_than_are_added_at_once(self, is_compiled, least, monkeypatch):
        shared = np.random.default_rng(5).random((3, 200)) < 0.8
        indptr, indices = np.cumsum([0, *shared.sum(axis=1)]), np.nonzero(shared)[1].astype(np.int32)
        slots, col_slots, n_dense, rare = product_loops.assign_slots(indices, indices, least)
        cols = room_for_columns(n_dense, 3, rare, counts=True)
        count_loops.place_columns(indptr, col_slots, cols)
        if not is_compiled:
            for name in ("add_sums", "add_lists", "count_common"):
                monkeypatch.setattr(count_loops, name, getattr(count_loops, name).py_func)
        counts = np.empty((3, 512), np.uint8)
        rows = RowSlots(indptr, slots, np.empty(0))
        count_loops.count_common(0, rows, cols, count_loops.room_for_counts(cols), counts)
        assert np.array_equal(counts[:, :3], shared.astype(int) @ shared.T)
        assert not counts[:, 3:].any()

    def test_maps(self):
        rng = np.random.default_rng(2)
        rows, cols, cells = rng.random(4), rng.random(5), rng.random((4, 5))
        results = []
        for pick in (lambda f: f, lambda f: f.py_func):
            power, distances, scaled, norms = cells.copy(), cells.copy(), cells.copy(), np.empty(5)
            pick(product_loops.raise_to_power)(power, 0.5, 3)
            pick(product_loops.to_distances)(rows, cols, distances)
            pick(product_loops.scale_cells)(rows, cols, scaled)
            pick(product_loops.sum_squares)(self.features.indptr, self.features.values, norms)
            results.append((power, distances, scaled, norms))
        for compiled, interpreted in zip(*results, strict=True):
            assert_close(compiled, interpreted)
