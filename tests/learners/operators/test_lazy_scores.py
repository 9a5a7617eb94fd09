"""Scores that are brought up to date when they are looked at equal G W at every visit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gramline.kernels import Linear, Polynomial, PositionKernel, SequenceLabeling
from gramline.learners.operators.computed import ComputedGram
from gramline.learners.operators.dense import DenseGram
from gramline.learners.operators.lazy_scores import Change, LazyScores
from gramline.pipeline.corpus.corpus import Corpus

DRAW = np.random.default_rng(3)
CORPUS = Corpus.from_sequences(
    [[f"w{DRAW.integers(9)}" for _ in range(DRAW.integers(1, 7))] for _ in range(30)]
).with_features("spelling")
KERNELS = {
    "sequence": SequenceLabeling(c=0.6, observation=Polynomial(2, normalized=True)),
    "position": PositionKernel(Polynomial(2, normalized=True)),
}


class PartGram(ComputedGram):
    """Keeps the tiles of its first blocks, so that these are read and the others computed."""

    def keeps(self, i: int, j: int) -> bool:
        return max(i, j) < 3


def operators(kernel: Any, block_rows: int) -> dict[str, Any]:
    packed = kernel.prepare(CORPUS.packed())
    return {
        "dense": DenseGram.of(kernel, packed, block_rows=block_rows),
        "computed": ComputedGram(kernel, packed, block_rows=block_rows),
        "part": PartGram(kernel, packed, block_rows=block_rows),
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("which", ["dense", "computed", "part"])
@pytest.mark.parametrize("block_rows", [7, 16, 200])
def test_every_visit_sees_all_changes_so_far(kernel: str, which: str, block_rows: int) -> None:
    gram = operators(KERNELS[kernel], block_rows)[which]
    whole = KERNELS[kernel].gram(CORPUS)
    draw = np.random.default_rng(0)
    n, widths = len(whole), (3, 1)
    scores = LazyScores(gram, widths)
    weights = [np.zeros((n, width)) for width in widths]
    sizes = [np.zeros(n) for _ in widths]
    layout = gram.layout.rows
    for number in range(4):
        for block in range(layout.n_blocks):
            positions = layout.rows(block)
            chosen = [0, 1] if number < 3 else [1]  # the other one has come to its end
            visit = scores.enter(positions, chosen)
            expected_tile = whole[positions, positions]
            np.testing.assert_allclose(visit.tile[np.ix_(visit.local, visit.local)], expected_tile, rtol=1e-12)
            changes: list[Change | None] = []
            for problem, own in zip(chosen, visit.scores, strict=True):
                np.testing.assert_allclose(own.sums[:, visit.local].T, (whole @ weights[problem])[positions], atol=1e-9)
                np.testing.assert_allclose(
                    own.magnitudes[visit.local], (abs(whole) @ sizes[problem])[positions], atol=1e-9
                )
                wrong = np.flatnonzero(draw.random(positions.stop - positions.start) < 0.3)
                if not len(wrong):
                    changes.append(None)
                    continue
                steps = draw.integers(-2, 3, size=(len(wrong), widths[problem])).astype(float)
                weights[problem][positions][wrong] += steps
                sizes[problem][positions][wrong] += 1.0
                change, size = np.zeros((len(visit.tile), widths[problem])), np.zeros(len(visit.tile))
                np.add.at(change, visit.local[wrong], steps)
                np.add.at(size, visit.local[wrong], 1.0)
                own.sums[:] += (visit.tile.T @ change).T
                own.magnitudes[:] += np.abs(visit.tile.T) @ size
                rows = np.flatnonzero(size)
                changes.append(Change(rows, change[rows], size[rows]))
            scores.leave(visit, changes)


def test_values_are_computed_for_changed_structures_only() -> None:
    kernel = KERNELS["sequence"]
    gram = ComputedGram(kernel, kernel.prepare(CORPUS.packed()), block_rows=16)
    layout = gram.layout.rows
    scores = LazyScores(gram, [1])
    for block in range(layout.n_blocks):
        visit = scores.enter(layout.rows(block))
        scores.leave(visit, [None])
    squares = gram.values_computed
    assert squares <= sum((layout.rows(block).stop - layout.rows(block).start) ** 2 for block in range(layout.n_blocks))
    visit = scores.enter(layout.rows(0))
    scores.leave(visit, [Change(np.array([0]), np.ones((1, 1)), np.ones(1))])
    before = gram.values_computed
    scores.enter(layout.rows(1))
    first_structure = int(layout.lengths[0])
    n_other = layout.rows(1).stop - layout.rows(1).start
    assert gram.values_computed - before <= first_structure * n_other + n_other**2


def test_equal_rows_are_one_row() -> None:
    corpus = Corpus.from_sequences([["a", "b"], ["b", "a"]] * 8)
    kernel = PositionKernel(Polynomial(2))
    corpus = corpus.with_features("spelling", 0)
    gram = ComputedGram(kernel, kernel.prepare(corpus.packed()), block_rows=8)
    visit = LazyScores(gram, [2]).enter(gram.layout.rows.rows(1))
    assert visit.tile.shape == (2, 2)
    assert sorted(set(visit.local.tolist())) == [0, 1]


def test_equal_rows_are_compared_once_where_tiles_are_left_out() -> None:
    corpus = Corpus.from_sequences([["a", "b"], ["b", "a"]] * 16).with_features("spelling", 0)
    kernel = PositionKernel(Polynomial(2))
    gram = PartGram(kernel, kernel.prepare(corpus.packed()), block_rows=8)
    whole, layout, scores = kernel.gram(corpus), gram.layout.rows, LazyScores(gram, [2])
    changed, steps = np.array([0, 1, 3]), np.array([[1.0, -1.0], [-1.0, 1.0], [0.5, 0.0]])
    visit = scores.enter(layout.rows(5))
    scores.leave(visit, [Change(changed, steps, np.ones(3))])
    before = gram.values_computed
    visit = scores.enter(layout.rows(6))
    np.testing.assert_allclose(visit.scores[0].sums, (whole[layout.rows(5)][changed][:, layout.rows(6)].T @ steps).T)
    assert gram.values_computed - before == 2 * 2 + 8 * 8  # the strip between distinct rows, and the tile of the visit


@pytest.mark.parametrize("normalized", [False, True])
def test_a_linear_kernel_multiplies_by_its_features(normalized: bool) -> None:
    kernel = PositionKernel(Linear(normalized=normalized), c=0.7)
    train, new = CORPUS.select(np.arange(20)), CORPUS.select(np.arange(20, 30))
    rows, cols = kernel.prepared_pair(train, new)
    assert cols is not None
    for gram, matrix in (
        (ComputedGram(kernel, rows), kernel.gram(train)),
        (ComputedGram(kernel, rows, cols), kernel.tile(rows, cols)),
    ):
        for transpose, whole in ((False, matrix), (True, matrix.T)):
            W = np.linspace(-1, 1, 2 * whole.shape[1]).reshape(-1, 2)
            np.testing.assert_allclose(gram.matmul(W, transpose=transpose), whole @ W, rtol=1e-10, atol=1e-10)
        assert gram.values_computed == 0


@pytest.mark.parametrize("which", ["dense", "computed", "part"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_look_between_passes_sees_everything(kernel: str, which: str) -> None:
    gram = operators(KERNELS[kernel], 16)[which]
    whole, draw = KERNELS[kernel].gram(CORPUS), np.random.default_rng(1)
    layout, weights = gram.layout.rows, np.zeros((len(whole), 2))
    scores = LazyScores(gram, [2])
    for _ in range(3):
        for block in range(layout.n_blocks):
            positions = layout.rows(block)
            visit = scores.enter(positions)
            ((sums, _),) = visit.scores
            np.testing.assert_allclose(sums[:, visit.local].T, (whole @ weights)[positions], atol=1e-9)
            change = np.zeros((len(visit.tile), 2))
            steps = draw.normal(size=(1, 2))
            weights[positions][:1] += steps
            change[visit.local[0]] = steps
            sums += change.T @ visit.tile
            row = visit.local[:1]
            scores.leave(visit, [Change(row, change[row], np.ones(1))])
        for block in range(layout.n_blocks):
            positions = layout.rows(block)
            local, ((sums, _),) = scores.refresh(positions)
            np.testing.assert_allclose(sums[:, local].T, (whole @ weights)[positions], atol=1e-9)


class CountingGram(DenseGram):
    """Counts the tiles that are read."""

    n_reads = 0

    def tile(self, i: int, j: int) -> Any:
        self.n_reads += 1
        return super().tile(i, j)


def test_a_look_between_passes_costs_no_tile() -> None:
    """What rows receive in a look they do not receive again: n tiles on the diagonal and n (n - 1) others a pass."""
    counts = []
    for looks in (False, True):
        gram = CountingGram(np.eye(12), [1] * 12, block_rows=3)
        scores = LazyScores(gram, [1])
        for _ in range(5):
            for block in range(4):
                visit = scores.enter(gram.layout.rows.rows(block))
                scores.leave(visit, [Change(np.array([0]), np.ones((1, 1)), np.ones(1))])
            for block in range(4 if looks else 0):
                scores.refresh(gram.layout.rows.rows(block))
        counts.append(gram.n_reads)
    assert counts[1] == 5 * 4 * 4
    assert counts[0] == counts[1] - 6, "the last changes are never read without a look"
