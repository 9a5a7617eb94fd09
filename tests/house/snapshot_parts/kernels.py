"""Every kernel of the catalogue: Gram matrices in memory, and stores of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from snapshot_parts.inputs import LABEL_KERNEL, SUBSTITUTION, SYMBOLS, corpus
from snapshot_parts.recording import Record

from gramline.kernels import (
    DagLabeling,
    EmpiricalPrior,
    Gaussian,
    Identity,
    Linear,
    Polynomial,
    SequenceLabeling,
    SubsetTree,
    Substitution,
    TabulatedPrior,
    Tagging,
    TreeLabeling,
    UniformPrior,
    WeightedForest,
)
from gramline.pipeline import StoredGram, append_gram, build_gram, connect, export_gram, verify_gram

# Corpora of words and of letters for each family of position kernels.
FAMILIES = {
    "sequence": (SequenceLabeling, "sequences-spelled", "letters"),
    "tree": (TreeLabeling, "trees-spelled", "letter-trees"),
    "dag": (DagLabeling, "dags-spelled", "letter-dags"),
}
OBSERVATIONS = {
    "identity": Identity(),
    "identity normalized": Identity(normalized=True),
    "linear": Linear(),
    "linear normalized": Linear(normalized=True),
    "polynomial": Polynomial(degree=2),
    "polynomial homogeneous": Polynomial(degree=2, coef0=0.0),
    "polynomial cubic normalized": Polynomial(degree=3, coef0=0.5, normalized=True),
    "gaussian": Gaussian(gamma=0.3),
    "gaussian normalized": Gaussian(gamma=2.0, normalized=True),
}
SUBSTITUTIONS = {
    "substitution": Substitution(tuple(SYMBOLS), SUBSTITUTION),
    "substitution normalized": Substitution(tuple(SYMBOLS), SUBSTITUTION, normalized=True),
}
PRIORS = {
    "uniform": UniformPrior(),
    "empirical": EmpiricalPrior(),
    "empirical unsmoothed": EmpiricalPrior(smoothing=0.25),
    "tabulated": TabulatedPrior(),
}
STRUCTURES = {
    "subset-tree": (
        "parses",
        [
            SubsetTree(decay, depth, normalized)
            for decay in (1.0, 0.4)
            for depth in (None, 1, 3)
            for normalized in (False, True)
        ],
    ),
    "tagging": ("tagged", [Tagging(decay, gap) for decay in (1.0, 0.5) for gap in (None, 0.0, 0.3, 1.0)]),
}


def kernel_cases() -> Iterator[tuple[str, Any, str]]:
    """Name, kernel, and the corpus it is computed on."""
    for family, (kernel, words, letters) in FAMILIES.items():
        for gap in (0.0, 0.3) if family == "sequence" else (None,):
            more: dict[str, Any] = {} if gap is None else {"gap": gap}
            for name, observation in (OBSERVATIONS | SUBSTITUTIONS).items():
                place = letters if name in SUBSTITUTIONS else words
                yield f"{family} {name} {more}", kernel(c=0.5, observation=observation, **more), place
        for c in (0.1, 1.0):
            yield f"{family} letters c={c}", kernel(c=c), letters
    for name in ("linear", "polynomial", "polynomial cubic normalized", "gaussian"):
        yield f"sequence valued {name}", SequenceLabeling(c=0.7, observation=OBSERVATIONS[name]), "letters-valued"
    for family, (place, kernels) in STRUCTURES.items():
        for kernel in kernels:
            yield f"{family} {kernel.get_params()}", kernel, place


def record_kernels(record: Record) -> None:
    """Square and rectangular matrices of every case; the four-index form with every prior and label kernel."""
    for name, kernel, place in kernel_cases():
        train, new = corpus(place), corpus(f"{place}-new")
        record.exact("kernels", f"{name}: square", kernel.gram(train))
        record.exact("kernels", f"{name}: train x new", kernel.gram(train, new))
    for family, (kernel, _, letters) in FAMILIES.items():
        train, new = corpus(letters), corpus(f"{letters}-new")
        for name, prior in PRIORS.items():
            for labels in (None, LABEL_KERNEL):
                full = kernel(c=0.6, prior=prior, label_kernel=labels).full(train, new)
                has_labels = "" if labels is None else " with label kernel"
                record.exact("kernels", f"{family} {name} prior{has_labels}: full", full)
    forest = WeightedForest.of(SubsetTree(0.4), corpus("candidates").packed(), np.arange(48.0) - 20)
    new_trees = corpus("candidates-new").packed(like=corpus("candidates").packed())
    record.numbers("kernels", "weighted forest", forest.values(new_trees))


# ---- stores


def store_cases() -> Iterator[tuple[str, Any, str, dict[str, Any]]]:
    """Name, kernel, corpus and options of build_gram."""
    smooth = Polynomial(degree=2, normalized=True)
    labeling = {
        "sequences": SequenceLabeling(c=0.8, gap=0.2, observation=smooth),
        "trees": TreeLabeling(c=0.5, observation=smooth),
        "dags": DagLabeling(c=0.5, observation=smooth),
        "letters": SequenceLabeling(c=0.6, prior=TabulatedPrior(), label_kernel=LABEL_KERNEL),
        "letter-trees": TreeLabeling(c=0.6, prior=TabulatedPrior()),
        "letter-dags": DagLabeling(c=0.6, observation=Substitution(tuple(SYMBOLS), SUBSTITUTION)),
    }
    structures = {"parses": SubsetTree(0.4, normalized=True), "candidates": SubsetTree(0.5, 2), "tagged": Tagging(0.5)}
    for place, kernel in (labeling | structures).items():
        rows = 60 if place in ("sequences", "trees", "dags") else 5 if place in structures else 17
        for dtype in ("float64", "float32"):
            yield f"{place} {dtype}", kernel, place, {"dtype": dtype, "block_rows": rows}
        yield f"{place} new", kernel, place, {"other": corpus(f"{place}-new"), "block_rows": rows}
    for compression in ("lz4", "zstd"):
        yield f"letters {compression}", labeling["letters"], "letters", {"compression": compression}
    counted = SequenceLabeling(c=0.6, prior=EmpiricalPrior(smoothing=0.5))
    yield "letters counted", counted, "letters", {"block_rows": 20}
    yield "letters counted new", counted, "letters", {"other": corpus("letters-new"), "block_rows": 20}


def tiles(gram: StoredGram) -> list[Any]:
    """All tiles that are stored, row by row."""
    rows, cols = gram.layout.rows.n_blocks, gram.layout.cols.n_blocks
    square = gram.layout.is_symmetric
    return [gram.tile(i, j) for i in range(rows) for j in range(i if square else 0, cols)]


def record_store(record: Record, name: str, gram: StoredGram) -> None:
    """Its tiles with their padding, the full matrix, and what goes with it."""
    record.exact("stores", f"{name}: tiles", np.concatenate([np.ravel(tile) for tile in tiles(gram)]))
    record.exact("stores", f"{name}: matrix", gram.to_numpy())
    right = np.cos(np.arange(2.0 * gram.shape[1])).reshape(-1, 2)
    record.numbers("stores", f"{name}: product", gram.matmul(right))
    record.document("stores", f"{name}: layout", [gram.layout.rows.lengths.tolist(), gram.layout.cols.lengths.tolist()])
    for side, prior in (("row", gram.row_prior), ("column", gram.col_prior)):
        if prior is not None:
            record.numbers("stores", f"{name}: {side} prior", prior)


def record_stores(record: Record) -> None:
    """Build, open again, append, export and verify, by the Python names."""
    folder = Path("stores")
    for name, kernel, place, options in store_cases():
        path = folder / f"{name.replace(' ', '-')}.zarr"
        build_gram(kernel, corpus(place), path, **options)
        record_store(record, name, StoredGram.open(path))
        if name.endswith("float64"):
            export_gram(path, target := path.with_suffix(".npy"))
            record.exact("stores", f"{name}: exported", np.load(target))
            _record_append(record, f"{name} appended", kernel, place, folder)
    record.document("stores", "verified", bool(verify_gram(folder / "letters-float64.zarr")))


def _record_append(record: Record, name: str, kernel: Any, place: str, folder: Path) -> None:
    path = folder / f"{place}-appended.zarr"
    build_gram(kernel, corpus(place), path, block_rows=60)
    append_gram(path, corpus(f"{place}-more"))
    record_store(record, name, StoredGram.open(path))


def record_cluster(record: Record) -> None:
    """The same tiles from a worker process of Dask."""
    kernel = SequenceLabeling(c=0.8, observation=Linear(normalized=True))
    with connect(workers=1) as client:
        gram = build_gram(kernel, corpus("sequences"), "stores/cluster.zarr", block_rows=60, client=client)
        record_store(record, "cluster", gram)
