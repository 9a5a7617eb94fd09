"""The pseudo-likelihood of labels given their neighbours' labels, in terms of local scores and couplings.

Knows tokens, labels and offsets; knows no kernel. Tokens with identical Gram rows form one group and share
their local functions, so everything local has one row per group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from gramline.kernels.packing import MISSING
from gramline.learners.arrays import Indices, Matrix


def drop_labels(codes: Indices, fraction: float, seed: int) -> Indices:
    """Codes with a random fraction of the labels MISSING; at least one label stays."""
    labeled = np.flatnonzero(codes >= 0)
    order = np.random.default_rng(seed).permutation(len(labeled))
    left = codes.copy()
    left[labeled[order[: min(round(fraction * len(labeled)), len(labeled) - 1)]]] = MISSING
    return left


def neighbour_labels(codes: Indices, lengths: Indices, offsets: tuple[int, ...]) -> Indices:
    """Label of the neighbour of every position at every offset, shape (n, n_offsets).

    MISSING where the neighbour is outside the structure or has no label.
    """
    labels = np.full((len(codes), len(offsets)), MISSING, np.int64)
    for column, offset in enumerate(offsets):
        here, there = neighbours(lengths, offset)
        labels[here, column] = codes[there]
    return labels


def neighbours(lengths: Indices, offset: int) -> tuple[Indices, Indices]:
    """(positions whose neighbour at the offset is in their own structure, those neighbours), in order."""
    structure = np.repeat(np.arange(len(lengths)), lengths)
    n = len(structure)
    reach = max(-n, min(offset, n))  # an offset beyond every structure has no neighbours; this one fits into an integer
    here = np.arange(max(0, -reach), min(n, n - reach))
    here = here[structure[here] == structure[here + reach]]
    return here, here + reach


@dataclass(frozen=True)
class LabeledTokens:
    """The labeled tokens: own label, neighbours' labels, group."""

    labels: Indices  # shape (n_tokens,)
    neighbours: Indices  # shape (n_tokens, n_offsets); MISSING where dropped
    groups: Indices  # shape (n_tokens,)
    n_groups: int
    n_labels: int

    @property
    def n_offsets(self) -> int:
        return int(self.neighbours.shape[1])

    @cached_property
    def label_counts(self) -> Matrix:
        """Tokens of every group that have label j, shape (n_groups, n_labels)."""
        return self.group_sums(self.own_labels)

    @cached_property
    def pair_counts(self) -> Matrix:
        """Tokens with neighbour label a at offset d and own label b, shape (n_offsets, n_labels, n_labels)."""
        return self.neighbour_sums(self.own_labels)

    @cached_property
    def own_labels(self) -> Matrix:
        """[y_t = j], shape (n_tokens, n_labels)."""
        return np.eye(self.n_labels)[self.labels]

    @cached_property
    def _membership(self) -> csr_array:
        """[token t is in group g], shape (n_groups, n_tokens)."""
        n_tokens = len(self.labels)
        return csr_array((np.ones(n_tokens), (self.groups, np.arange(n_tokens))), shape=(self.n_groups, n_tokens))

    @cached_property
    def _neighbourhood(self) -> csr_array:
        """[nb_d(t) = a] in row (d, a), shape (n_offsets * n_labels, n_tokens)."""
        tokens, offsets = np.nonzero(self.neighbours != MISSING)
        rows = offsets * self.n_labels + self.neighbours[tokens, offsets]
        shape = (self.n_offsets * self.n_labels, len(self.labels))
        return csr_array((np.ones(len(tokens)), (rows, tokens)), shape=shape)

    def group_sums(self, values: Matrix) -> Matrix:
        """Sums of per-token values (n_tokens, ...) over every group, shape (n_groups, ...)."""
        return np.asarray(self._membership @ values)

    def neighbour_sums(self, values: Matrix) -> Matrix:
        """Entry (d, a): sum of `values` (n_tokens, n_labels) over tokens whose neighbour at offset d has label a."""
        sums: Matrix = self._neighbourhood @ values
        return sums.reshape(self.n_offsets, self.n_labels, self.n_labels)

    def coupling_scores(self, couplings: Matrix) -> Matrix:
        """sum_d couplings[d, nb_d(t), :], dropped neighbours left out; shape (n_tokens, n_labels)."""
        return np.asarray(self._neighbourhood.T @ couplings.reshape(-1, self.n_labels))
