"""Moments of a chain score over all label paths, equally likely: closed forms, no dynamic programming (Z-score).

phi(x, y) = [emission counts sum_k f_k[q] [y_k = p] ; transition counts (a -> b)]; labels are i.i.d. uniform.
n = number of labels; sums over sequences are written without an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramline.learners.arrays import Codes, Floats, Offsets
from gramline.learners.chains.viterbi import follows, structure_sums


@dataclass(frozen=True, eq=False)
class ChainStatistics:
    """What the Z-score needs to know of labels and sequence lengths, N positions in total."""

    codes: Codes  # label of each position, shape (N,)
    starts: Offsets  # shape (n_sequences + 1,)
    n_labels: int

    @cached_property
    def is_in(self) -> Floats:
        """s_in: 0 at the first position of each sequence, else 1."""
        return follows(self.starts).astype(np.float64)

    @cached_property
    def is_out(self) -> Floats:
        """s_out: 0 at the last position of each sequence, else 1."""
        return np.append(self.is_in[1:], 0.0) if len(self.codes) else np.zeros(0)

    @property
    def n_transitions(self) -> int:
        """M1 = sum of m - 1."""
        return int(np.maximum(np.diff(self.starts) - 1, 0).sum())

    @property
    def n_links(self) -> int:
        """M2 = sum of max(m - 2, 0): pairs of neighbouring transitions."""
        return int(np.maximum(np.diff(self.starts) - 2, 0).sum())

    @cached_property
    def transition_excess(self) -> Floats:
        """B_ab = #(a -> b) - M1 / n^2, shape (n, n)."""
        counts = np.zeros((self.n_labels, self.n_labels))
        inner = np.flatnonzero(self.is_in)
        np.add.at(counts, (self.codes[inner - 1], self.codes[inner]), 1.0)
        return counts - self.n_transitions / self.n_labels**2

    def right_hand_sides(self) -> Floats:
        """[Yc | s_in | s_out] with Yc = onehot(y) - 1/n, shape (N, n + 2)."""
        sides = np.full((len(self.codes), self.n_labels + 2), -1.0 / self.n_labels)
        sides[np.arange(len(self.codes)), self.codes] += 1.0
        sides[:, -2] = self.is_in
        sides[:, -1] = self.is_out
        return sides


def path_moments(scores: Floats, transition: Floats, starts: Offsets) -> tuple[Floats, Floats]:
    """Mean and variance of the path score of every sequence over all its n^m label paths, each shape (n_sequences,).

    With R = `scores` (N x n), Rc its centred rows, r_in = sum_{k >= 2} Rc_k, r_out = sum_{k <= m-1} Rc_k, tot = sum T,
    u_b = sum_a T_ab - tot / n, v_a = sum_b T_ab - tot / n:
    mean = sum R / n + M1 tot / n^2,
    var  = |Rc|^2 / n + 2 (r_in . u + r_out . v) / n^2 + M1 (|T|^2 / n^2 - tot^2 / n^4) + 2 M2 u . v / n^3.
    """
    n = scores.shape[1]
    total = float(transition.sum())
    columns, rows = (transition.sum(axis=axis) - total / len(transition) for axis in (0, 1))  # u, v
    lengths = np.diff(starts)
    n_transitions, n_links = np.maximum(lengths - 1, 0), np.maximum(lengths - 2, 0)
    centred = scores - scores.mean(axis=1, keepdims=True) if len(scores) else scores
    inner = follows(starts)
    leaving = np.append(inner[1:], False) if len(inner) else inner
    mean = structure_sums(scores.sum(axis=1), starts) / n + n_transitions * total / n**2
    coupled = np.where(inner, centred @ columns, 0.0) + np.where(leaving, centred @ rows, 0.0)
    variance = structure_sums((centred**2).sum(axis=1) / n + 2.0 * coupled / n**2, starts)
    variance += n_transitions * (float((transition**2).sum()) / n**2 - total**2 / n**4)
    variance += n_links * 2.0 * float(columns @ rows) / n**3
    return mean, np.maximum(variance, 0.0)  # rounding may leave a variance of 0 slightly below it
