"""What a learner sees of a factored matrix; apart from LAPACK, which who only predicts need not wait for."""

from __future__ import annotations

from typing import Protocol

from gramline.learners.arrays import Matrix


class Factor(Protocol):
    """A factored symmetric positive definite B, shape (n, n)."""

    def solve(self, X: Matrix) -> Matrix:
        """B^-1 X, shape (n, k)."""

    def quadratic(self, X: Matrix) -> Matrix:
        """diag(X^T B^-1 X), shape (k,), for X of shape (n, k)."""

    def log_determinant(self) -> float:
        """log |B|."""

    def inverse_diagonal(self) -> Matrix:
        """diag(B^-1), shape (n,)."""
