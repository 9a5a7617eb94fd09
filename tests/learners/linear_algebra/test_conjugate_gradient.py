import numpy as np
import pytest
from tolerances import assert_close

from gramline.learners.errors import ConvergenceError
from gramline.learners.linear_algebra.conjugate_gradient import (
    Solution,
    Status,
    StoppingRule,
    block_cg_steps,
    block_conjugate_gradient,
    orthonormal,
    solve_together,
)
from gramline.learners.linear_algebra.preconditioner import nystrom_cg_steps


def gram(n=60, seed=0, scale=0.3):
    points = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-scale * ((points[:, None] - points[None]) ** 2).sum(axis=2))


def sides(n=60, width=5, seed=1):
    return np.random.default_rng(seed).normal(size=(n, width))


class Counted:
    def __init__(self, matrix):
        self.matrix, self.calls = matrix, 0

    def __call__(self, block):
        self.calls += 1
        return self.matrix @ block


def dense(matrix, shift, right):
    return np.linalg.solve(matrix + shift * np.eye(len(matrix)), right)


SHIFTS = [10.0, 1e-3, 0.5, 0.05, 1.0]


@pytest.mark.parametrize("n_extra", [0, 7])
def test_all_shifts_from_one_krylov_space_equal_dense_solves(n_extra):
    matrix, right = gram(), sides()
    extra = sides(width=n_extra, seed=9) if n_extra else None
    counted = Counted(matrix)
    solutions = block_conjugate_gradient(counted, right, SHIFTS, StoppingRule(1e-11), extra_columns=extra)
    for shift, solution in zip(SHIFTS, solutions, strict=True):
        assert solution.status is Status.CONVERGED
        assert_close(solution.value, dense(matrix, shift, right))
        assert solution.worst <= 1e-10
    alone = Counted(matrix)
    block_conjugate_gradient(alone, right, [1e-3], StoppingRule(1e-11), extra_columns=extra)
    assert counted.calls == alone.calls, "many shifts take no more products than the hardest alone"
    assert solutions[0].iterations < solutions[1].iterations


def test_a_wider_block_takes_fewer_products():
    matrix, right = gram(), sides(width=2)
    plain, wide = Counted(matrix), Counted(matrix)
    block_conjugate_gradient(plain, right, [1e-3])
    block_conjugate_gradient(wide, right, [1e-3], extra_columns=sides(width=10, seed=7))
    assert wide.calls < plain.calls / 2


def test_dependent_and_zero_right_hand_sides():
    right = sides(width=4)
    right[:, 2] = right[:, 0] - 2 * right[:, 1]
    right[:, 3] = 0
    (solution,) = block_conjugate_gradient(Counted(gram()), right, [0.1], StoppingRule(1e-12))
    assert_close(solution.value, dense(gram(), 0.1, right))
    (nothing,) = block_conjugate_gradient(Counted(gram()), np.zeros((60, 3)), [0.1])
    assert nothing.status is Status.CONVERGED
    assert not nothing.value.any()


def test_an_invariant_space_ends_the_iteration():
    matrix = np.diag([1.0, 2.0, 3.0, 4.0])
    counted = Counted(matrix)
    right = np.eye(4)[:, :2]
    (solution,) = block_conjugate_gradient(counted, right, stopping=StoppingRule(1e-15))
    assert solution.status is Status.CONVERGED
    assert solution.iterations <= 2
    assert_close(solution.value, right / np.array([1.0, 2.0]))


def test_singular_but_consistent_gives_the_least_norm():
    random = np.random.default_rng(5)
    factor = random.normal(size=(30, 4))
    matrix = factor @ factor.T
    right = matrix @ random.normal(size=(30, 3))
    (solution,) = block_conjugate_gradient(Counted(matrix), right, stopping=StoppingRule(1e-12))
    assert_close(solution.value, np.linalg.pinv(matrix, hermitian=True, rcond=1e-10) @ right)


def test_many_columns_more_than_rows():
    matrix, right = gram(n=4), sides(n=4, width=9)
    (solution,) = block_conjugate_gradient(Counted(matrix), right, [0.2], StoppingRule(1e-12))
    assert_close(solution.value, dense(matrix, 0.2, right))


def test_stops_at_the_limit_and_says_so():
    (solution,) = block_conjugate_gradient(Counted(gram()), sides(), [1e-6], StoppingRule(max_iterations=2))
    assert solution.status is Status.MAX_ITERATIONS
    assert solution.iterations == 2
    missing = sides() - (gram() + 1e-6 * np.eye(60)) @ solution.value
    assert_close(solution.residual, np.linalg.norm(missing, axis=0) / np.linalg.norm(sides(), axis=0))
    with pytest.raises(
        ConvergenceError, match=r"^the test did not converge \(max_iterations after 2 .*; raise max_it"
    ) as error:
        solution.trusted("the test")
    assert (error.value.status, error.value.iterations, error.value.residual) == ("max_iterations", 2, solution.worst)


def test_easy_shifts_converge_when_hard_ones_do_not():
    easy, hard = block_conjugate_gradient(Counted(gram()), sides(), [100.0, 1e-9], StoppingRule(max_iterations=8))
    assert easy.status is Status.CONVERGED
    assert hard.status is Status.MAX_ITERATIONS
    assert_close(easy.trusted("the easy one"), easy.value)


def test_an_indefinite_matrix_is_noticed():
    matrix = np.diag([1.0, 2.0, -3.0])
    (solution,) = block_conjugate_gradient(Counted(matrix), np.eye(3)[:, 2:], [0.5])
    assert solution.status is Status.NOT_POSITIVE_DEFINITE
    assert "positive semidefinite" in solution.status.advice


def test_inexact_products_are_noticed():
    """The recursion believes it has converged; the true residual knows better."""
    matrix, random = gram(), np.random.default_rng(3)
    (solution,) = block_conjugate_gradient(
        lambda block: matrix @ block + 1e-4 * random.normal(size=block.shape),
        sides(),
        [1.0],
        StoppingRule(1e-10),
    )
    assert solution.status is not Status.CONVERGED
    assert solution.worst > 1e-9


def test_the_worst_column_decides():
    solution = Solution(np.zeros((2, 3)), Status.CONVERGED, 4, np.array([1e-9, 0.3, 0.0]))
    assert solution.worst == 0.3


def test_solves_in_step_share_their_products():
    matrix = gram()
    calls = []

    def apply_all(blocks):
        calls.append(sorted(blocks))
        return {number: matrix @ block for number, block in blocks.items()}

    first, second = solve_together(
        apply_all,
        [
            block_cg_steps(sides(), [0.1], StoppingRule(1e-11)),
            block_cg_steps(sides(seed=8), [5.0], StoppingRule(1e-11)),
        ],
    )
    assert_close(first[0].value, dense(matrix, 0.1, sides()))
    assert_close(second[0].value, dense(matrix, 5.0, sides(seed=8)))
    assert calls[0] == [0, 1]
    assert len(calls) == first[0].iterations + 1, "the easier one rides along"


@pytest.mark.parametrize("rank", [5, 25, 200])
def test_nystrom_preconditioner(rank):
    matrix, right = gram(n=150, scale=0.05), sides(n=150)
    calls = []

    def apply_all(blocks):
        calls.append(blocks[0].shape[1])
        return {0: matrix @ blocks[0]}

    (solution,) = solve_together(apply_all, [nystrom_cg_steps(right, 1e-3, rank, StoppingRule(1e-11))])[0]
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.value, dense(matrix, 1e-3, right), atol=1e-6 * np.abs(right).max() / 1e-3)
    assert solution.worst < 1e-8
    plain = Counted(matrix)
    block_conjugate_gradient(plain, right, [1e-3], StoppingRule(1e-11))
    assert calls[0] == min(rank, 150)
    assert len(calls) <= plain.calls + 1
    (zero,) = solve_together(apply_all, [nystrom_cg_steps(0 * right, 1e-3, rank)])[0]
    assert not zero.value.any()


def test_orthonormal_keeps_independent_directions():
    block = sides(width=3)
    Q, R = orthonormal(np.column_stack([block, block @ np.ones(3)]))
    assert Q.shape == (60, 3)
    assert_close(Q.T @ Q, np.eye(3))
    assert_close(Q @ R, np.column_stack([block, block @ np.ones(3)]))
