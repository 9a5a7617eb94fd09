"""The sequence labeling kernel against enumeration, and what must hold for any sequences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.sequence_labeling import full_kernel, scalar_gram
from strategies import LABELS, letters, pack, packed_sequences, real_bags, sequence_kernels, words
from tolerances import assert_close

from gramline.kernels import (
    EmpiricalPrior,
    Identity,
    Linear,
    Polynomial,
    SequenceLabeling,
    TabulatedPrior,
    UniformPrior,
)
from gramline.kernels.errors import KernelOverflowError, PackingError
from gramline.kernels.marginalized import Strip
from gramline.kernels.marginals import MarginalTables, prior_table
from gramline.kernels.observations import equal_columns
from gramline.kernels.packing import frozen
from gramline.kernels.sequences import chain_loops, counted_loops, gappy_loops, labeling, matching_loops, sweep_loops
from gramline.kernels.sequences.side_by_side import LANES, SideBySide

NEGATIVE_LABEL_KERNEL = [[2.0, -1.0, 0.0], [-1.0, 1.0, -0.5], [0.0, -0.5, 1.0]]


def observed(kernel, rows, cols):
    """kx between the positions of two prepared corpora; observation kernels have tests of their own."""
    out = np.empty((rows.n_positions, cols.n_positions))
    kernel.observation.strips(rows, cols).fill(0, rows.n_positions, out)
    return out


def by_enumeration(kernel, rows, cols, oracle):
    """The oracle's values for all pairs of structures of two prepared corpora, shape (n, m, ...)."""
    kx = observed(kernel, rows, cols)
    ky = np.eye(rows.n_labels) if kernel.label_kernel is None else np.array(kernel.label_kernel)
    left, right = prior_table(rows), prior_table(cols)
    lines = []
    for a, b in zip(rows.starts, rows.starts[1:], strict=False):
        blocks = []
        for u, v in zip(cols.starts, cols.starts[1:], strict=False):
            pair = kx[a:b, u:v]
            if oracle is full_kernel:
                blocks.append(full_kernel(pair, left[a:b], right[u:v], ky, kernel.c, kernel.gap))
            else:
                blocks.append(scalar_gram(pair, left[a:b] @ ky @ right[u:v].T, kernel.c, kernel.gap))
        lines.append(np.concatenate(blocks, axis=1))
    return np.concatenate(lines)


@pytest.mark.parametrize("gap", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("label_kernel", [None, [[1.0, -0.5], [-0.5, 0.25]]])
@pytest.mark.parametrize("prior", ["uniform", "tabulated"])
def test_all_labelings_of_both_structures(gap, label_kernel, prior):
    tables = [[[0.2, 0.8], [1.0, 0.0], [0.5, 0.5]], [[0.6, 0.4]], [[0.3, 0.7], [0.9, 0.1]]]
    packed = pack(words("aba c ab"), tables=tables, label_names=("B", "O"))
    kernel = SequenceLabeling(0.8, gap, label_kernel=label_kernel)
    if prior == "tabulated":
        kernel = SequenceLabeling(0.8, gap, prior=TabulatedPrior(), label_kernel=label_kernel)
    ready = kernel.prepare(packed)
    assert_close(kernel.full(packed), by_enumeration(kernel, ready, ready, full_kernel))


@given(packed_sequences(longest=4), packed_sequences(longest=4), sequence_kernels())
@settings(max_examples=60)
def test_scalar_gram_is_the_sum_over_features(rows, cols, kernel):
    cols = pack_like(cols, rows)
    rows = kernel.prepare(rows)
    cols = kernel.prepare(cols, like=rows)
    assert_close(kernel.tile(rows, cols), by_enumeration(kernel, rows, cols, scalar_gram))


def pack_like(packed, like):
    """The same sequences of letters in the vocabulary of another corpus."""
    names = [packed.vocabulary.symbols[code] for code in packed.symbols]
    labels = [None if code < 0 else LABELS[code] for code in packed.labels]
    bounds = list(zip(packed.starts, packed.starts[1:], strict=False))
    return pack(
        [[{name: 1.0} for name in names[a:b]] for a, b in bounds],
        [labels[a:b] for a, b in bounds],
        [packed.table[a:b].tolist() for a, b in bounds],
        like=like,
    )


@given(packed_sequences(longest=5), packed_sequences(longest=5), sequence_kernels(st.just(Identity())))
@settings(max_examples=60)
def test_equal_pairs_alone_give_the_same_as_sweeps(rows, cols, kernel):
    kernel = SequenceLabeling(**(kernel.get_params() | {"gap": 0.0}))
    rows, cols = kernel.prepare(rows), kernel.prepare(pack_like(cols, rows), like=rows)
    by_runs, by_sweeps = (tile_with_share(kernel, rows, cols, share) for share in (2.0, 0.0))
    assert_close(by_runs, by_sweeps)
    assert_close(by_runs, by_enumeration(kernel, rows, cols, scalar_gram))
    assert np.array_equal(by_runs == 0, by_sweeps == 0)


def tile_with_share(kernel, rows, cols, share):
    """A tile that takes the route over equal pairs below this share of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labeling, "SPARSE_SHARE", share)
        return kernel.tile(rows, cols)


@given(packed_sequences(longest=7), sequence_kernels())
@settings(max_examples=60)
def test_symmetric_positive_semidefinite_and_its_own_diagonal(packed, kernel):
    ready = kernel.prepare(packed)
    gram = kernel.tile(ready, ready)
    assert np.array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-9 * max(1.0, np.abs(gram).max())
    assert_close(kernel.diagonal(ready), gram.diagonal())


@given(packed_sequences(longest=6), sequence_kernels(), st.data())
@settings(max_examples=60)
def test_any_tiling_gives_the_same_matrix(packed, kernel, data):
    ready = kernel.prepare(packed)
    gram = kernel.tile(ready, ready)
    cut = data.draw(st.integers(0, len(ready)))
    parts = [ready.structures(0, cut), ready.structures(cut, len(ready))]
    assert_close(np.block([[kernel.tile(a, b) for b in parts] for a in parts]), gram)


@given(packed_sequences(bags=real_bags, longest=6), st.sampled_from([0.0, 0.5]))
@settings(max_examples=40)
def test_swapped_arguments_transpose(packed, gap):
    kernel = SequenceLabeling(0.7, gap, Linear(), prior=EmpiricalPrior())
    ready = kernel.prepare(packed)
    first = ready.structures(0, 1)
    assert_close(kernel.tile(first, ready), kernel.tile(ready, first).T)


@given(packed_sequences(longest=6), st.permutations(range(5)), st.sampled_from([0.0, 0.3]))
@settings(max_examples=30)
def test_renamed_symbols_change_nothing(packed, order, gap):
    kernel = SequenceLabeling(0.9, gap, prior=EmpiricalPrior())
    names = "abcde"
    bags = [{names[order[names.index(packed.vocabulary.symbols[code])]]: 1.0} for code in packed.symbols]
    bounds = list(zip(packed.starts, packed.starts[1:], strict=False))
    labels = [None if code < 0 else LABELS[code] for code in packed.labels]
    renamed = pack([bags[a:b] for a, b in bounds], [labels[a:b] for a, b in bounds])
    assert_close(kernel.gram(renamed), kernel.gram(packed))


@given(packed_sequences(longest=6))
@settings(max_examples=30)
def test_vanishing_gap_is_the_contiguous_kernel(packed):
    contiguous = SequenceLabeling(0.8, label_kernel=NEGATIVE_LABEL_KERNEL, prior=TabulatedPrior())
    gappy = SequenceLabeling(0.8, gap=1e-14, label_kernel=NEGATIVE_LABEL_KERNEL, prior=TabulatedPrior())
    assert_close(gappy.gram(packed), contiguous.gram(packed))


def test_sum_over_labels_is_the_marginal_times_the_gram():
    packed = pack(words("abc ab"), tables=[[[0.2, 0.3, 0.5]] * 3, [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]])
    kernel = SequenceLabeling(0.9, prior=TabulatedPrior(), label_kernel=NEGATIVE_LABEL_KERNEL)
    marginal = packed.table @ np.array(NEGATIVE_LABEL_KERNEL) @ packed.table.T
    assert_close(kernel.full(packed).sum(axis=(2, 3)), kernel.gram(packed) * marginal)


def test_uniform_prior_and_identity_label_kernel():
    packed = pack(words("abc ab"))
    full = SequenceLabeling(0.9).full(packed)
    assert full.shape == (5, 5, 3, 3)
    assert_close(full, SequenceLabeling(0.9).gram(packed)[:, :, None, None] * np.eye(3) / 9)


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_nothing_in_common_is_zero(gap):
    rows = pack(words("ab a"))
    cols = pack(words("cd e"), like=rows)
    assert np.array_equal(SequenceLabeling(1.0, gap).gram(rows, cols), np.zeros((3, 3)))


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_single_positions_see_only_themselves(gap):
    packed = pack([[{"a": 2.0, "b": 1.0}], [{"a": 1.0}]])
    assert_close(SequenceLabeling(0.5, gap, Linear()).gram(packed), 0.25 * np.array([[5.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("prior", [None, TabulatedPrior()])
def test_empty_blocks_give_empty_tiles(gap, prior):
    packed = pack(words("ab a"), tables=[[[1.0, 0.0, 0.0]] * 2, [[1.0, 0.0, 0.0]]])
    kernel = SequenceLabeling(1.0, gap) if prior is None else SequenceLabeling(1.0, gap, prior=prior)
    ready = kernel.prepare(packed)
    nothing = ready.structures(0, 0)
    assert kernel.tile(nothing, ready).shape == (0, 3)
    assert kernel.tile(ready, nothing).shape == (3, 0)


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_float32_tiles_are_float64_tiles_but_for_rounding(gap):
    kernel = SequenceLabeling(0.8, gap, prior=EmpiricalPrior())
    ready = kernel.prepare(pack(words("abcab cab ab"), [["B"] * 5, ["I"] * 3, ["O", None]]))
    tile = kernel.tile(ready, ready, np.float32)
    assert tile.dtype == np.float32
    np.testing.assert_allclose(tile, kernel.tile(ready, ready), rtol=4e-7)


def test_same_tile_same_bytes():
    kernel = SequenceLabeling(0.8, 0.3, Linear(), prior=EmpiricalPrior())
    ready = kernel.prepare(pack(words("abcab cab ab"), [["B"] * 5, ["I"] * 3, ["O", None]], binary=False))
    assert kernel.tile(ready, ready).tobytes() == kernel.tile(ready, ready).tobytes()


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_strips_of_many_structures(gap, monkeypatch):
    packed = pack(words("abcab cab ab e d abc"))
    kernel = SequenceLabeling(0.8, gap)
    whole = kernel.gram(packed)
    for size in (1, 8 * 17 * 4, 8 * 17 * 9):
        monkeypatch.setattr("gramline.kernels.base.STRIP_BYTES", size)
        assert_close(kernel.gram(packed), whole)


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_chunks_of_columns(gap, monkeypatch):
    packed = pack(words("abcab cab ab e d abc aaaaaaa"))
    kernel = SequenceLabeling(0.8, gap, Linear())
    whole = kernel.gram(packed)
    for width in (1, 4, 9, 15):
        monkeypatch.setattr(labeling, "CHUNK_COLUMNS", width)
        assert_close(kernel.gram(packed), whole)


class TestOverflow:
    @pytest.mark.parametrize("gap", [0.0, 1.0])
    def test_names_the_pair_and_the_way_out(self, gap):
        packed = pack([*words("ab ab"), [{"c": 1.0}] * 700, *words("de"), [{"c": 1.0}] * 600])
        with pytest.raises(KernelOverflowError) as e:
            SequenceLabeling(3.0, gap).gram(packed)
        assert (e.value.row, e.value.column) == (2, 2)
        assert "structure 2 and structure 2 does not fit float64; lower c" in str(e.value)

    def test_among_few_equal_pairs(self):
        others = [{f"x{number}": 1.0} for number in range(600)]
        packed = pack([words("ab")[0], *([other] for other in others), [{"c": 1.0}] * 400])
        kernel = SequenceLabeling(5.0)
        ready = kernel.prepare(packed)
        assert labeling.list_equal_columns(ready.symbols, ready.symbols).n_equal > 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(labeling, "SPARSE_SHARE", 2.0)
            with pytest.raises(KernelOverflowError) as error:
                kernel.tile(ready, ready)
        assert (error.value.row, error.value.column) == (601, 601)

    def test_float32_points_at_float64(self):
        kernel = SequenceLabeling(2.0)
        ready = kernel.prepare(pack([*words("a"), [{"c": 1.0}] * 400]))
        assert np.isfinite(kernel.tile(ready, ready)).all()
        with pytest.raises(KernelOverflowError) as error:
            kernel.tile(ready, ready, np.float32)
        assert (error.value.row, error.value.column, error.value.dtype) == (1, 1, "float32")
        assert "float64" in error.value.advice

    def test_one_pair_alone(self):
        kernel = SequenceLabeling(5.0)
        ready = kernel.prepare(pack([[{"c": 1.0}] * 400]))
        with pytest.raises(KernelOverflowError) as error:
            kernel.tile(ready, ready)
        assert (error.value.row, error.value.column) == (0, 0)


class TestParameters:
    def test_rounding_does_not_make_a_label_kernel_indefinite(self):
        root = np.random.default_rng(0).normal(size=(6, 2))
        assert SequenceLabeling(label_kernel=root @ root.T).label_matrix().shape == (6, 6)

    def test_label_kernel_of_another_size(self):
        with pytest.raises(
            PackingError, match=r"label_kernel compares 2 labels, but the corpus has 3; .* fix the labels"
        ):
            SequenceLabeling(label_kernel=np.eye(2)).gram(pack(words("ab")))

    def test_another_kind_of_structure(self):
        class Other(type(pack(words("a")))):
            kind = "trees"

        packed = pack(words("ab"))
        with pytest.raises(PackingError, match="SequenceLabeling compares sequences, but the corpus holds trees"):
            SequenceLabeling().prepare(Other(packed.starts, packed.symbols, packed.features, packed.labels))


@given(st.lists(letters, min_size=1, max_size=12), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.booleans())
@settings(max_examples=20)
def test_compiled_equals_interpreted(bags, lengths, is_gappy):
    packed = pack([bags, *([bags[0]] * length for length in lengths)])
    n = packed.n_positions
    rng = np.random.default_rng(n)
    kx, weights = rng.random((n, n)), rng.random((n, n))
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        out, upward = np.empty((n, n)), np.empty((n, n))
        strip = Strip(0, len(packed), kx, weights, 0.7, 0.5, 1e300, out)
        continues, cut = labeling.continuations(packed.starts), packed.starts[1]
        if is_gappy:
            chunks = np.array([[0, 0, 0, cut, cut], [cut, n, n, n, n]])
            assert pick(chain_loops.sweep_chains)(packed.starts, chunks, strip, continues, 0.4, upward)
        else:
            chunks = np.array([0, cut, n])
            assert pick(sweep_loops.sweep_contiguous)(packed.starts, chunks, strip, 0.7 * continues, upward)
        results.append(out)
    assert_close(results[0], results[1])


@pytest.mark.parametrize("n_labels", [0, 2])
def test_runs_compiled_equal_interpreted(n_labels):
    rng = np.random.default_rng(4)
    rows, cols = frozen(rng.integers(0, 3, 14), np.int32), frozen(rng.integers(1, 5, 17), np.int32)
    row_starts, col_starts = frozen(np.array([0, 4, 5, 14]), np.int64), np.array([0, 9, 17])
    left = frozen(rng.random((14 if n_labels else 0, n_labels)), np.float64)
    right = frozen(rng.random((17 if n_labels else 0, n_labels)), np.float64)
    results = []
    for pick in (lambda f: f, lambda f: f.py_func):
        equal = pick(equal_columns.list_equal_columns)(rows, cols)
        out = np.full((14, 17), np.nan)
        pair = matching_loops.SequencePair(row_starts, rows, cols, labeling.continuations(col_starts))
        arguments = (pair, equal, MarginalTables(left, right, 0.7), 0.5)
        assert pick(matching_loops.fill_runs)(*arguments, 1e300, out) == -1
        assert np.count_nonzero(out) == equal.n_equal == (rows[:, None] == cols).sum()
        results.append(out.copy())
        assert pick(matching_loops.fill_runs)(*arguments, 0.6, out) >= 0
    assert_close(results[0], results[1])


INNER_LOOPS = {
    gappy_loops: ["accumulate_forward", "accumulate_backward", "sweep_up", "sweep_down"],
    counted_loops: [
        *("continue_down", "finish_row", "continue_counts", "finish_counts", "sweep_down", "sweep_up"),
        *("ask_for", "is_plain", "padded", "aligned", "room_for_chunks"),
    ],
}


@pytest.mark.parametrize("gap", [0.0, 0.5])
@pytest.mark.parametrize("prior", [UniformPrior(), TabulatedPrior()], ids=repr)
def test_single_sweeps_compiled_equal_interpreted(gap, prior, monkeypatch):
    observation = Polynomial(2, normalized=True)
    rng = np.random.default_rng(2)
    bags = [[dict.fromkeys(rng.choice(list("abcdefgh"), 3), 1.0) for _ in range(size)] for size in (4, 1, 3, 5)]
    packed = pack(bags, tables=[rng.dirichlet([1, 1, 1], len(bag)).tolist() for bag in bags])
    kernel = SequenceLabeling(0.8, gap, observation, prior)
    ready = kernel.prepare(packed)
    compiled = kernel.tile(ready, ready, np.float32)
    for module, names in INNER_LOOPS.items():
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name).py_func)
    monkeypatch.setattr(counted_loops, "PIECE", 5)  # so that a row has several
    for name, module in (("sweep_gappy", gappy_loops), ("sweep_counted", counted_loops)):
        monkeypatch.setattr(labeling, name, getattr(module, name).py_func)
    assert kernel.tile(ready, ready, np.float32).tobytes() == compiled.tobytes()


def test_side_by_side():
    starts = np.array([0, 2, 5, 5, 6])
    cols = SideBySide.of(starts, 1000, np.float32)
    assert len(cols.columns) == 3 * LANES  # the longest has three positions
    assert cols.places.tolist() == [1, 1 + LANES, 0, LANES, 2 * LANES, 2]  # longer sequences first
    assert cols.columns[cols.places].tolist() == list(range(6))
    assert cols.follows[cols.places].tolist() == [0, 1, 0, 1, 1, 0]
    assert cols.precedes[cols.places].tolist() == [1, 0, 1, 1, 0, 0]
    assert cols.follows.sum() == cols.precedes.sum() == 3
    assert cols.chunks.tolist() == [0, 3 * LANES]
    many = SideBySide.of(np.arange(0, 200, 2), 64, np.float64)
    assert many.chunks.tolist() == [0, 64, 128, 192, 224]
    assert SideBySide.of(np.array([0]), 64, np.float64).chunks.tolist() == [0]


@pytest.mark.parametrize("name", ["accumulate_forward", "accumulate_backward"])
def test_chains_compiled_equal_interpreted(name):
    rng = np.random.default_rng(1)
    matches, decay, sums = rng.random((3, 23))
    function, results = getattr(chain_loops, name), []
    for bounds in ([0, 5, 12, 17, 23], [0, 23, 23, 23, 23]):
        decay[[0, 5, 12, 17]] = 0
        shifted = decay if name.endswith("forward") else np.append(decay[1:], 0)
        for call in (function, function.py_func):
            total = sums.copy()
            call(matches, shifted, 0.5, np.array(bounds), total)
            results.append(total)
    for result in results[1:]:
        assert_close(result, results[0])
