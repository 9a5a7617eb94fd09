"""The labeling kernel between nodes of directed acyclic graphs, over directed paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramline.kernels.base import chunk_starts
from gramline.kernels.dags.labeling_loops import sweep_graphs
from gramline.kernels.dags.topology import ColumnGraphs, RowGraphs
from gramline.kernels.marginalized import LinkedLabeling, Strip
from gramline.kernels.packing import Packed, PackedDags


@dataclass(frozen=True)
class DagLabeling(LinkedLabeling):
    """G(tau,t) = c^2 kx(tau,t) (1+U'(tau,t)) (1+D'(tau,t)); features are labelled directed paths.

        U'(tau,t) = sum over parents v of tau, u of t of kap(v,u) (1+U'(v,u))        D' the same over children

    Row by row in topological order: H[v] = (kap (1+U'))[v] A with A the edges on the right, U'[tau] = sum_v H[v].
    O(|E| T' + T |E'|) per pair. Positive semidefinite when kx is. Marginalized labeling kernel on DAGs.

    >>> from gramline.kernels import DagLabeling
    >>> from gramline.pipeline import Corpus
    >>> corpus = Corpus.from_dags([["a", "b", "c"]], [[(0, 1), (0, 2), (1, 2)]], [["x", "y", "y"]])
    >>> DagLabeling().gram(corpus).diagonal()
    array([2.25, 2.25, 2.25])
    """

    name: ClassVar[str] = "dag-labeling"
    summary: ClassVar[str] = "directed paths of acyclic graphs"
    packed_kind: ClassVar[str] = "dags"

    def recursion(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> Paths:
        return Paths(rows, cols, precision)


class Paths:
    """U' and D' over directed paths."""

    columns = None

    def __init__(self, rows: Packed, cols: Packed, precision: type[np.floating[Any]]) -> None:
        assert isinstance(rows, PackedDags)
        assert isinstance(cols, PackedDags)
        self.rows = RowGraphs.of(rows)
        self.cols = ColumnGraphs.of(cols, chunk_starts(cols.starts))
        cells = int(rows.lengths.max(initial=0)) * int(np.diff(self.cols.chunks).max(initial=0))
        self.tables = np.empty((2, cells), precision)

    def run(self, strip: Strip) -> bool:
        return bool(sweep_graphs(self.rows, self.cols, strip, self.tables))
