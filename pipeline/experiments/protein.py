"""A second field: helix, sheet or coil at every residue of a protein, from its amino acids.

Observations are letters compared by an amino-acid substitution matrix; the Gram matrices of all training chains are
built into stores like any other. Settings are chosen on some of the training chains, never on test chains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from gramline.kernels.observations.substitution import Substitution
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.estimator import Learner
from gramline.learners.metrics import evaluate
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.readers.conll import read_conll
from gramline.pipeline.crossval.crf import CHOSEN_NOTE, CONSTANTS, ChosenCrf, chosen_crfs, has_crf, missing_crf
from gramline.pipeline.crossval.folds import k_fold
from gramline.pipeline.crossval.validate import cross_validate, grid
from gramline.pipeline.experiments.base import ResultTable, Row, Run
from gramline.pipeline.gram.build import build_gram

STRUCTURES = {"h": "helix", "e": "sheet", "_": "coil"}
PUBLISHED_Q3 = 64.3  # that the notes of the data set quote, of neural networks on the same chains
CHOOSING_CHAINS, CHOOSING_FOLDS = 40, 3
WINDOW = 6  # residues on either side, for the CRF
CRF = "CRF on windows"


@dataclass(frozen=True)
class Family:
    """A learner, and the kernels and parameters to choose from."""

    name: str
    learner: Learner
    kernels: Sequence[Mapping[str, float]]  # sharpness, c and gap
    parameters: Sequence[Mapping[str, Any]] = ({},)


def families(quick: bool) -> list[Family]:
    averaged = LabelingPerceptron(10, average=True)
    zscore = KernelZScoreLabeler(
        tolerance=1e-3, preconditioner="none", unlabeled="drop", ridge=1e-2, transition_ridge=None
    )
    close = {"sharpness": (0.15,) if quick else (0.1, 0.15)}
    return [
        Family("sequence kernel", averaged, grid(close | {"c": (2.0,) if quick else (1.5, 2.0, 2.5)})),
        Family("gappy sequence kernel", averaged, grid(close | {"c": (1.5,), "gap": (0.1,) if quick else (0.1, 0.3)})),
        Family(
            "sequence kernel, kernel Z-score",
            zscore,
            grid({"sharpness": (0.15,), "c": (1.5,)}),
            grid({"ridge": (1.0, 3.0), "transition_ridge": (1e4, 1e5)}),
        ),
    ]


def protein(run: Run) -> Sequence[ResultTable]:
    """Q3 and the share found of each structure, on the test chains."""
    train, test = (read_conll(run.file(f"protein_ss/{name}.tsv"), features="token") for name in ("train", "test"))
    train, test = run.part(train, 8), run.part(test, 3)
    rows: list[Row] = []
    for family in families(run.quick):
        run.say(f"{family.name}: choosing")
        begin = perf_counter()
        kernel, parameters = _chosen(family, train, run)
        run.say(f"{family.name}: training with {kernel} {parameters}")
        learner = family.learner.fresh().set_params(**parameters)
        predicted = _predicted(learner, _kernel(kernel), train, test, run.scratch)
        words = " ".join(f"{name} {value:g}".replace("_", " ") for name, value in {**kernel, **parameters}.items())
        rows.append((family.name, *_scores(test, predicted), perf_counter() - begin, words))
    if has_crf():
        run.say("CRF")
        begin = perf_counter()
        found = _by_crfs(run, len(train), len(test))
        seconds = perf_counter() - begin
        rows += [
            (f"{CRF}, {decoding}", *_scores(test, one.labels), seconds, f"c2 {one.c2:g}")
            for decoding, one in found.items()
        ]
    most = [["_"] * int(length) for length in test.lengths]
    rows.append(("coil everywhere", *_scores(test, most), None, ""))
    rows.append(("published, neural networks", PUBLISHED_Q3, None, None, None, None, ""))
    n_choosing = min(CHOOSING_CHAINS, len(train))
    return [
        ResultTable(
            f"Secondary structure: {len(train)} chains of {train.n_positions:,} residues to train, {len(test)} of "
            f"{test.n_positions:,} to test, in per cent",
            ("method", "Q3", *STRUCTURES.values(), "s", "chosen"),
            tuple(rows),
            (
                "Q3: residues labeled rightly; helix, sheet, coil: share found of each; averaged perceptron, 10 "
                "rounds, unless said otherwise",
                "observations: exp(sharpness (S_ab - (S_aa + S_bb) / 2)), S the BLOSUM62 scores",
                f"chosen by {CHOOSING_FOLDS} folds over the first {n_choosing} training chains; s: choosing, Gram "
                "matrices, training and prediction, by the clock; of a CRF for both decodings together",
                f"CRF: letters of the residue and {WINDOW} on either side; the published number is of networks on "
                "windows whose outputs a second network reads, as the notes of the data set quote it",
                *missing_crf(),
                *((f"{CHOSEN_NOTE} by {CHOOSING_FOLDS} folds of all training chains",) if has_crf() else ()),
            ),
        )
    ]


def _kernel(setting: Mapping[str, float]) -> SequenceLabeling:
    observation = Substitution.named("blosum62", sharpness=setting["sharpness"])
    return SequenceLabeling(c=setting["c"], gap=setting.get("gap", 0.0), observation=observation)


def _chosen(family: Family, train: Corpus, run: Run) -> tuple[Mapping[str, float], Mapping[str, Any]]:
    """The kernel and the parameters with the best accuracy on folds over some training chains."""
    if len(family.kernels) * len(family.parameters) == 1:
        return family.kernels[0], family.parameters[0]
    some = train.select(range(min(CHOOSING_CHAINS, len(train))))
    folds = k_fold(len(some), 2 if run.quick else CHOOSING_FOLDS)
    losses = []
    for number, setting in enumerate(family.kernels):
        gram = DenseGram.of(_kernel(setting), some)
        result = cross_validate(family.learner, gram, some.labels, folds, family.parameters, dummy=None)
        losses += [(-float(mean), number, k) for k, mean in enumerate(result.table("accuracy").mean(axis=1))]
    _, kernel, parameters = min(losses)  # the first of equals
    return family.kernels[kernel], family.parameters[parameters]


def _predicted(learner: Any, kernel: SequenceLabeling, train: Corpus, test: Corpus, scratch: Path) -> list[list[str]]:
    """Labels of the test chains, from stored Gram matrices."""
    with TemporaryDirectory(prefix="gramline-protein-", dir=scratch) as folder:
        learner.fit(build_gram(kernel, train, Path(folder) / "train.zarr"), train.labels)
        cross = build_gram(kernel, train, Path(folder) / "test.zarr", other=test.without_labels())
        predicted: list[list[str]] = learner.predict(cross)
    return predicted


def _by_crfs(run: Run, n_train: int, n_test: int) -> dict[str, ChosenCrf]:
    """A CRF that sees the letters around every residue, by decoding."""
    train, test = (
        read_conll(run.file(f"protein_ss/{name}.tsv"), features="words", window=WINDOW).select(range(n))
        for name, n in (("train", n_train), ("test", n_test))
    )
    packed = train.packed()
    constants = CONSTANTS[2:4] if run.quick else CONSTANTS
    return chosen_crfs(packed, test.packed(like=packed), constants, 2 if run.quick else CHOOSING_FOLDS)


def _scores(test: Corpus, predicted: list[list[str]]) -> tuple[float, ...]:
    """Q3 and the recall of every structure, in per cent."""
    gold = np.array([label for chain in test.labels for label in chain])
    guess = np.array([label for chain in predicted for label in chain])
    recalls = [float((guess[gold == label] == label).mean()) for label in STRUCTURES]
    return tuple(100 * value for value in (evaluate(test.labels, predicted, dummy=None).accuracy, *recalls))
