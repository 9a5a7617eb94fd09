"""Label chains with their dual weights: what the structured support vector machine carries from visit to visit.

A missing label ends a chain: the labeled positions before and after it are chains of their own, so the problem stays
convex (math 9.3 a).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gramline.learners.arrays import Codes, Floats, Indices
from gramline.learners.chains.viterbi import Decoder, follows
from gramline.learners.checkpoints import State, named, number, part_of
from gramline.learners.errors import LearnerError
from gramline.learners.margins.atom_loops import Atoms, Margin
from gramline.learners.margins.passes import Bounds, Stopping, Terms
from gramline.learners.margins.structured_loops import (
    Chains,
    Dual,
    Measured,
    Transitions,
    chain_terms,
    visit_chains,
)
from gramline.learners.operators.definiteness import not_semidefinite
from gramline.learners.operators.layout import BlockLayout
from gramline.learners.operators.lazy_scores import Change, Visit
from gramline.learners.operators.packets import Scores

SLOTS = 24  # label paths of a chain that are kept apart
# Passes that move weight among known paths decode nothing. They go on while one of them raises the dual by this share
# of what the pass before them did: what is slow lies between the chains, and they are its cheap part.
INNER_SHARE = 0.1
MOST_INNER = 30
INNER_ROWS = 10_000  # of a Gram matrix: beyond that the tiles are what a pass takes, and every pass looks for paths


def labeled_runs(codes: Codes, starts: Indices) -> tuple[Indices, Indices]:
    """First positions, and those after the last, of the runs of labeled positions; each lies in one structure."""
    is_labeled = codes >= 0
    begins = is_labeled.copy()
    begins[1:] &= ~(is_labeled[:-1] & follows(starts)[1:])
    firsts = np.flatnonzero(begins)
    run_of = np.cumsum(begins)[is_labeled] - 1
    return firsts, firsts + np.bincount(run_of, minlength=len(firsts))


@dataclass(eq=False)
class ChainProblem:
    """See `MarginProblem`."""

    layout: BlockLayout
    chains: Chains  # of all rows
    atoms: Atoms
    alpha: Floats  # C (Y - mu), shape (n_rows, n_labels)
    lag: Floats  # shape (n_rows, n_labels)
    transitions: Transitions
    measured: Measured
    decoder: Decoder
    margin: Margin
    stopping: Stopping
    most_inner: int
    trace: list[Bounds] = field(default_factory=list)
    n_visits: int = 0
    n_inner: int = 0  # number of the inner pass that is under way; 0 in one that looks for paths
    gained: float = 0.0  # by the dual, in the pass that is under way
    gained_first: float = 0.0  # in the last one that looked for paths

    @classmethod
    def start(
        cls, layout: BlockLayout, codes: Codes, n_labels: int, margin: Margin, stopping: Stopping
    ) -> ChainProblem:
        """All weight on the right paths, hence w = 0."""
        firsts, lasts = labeled_runs(codes, layout.structure_starts)
        n_rows, n_chains = len(codes), len(firsts)
        paths, weights = np.zeros((n_rows, SLOTS), np.int32), np.zeros((n_chains, SLOTS + 1))
        paths[:, 0], weights[:, 0] = codes, 1.0
        products, n_used = np.zeros((n_chains, SLOTS + 1, SLOTS + 1)), np.ones(n_chains, np.int64)
        mean, steps = np.zeros((n_rows, n_labels)), np.zeros((n_chains, n_labels, n_labels))
        atoms = Atoms(paths, weights, products, n_used, mean, steps, np.zeros(n_chains))
        alpha, lag = np.zeros((2, n_rows, n_labels))
        longest = int((lasts - firsts).max())
        return cls(
            layout,
            Chains(codes, firsts, lasts),
            atoms,
            alpha,
            lag,
            Transitions(*np.zeros((2, n_labels, n_labels))),
            Measured(*np.zeros((2, n_chains))),
            Decoder.of(longest, longest, n_labels),
            margin,
            stopping,
            MOST_INNER if n_rows <= INNER_ROWS else 0,
        )

    @property
    def n_labels(self) -> int:
        return int(self.alpha.shape[1])

    @property
    def is_inner(self) -> bool:
        return self.n_inner > 0

    def end_pass(self) -> None:
        if not self.is_inner:
            self.gained_first = self.gained
        goes_on = self.gained > INNER_SHARE * self.gained_first and self.n_inner < self.most_inner
        self.n_inner = self.n_inner + 1 if goes_on else 0
        self.gained = 0.0

    def visit(self, block: int, visit: Visit, scores: Scores) -> Change | None:
        positions, own = self.layout.rows(block), self._own(block)
        change, sizes = np.zeros((len(visit.tile), self.n_labels)), np.zeros(len(visit.tile))
        dual = Dual(*scores, self.alpha[positions], self.lag[positions], change, sizes)
        while True:
            bad, gained = visit_chains(
                visit.tile,
                visit.local,
                self._chains(block),
                self._atoms(block),
                dual,
                self.transitions,
                self.margin,
                self.decoder,
                self.n_visits,
                self.is_inner,
            )
            if bad >= 0:
                raise self._refused(own.start + bad)
            self.n_visits += own.stop - own.start
            self.gained += gained
            # Where one block has all rows nobody waits for its changes: the inner passes follow at once.
            if self.layout.n_blocks > 1:
                break
            self.end_pass()
            if not self.is_inner:
                break
        rows = np.flatnonzero(sizes)
        return Change(rows, change[rows], sizes[rows]) if len(rows) else None

    def measure(self, block: int, local: Indices, scores: Scores) -> Terms:
        own, structures = self._own(block), self.layout.structures(block)
        measured = Measured(*(array[own] for array in self.measured))
        hinge, n_inside = chain_terms(
            local,
            self._chains(block),
            self._atoms(block),
            scores.sums,
            self.alpha[self.layout.rows(block)],
            self.transitions.weights,
            self.margin.is_hamming,
            self.decoder,
            measured,
        )
        norms = np.zeros(structures.stop - structures.start)
        starts = self.layout.structure_starts
        owners = np.searchsorted(starts, self.chains.firsts[own], side="right") - 1
        np.add.at(norms, owners - structures.start, measured.norms)
        return Terms(hinge, n_inside, norms)

    def bounds(self, hinge: float, norm: float) -> Bounds:
        """P = |w|^2 / 2 + C sum of hinges,  D = C sum of expected losses - |w|^2 / 2."""
        length = norm + float((self.transitions.weights**2).sum()) / self.margin.rho
        loss = float(self.measured.losses.sum())
        return Bounds(length / 2.0 + self.margin.C * hinge, self.margin.C * loss - length / 2.0)

    def average(self) -> tuple[Floats, Floats]:
        """(alpha, T) as the mean of those after visit k with weight 2 k / (K (K + 1)), k = 1..K."""
        total = float(self.n_visits) * (self.n_visits + 1)
        return self.alpha - self.lag / total, self.transitions.weights - self.transitions.lag / total

    def state(self) -> State:
        own = {"alpha": self.alpha.copy(), "lag": self.lag.copy(), "visits": number(self.n_visits)}
        own["gained"] = np.array(self.gained)
        return own | named("atoms", _copies(self.atoms)) | named("transitions", _copies(self.transitions))

    def resume(self, state: State) -> None:
        self.alpha[:], self.lag[:], self.n_visits = state["alpha"], state["lag"], int(state["visits"])
        self.gained = float(state["gained"])
        for prefix, arrays in (("atoms", self.atoms), ("transitions", self.transitions)):
            saved = part_of(state, prefix)
            for name, array in arrays._asdict().items():
                array[:] = saved[name]

    def _own(self, block: int) -> slice:
        """Chains of a block."""
        positions = self.layout.rows(block)
        first, last = np.searchsorted(self.chains.firsts, [positions.start, positions.stop])
        return slice(int(first), int(last))

    def _chains(self, block: int) -> Chains:
        positions, own = self.layout.rows(block), self._own(block)
        gold, firsts, lasts = self.chains
        return Chains(gold[positions], firsts[own] - positions.start, lasts[own] - positions.start)

    def _atoms(self, block: int) -> Atoms:
        positions, own = self.layout.rows(block), self._own(block)
        paths, weights, products, n_used, mean, steps, losses = self.atoms
        return Atoms(
            paths[positions], weights[own], products[own], n_used[own], mean[positions], steps[own], losses[own]
        )

    def _refused(self, chain: int) -> LearnerError:
        said = "two label paths of a structure have a negative squared distance"
        return not_semidefinite(said, int(self.chains.firsts[chain]), self.layout)


def _copies(arrays: Atoms | Transitions) -> State:
    return {name: array.copy() for name, array in arrays._asdict().items()}
