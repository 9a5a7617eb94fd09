"""The winner of a run: the best setting by its metric, with all that a fit on everything needs."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from gram_samples import KERNEL, WITH_PRIOR, corpus

from gramline.kernels import SequenceLabeling
from gramline.learners import LabelingPerceptron
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, JobData, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.winner import winner
from gramline.pipeline.errors import InputError, StoreError
from gramline.pipeline.executors.base import InlineExecutor
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.cache import GramCache
from gramline.pipeline.gram.stored import StoredGram

FOUND = corpus(12).described(Recipe("lists"))
VARIANTS = tuple(Variant(k, "labeling-perceptron", {"rounds": n}) for k in (0, 1) for n in (1, 5))


def run(job: Job, folder: Path, data: JobData | None = None, **settings: object) -> RunFolder:
    places = JobSettings(**({"cache": GramCache(folder / "cache"), "block_rows": 16} | settings))  # type: ignore[arg-type]
    run_folder = RunFolder(folder / "run")
    data = data or JobData.of_corpus(FOUND, "sample")
    run_job(job, data, run_folder, places, executor=lambda: nullcontext(InlineExecutor()))
    return run_folder


@pytest.mark.parametrize("metric", ["accuracy", "hamming_loss"])
def test_the_winner_can_be_fitted_on_everything(tmp_path: Path, metric: str) -> None:
    job = Job((KERNEL, SequenceLabeling(c=0.1)), VARIANTS, FoldSpec(3, seed=5), metric=metric)
    folder = run(job, tmp_path)
    best = winner(folder)
    results = folder.read_json("results.json")
    means = [setting["scores"][metric]["mean"] for setting in results["settings"]]
    assert best.score == (min(means) if metric == "hamming_loss" else max(means))
    assert (best.metric, best.n_structures) == (metric, 12)
    number = means.index(best.score)
    assert best.kernel == job.kernels[VARIANTS[number].kernel or 0]
    assert isinstance(best.learner, LabelingPerceptron)
    assert best.learner.rounds == VARIANTS[number].params["rounds"]
    assert f"rounds={best.learner.rounds}" in best.name
    assert best.corpus().fingerprint == FOUND.fingerprint
    assert best.corpus().labels == FOUND.labels
    assert best.recipe() == Recipe("lists")
    assert best.majority == results["majority"]["scores"][metric]["mean"]
    gram = best.gram()
    assert gram is not None
    assert gram.kernel == best.kernel
    fitted = best.learner.fit(gram, FOUND.labels)
    assert len(fitted.predict(gram)) == 12
    shutil.rmtree(tmp_path / "cache")
    assert winner(tmp_path / "run").gram() is None


def test_a_prior_that_counts_labels_has_no_matrix_of_all_structures(tmp_path: Path) -> None:
    best = winner(run(Job((WITH_PRIOR,), (Variant(0, "labeling-perceptron", {"rounds": 1}),), FoldSpec(2)), tmp_path))
    assert best.kernel == WITH_PRIOR
    assert best.gram_path is None


def test_learners_on_features_and_runs_from_a_store_alone(tmp_path: Path) -> None:
    best = winner(run(Job((), (Variant(None, "zscore", {"ridge": 0.5}),), FoldSpec(2)), tmp_path / "features"))
    assert (best.kernel, best.gram_path, best.learner.get_params()["ridge"]) == (None, None, 0.5)
    path = str(tmp_path / "g.zarr")
    data = JobData.of_gram(build_gram(KERNEL, FOUND, path), path)
    job = Job((KERNEL,), (Variant(0, "labeling-perceptron", {}),), FoldSpec(2))
    best = winner(run(job, tmp_path / "store", data, stores={0: path}))
    assert isinstance(best.gram(), StoredGram)
    assert best.recipe() is None
    with pytest.raises(InputError, match="whose corpus it does not know"):
        best.corpus()


def test_what_is_no_finished_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run"):
        winner(tmp_path)
    folder = run(Job((KERNEL,), VARIANTS[:2], FoldSpec(2)), tmp_path)
    content = folder.read_json("results.json")
    content["settings"][content["best"]]["learner"] = "oracle"
    (folder.path / "results.json").write_text(json.dumps(content))
    with pytest.raises(StoreError, match="does not hold the results of a run"):
        winner(folder)
