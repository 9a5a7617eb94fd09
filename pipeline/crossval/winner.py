"""The setting that won a run, with everything that is needed to fit it on all structures."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import from_dict
from gramline.kernels.errors import KernelError
from gramline.learners.catalogue import make_learner
from gramline.learners.errors import LearnerError
from gramline.learners.estimator import Learner
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.crossval.problem_task import stored
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.setting_names import setting_names
from gramline.pipeline.errors import InputError, RunError, StoreError
from gramline.pipeline.gram.spec import counts_labels
from gramline.pipeline.gram.stored import StoredGram


@dataclass(frozen=True, eq=False)
class Winner:
    """The best setting of a run by its deciding metric, over all folds."""

    kernel: Kernel | None  # None: the learner reads features itself
    learner: Learner  # new, with its parameters
    corpus_path: str | None  # all structures of the run; None: only their Gram matrix is known
    gram_path: str | None  # a complete store that begins with these structures, where there still is one
    n_structures: int
    metric: str
    score: float  # mean over the folds
    deviation: float
    majority: float | None  # what the most frequent label scored; None: the run is of a version that did not say
    name: str  # by what the settings of the run differ in
    dtype: str  # of the tiles of the run

    def corpus(self) -> Corpus:
        """All structures, with their labels."""
        if self.corpus_path is None:
            problem = "the run was made from a Gram matrix, whose corpus it does not know"
            raise InputError(problem, advice="fit on that Gram matrix, or run `gramline cv` with --corpus")
        return Corpus.load(self.corpus_path)

    def recipe(self) -> Recipe | None:
        """How the corpus was made from a file, where that is known."""
        return None if self.corpus_path is None else self.corpus().recipe

    def gram(self) -> StoredGram | None:
        """The stored Gram matrix over all structures of the run."""
        return None if self.gram_path is None else stored(self.gram_path, self.n_structures)


def winner(run: RunFolder | str | os.PathLike[str]) -> Winner:
    """Which setting of a finished run won; a folder without results is refused."""
    folder = RunFolder.existing(run.path if isinstance(run, RunFolder) else run)
    summary = folder.read_json("results.json")
    try:
        best, metric, settings = summary["best"], summary["metric"], summary["settings"]
        setting, majority = settings[best], summary.get("majority")
        kernel = None if setting["kernel"] is None else from_dict(setting["kernel"], Kernel)  # type: ignore[type-abstract]
        score, n_structures = setting["scores"][metric], int(summary["structures"])
        return Winner(
            kernel=kernel,
            learner=make_learner(setting["learner"], setting["params"]),
            corpus_path=str(folder.corpus_path) if folder.corpus_path.is_file() else None,
            gram_path=_gram_path(summary["stores"], setting["kernel"], kernel, n_structures),
            n_structures=n_structures,
            metric=metric,
            score=score["mean"],
            deviation=score["deviation"],
            majority=None if majority is None else majority["scores"][metric]["mean"],
            name=setting_names([*settings, *summary.get("failed", [])], summary.get("files"))[best],
            dtype=summary["dtype"],
        )
    except (KeyError, IndexError, TypeError, AttributeError, KernelError, LearnerError) as error:
        problem = f"{folder.path / 'results.json'} does not hold the results of a run ({type(error).__name__}: {error})"
        raise StoreError(problem, advice="run `gramline cv` again") from None


def _gram_path(
    stores: list[dict[str, object]], description: object, kernel: Kernel | None, n_structures: int
) -> str | None:
    """The store of the winner's kernel, unless it is gone, unfinished, or was counted from the labels of one fold."""
    if kernel is None or counts_labels(kernel):
        return None
    for store in stores:
        path = str(store["path"])
        if store["kernel"] != description or ("://" not in path and not Path(path).is_dir()):
            continue
        try:
            if stored(path, n_structures).status().is_complete:
                return path
        except (StoreError, RunError):
            continue
    return None
