"""Jobs: the same results as cross_validate, from one Gram per kernel; nothing finished is repeated; nothing leaks."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from gram_samples import KERNEL, WITH_PRIOR, corpus
from job_samples import FOLDS, ROUNDS, ZSCORE, Counting, data_of, run

from gramline.kernels import SequenceLabeling
from gramline.learners.errors import LabelError
from gramline.learners.operators.dense import DenseGram
from gramline.learners.perceptrons.labeling import LabelingPerceptron
from gramline.learners.random_fields.kernel_crf import KernelCRF
from gramline.learners.zscore.labeler import ZScoreLabeler
from gramline.pipeline.cost import this_process
from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.job import Job, Variant
from gramline.pipeline.crossval.run import run_job
from gramline.pipeline.crossval.run_folder import RunFolder
from gramline.pipeline.crossval.running import JobSettings
from gramline.pipeline.crossval.training import fit_on_gram, hide
from gramline.pipeline.crossval.unit_files import StoredRow
from gramline.pipeline.crossval.validate import METRICS, cross_validate, grid
from gramline.pipeline.errors import RunError
from gramline.pipeline.events import Event, JobStarted, Message, ProblemsSolved, TrainingStarted
from gramline.pipeline.gram.cache import GramCache


def test_a_field_on_features_is_one_setting_of_a_job(tmp_path: Path) -> None:
    found = corpus(14)
    field = Variant(None, "kernel-crf", {"dual": False, "penalty": 0.3})
    result = run(Job((KERNEL,), (ROUNDS[0], field), FOLDS), data_of(found), tmp_path)
    explicit = cross_validate(KernelCRF(0.3, dual=False), found, found.labels, 3, seed=5)
    assert result.result.predictions[1] == explicit.predictions[0]
    assert result.result.outcomes[1][0].confidence == explicit.outcomes[0][0].confidence is not None


def test_a_job_finds_what_cross_validate_finds(tmp_path: Path) -> None:
    found = corpus(14)
    result = run(Job((KERNEL,), (*ROUNDS, ZSCORE), FOLDS, metric="f1"), data_of(found), tmp_path)
    settings = grid({"rounds": [1, 4], "average": [False, True]})
    expected = cross_validate(LabelingPerceptron(), DenseGram.of(KERNEL, found), found.labels, 3, settings, seed=5)
    assert result.result.predictions[:4] == expected.predictions
    explicit = cross_validate(ZScoreLabeler(), found, found.labels, 3, seed=5)
    assert result.result.predictions[4] == explicit.predictions[0]
    rows = pq.read_table(tmp_path / "run" / "results.parquet").to_pylist()
    assert len(rows) == 5 * 3 * len(METRICS)
    written = {(row["setting"], row["fold"]): row["value"] for row in rows if row["metric"] == "f1"}
    assert written[2, 1] == expected.table("f1")[2, 1]
    positions = pq.read_table(tmp_path / "run" / "predictions.parquet")
    assert len(positions) == 5 * found.n_positions
    summary = json.loads((tmp_path / "run" / "results.json").read_text())
    assert summary["best"] == result.result.best("f1")
    assert summary["settings"][3]["scores"]["f1"]["folds"] == pytest.approx(expected.table("f1")[3].tolist())


def test_a_second_run_solves_nothing_and_a_new_setting_only_itself(tmp_path: Path) -> None:
    data = data_of(corpus(10))
    job = Job((KERNEL,), (ROUNDS[0], ZSCORE), FOLDS)
    first = run(job, data, tmp_path)
    idle = Counting()
    again = run(job, data, tmp_path, idle)
    assert idle.tasks == []
    assert again.result.predictions == first.result.predictions
    assert again.summary["problems"] == {"total": 6, "solved_before": 6}
    more = run(replace(job, variants=(*job.variants, Variant(None, "zscore", {"ridge": 0.5}))), data, tmp_path, idle)
    assert [task.params for task in idle.tasks] == [{"ridge": 0.5}] * 3
    assert more.result.predictions[:2] == first.result.predictions


def test_an_interrupted_job_goes_on_without_repeating_finished_folds(tmp_path: Path) -> None:
    data, job = data_of(corpus(10)), Job((), (ZSCORE, Variant(None, "zscore", {"ridge": 0.5})), FOLDS)
    stopped = Counting(stop_before=4)
    with pytest.raises(KeyboardInterrupt):
        run(job, data, tmp_path, stopped)
    assert not (tmp_path / "run" / "results.json").exists()
    rest = Counting()
    result = run(job, data, tmp_path, rest)
    assert len(rest.tasks) == 2
    assert {task.digest for task in stopped.tasks}.isdisjoint(task.digest for task in rest.tasks)
    assert result.result.predictions == run(job, data, tmp_path / "whole").result.predictions


def test_a_half_built_gram_is_completed(tmp_path: Path) -> None:
    data, job = data_of(corpus(14)), Job((KERNEL,), ROUNDS[:1], FOLDS)
    with pytest.raises(KeyboardInterrupt):
        run(job, data, tmp_path, Counting(stop_before=3))
    rest = Counting()
    result = run(job, data, tmp_path, rest)
    store = result.summary["stores"][0]
    assert len(rest.tasks) == store["tiles"] - 3
    assert len(RunFolder(tmp_path / "run").tiles()) == store["tiles"]


def test_a_failing_problem_is_named_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, job = data_of(corpus(10)), Job((), (ZSCORE, Variant(None, "zscore", {"ridge": 0.5})), FOLDS)
    fit = ZScoreLabeler.fit

    def fail(self: ZScoreLabeler, *arguments: Any) -> Any:
        if self.ridge == 0.5:
            raise ZeroDivisionError("broken")
        return fit(self, *arguments)

    monkeypatch.setattr(ZScoreLabeler, "fit", fail)
    with pytest.raises(RunError, match="3 of 6 problems failed, the first with ZeroDivisionError: broken"):
        run(job, data, tmp_path)
    assert len(RunFolder(tmp_path / "run").finished()) == 3


def test_problems_run_as_tasks_of_a_cluster(tmp_path: Path, dask_client: Any) -> None:
    from gramline.pipeline.executors.dask import DaskExecutor

    data = data_of(corpus(10))
    job = Job((KERNEL,), (ROUNDS[0], ZSCORE), FOLDS)
    there = run(job, data, tmp_path / "there", DaskExecutor(dask_client))
    here = run(job, data, tmp_path / "here")
    assert there.result.predictions == here.result.predictions


MANY = (
    *(Variant(kernel, "labeling-perceptron", {"rounds": rounds}) for kernel in (0, 1) for rounds in (1, 3)),
    *(Variant(kernel, "kernel-zscore", {"ridge": 0.3}) for kernel in (0, 1)),
    *(Variant(kernel, "gaussian-process", {"max_sweeps": 2}) for kernel in (0, 1)),
    ZSCORE,
)


def test_steps_side_by_side_find_what_they_find_in_order(tmp_path: Path, dask_client: Any) -> None:
    """Builds, streams and tasks of two kernels on one cluster; workers write down what they solve."""
    from gramline.pipeline.executors.dask import DaskExecutor

    data, job = data_of(corpus(14)), Job((KERNEL, SequenceLabeling(c=0.4)), MANY, FOLDS)
    there = run(job, data, tmp_path / "there", DaskExecutor(dask_client), is_side_by_side=True, limit_bytes=10**9)
    here = run(job, data, tmp_path / "here", limit_bytes=10**9)
    assert there.result.predictions == here.result.predictions
    assert [store["kernel"] for store in there.summary["stores"]] == [
        store["kernel"] for store in here.summary["stores"]
    ]
    workers = {unit["worker"] for unit in there.summary["units"] if "worker" in unit}
    assert workers
    assert this_process() not in workers
    assert not (tmp_path / "there" / "run" / "states").exists()


def test_a_kernel_that_overflows_takes_nobody_along(tmp_path: Path, dask_client: Any) -> None:
    from gramline.pipeline.executors.dask import DaskExecutor

    job = Job((SequenceLabeling(c=1e120), KERNEL), MANY[:4], FOLDS)
    for name, more in (("in order", {}), ("side by side", {"is_side_by_side": True})):
        executor = DaskExecutor(dask_client) if more else None
        result = run(job, data_of(corpus(14)), tmp_path / name, executor, **more)
        assert [failed["kernel"] for failed in result.summary["failed"]] == [job.kernels[0].to_dict()] * 2
        assert len(result.summary["settings"]) == 2


def test_what_a_worker_cannot_write_is_written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, refused = RunFolder.write_unit, list[str]()

    def refuse_once(folder: RunFolder, outcomes: Any, details: Any) -> None:
        if (digest := next(iter(outcomes))) not in refused:
            refused.append(digest)
            raise PermissionError(13, "Permission denied")
        write(folder, outcomes, details)

    monkeypatch.setattr(RunFolder, "write_unit", refuse_once)
    result = run(Job((), (ZSCORE,), FOLDS), data_of(corpus(10)), tmp_path)
    assert len(refused) == len(result.summary["units"]) == 3


def test_problems_that_were_written_elsewhere_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunFolder, "write_unit", lambda *_arguments: None)
    with pytest.raises(RunError, match=r"3 of 3 problems were solved but are not in .*; do all workers see the same"):
        run(Job((), (ZSCORE,), FOLDS), data_of(corpus(10)), tmp_path)


def test_outcomes_stay_on_disk(tmp_path: Path) -> None:
    """What a job returns reads them when it is asked, problem by problem."""
    result = run(Job((KERNEL,), ROUNDS, FOLDS), data_of(corpus(14)), tmp_path).result
    assert all(isinstance(row, StoredRow) for row in result.outcomes)
    (unit,) = (tmp_path / "run" / "units").iterdir()
    assert pq.read_metadata(unit).num_row_groups == len(ROUNDS) * 3
    assert result.outcomes[1][2].predicted == result.predictions[1][2]


def test_an_empirical_prior_is_counted_anew_on_every_fold(tmp_path: Path) -> None:
    found = corpus(12)
    result = run(Job((WITH_PRIOR,), (Variant(0, "labeling-perceptron", {}),), FOLDS), data_of(found), tmp_path)
    folds = result.result.folds
    for fold, held in enumerate(folds.held_out):
        masked = found.with_labels(hide(found.labels, held))
        gram = DenseGram.of(WITH_PRIOR, masked)
        expected = LabelingPerceptron().fit(gram, masked.labels).predict(gram)
        assert result.result.predictions[0][fold] == [expected[k] for k in held]
    assert len(GramCache(tmp_path / "cache").entries()) == len(folds)
    # labels of what is held out cannot matter: the same predictions with other labels there
    other = [[("B" if label == "O" else "O") for label in row] for row in found.labels]
    swapped = [other[k] if k in folds.held_out[0] else row for k, row in enumerate(found.labels)]
    changed = run(
        Job((WITH_PRIOR,), (Variant(0, "labeling-perceptron", {}),), FOLDS),
        data_of(found.with_labels(swapped)),
        tmp_path / "swapped",
    )
    assert changed.result.predictions[0][0] == result.result.predictions[0][0]


def test_problems_that_do_not_fit_into_memory_together_are_solved_in_several_passes(tmp_path: Path) -> None:
    data, job = data_of(corpus(14)), Job((KERNEL,), ROUNDS, FOLDS)
    whole = run(job, data, tmp_path / "whole")
    # a tile of 16 x 16 needs about 10 kB, one problem about as much: two or three fit
    parts = run(job, data, tmp_path / "parts", limit_bytes=30_000)
    assert len(whole.summary["units"]) == 1
    assert len(parts.summary["units"]) > 2
    assert parts.result.predictions == whole.result.predictions


def test_a_gaussian_process_that_needs_much_memory_factors_by_tiles(tmp_path: Path) -> None:
    job = Job((KERNEL,), (Variant(0, "gaussian-process", {"max_sweeps": 3}),), FOLDS)
    rows = data_of(corpus(14)).n_positions
    found = [run(job, data_of(corpus(14)), tmp_path / str(limit), limit_bytes=limit) for limit in (None, 31 * rows**2)]
    assert found[0].result.predictions == found[1].result.predictions
    assert not list(tmp_path.rglob("*factor-*")) + list(tmp_path.rglob("*claim-*"))


def test_stratified_and_grouped_folds_are_repeated_with_other_shuffles() -> None:
    found = corpus(24)
    twice = FoldSpec(3, seed=1, repeats=2, stratified=True).make(found.labels)
    assert len(twice) == 6
    groups = [k % 6 for k in range(24)]
    for held in FoldSpec(3, seed=1, repeats=2, group="g").make(found.labels, groups).held_out:
        assert all(sum(groups[k] == name for k in held) in (0, 4) for name in range(6))


def test_a_learner_of_whole_label_paths_leaves_out_what_a_fold_hides() -> None:
    found = corpus(10)
    gram, folds = DenseGram.of(SequenceLabeling(c=0.7), found), FOLDS.make(found.labels)
    make = Variant(0, "kernel-zscore", {"ridge": 0.3}).make
    together = fit_on_gram([make() for _ in range(3)], gram, found.labels, folds, [0, 1, 2])
    for fold, held in enumerate(folds.held_out):
        train, test = found.select(folds.training(fold)), found.select(held)
        alone: Any = make()
        alone.fit(DenseGram.of(SequenceLabeling(c=0.7), train), train.labels)
        assert together[fold].predicted == alone.predict(DenseGram.of(SequenceLabeling(c=0.7), train, test))
    torn = [[None, *row[1:]] if k == 4 else list(row) for k, row in enumerate(found.labels)]
    with pytest.raises(LabelError) as caught:
        fit_on_gram([make()], gram, torn, folds, [0])
    assert (caught.value.structure, caught.value.position) == (4, 0)


def test_a_dashboard_is_named_when_one_answers(tmp_path: Path) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/status" else 404)
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    events: dict[str, list[Event]] = {}
    for page in ("status", "nothing"):
        link = f"http://127.0.0.1:{server.server_port}/{page}"
        executor: Any = Counting()
        executor.dashboard_link = link
        events[page] = []
        run_job(
            Job((), (ZSCORE,), FOLDS),
            data_of(corpus(8)),
            RunFolder(tmp_path / page),
            JobSettings(),
            executor=lambda executor=executor: nullcontext(executor),  # type: ignore[misc]
            progress=events[page].append,
        )
    server.shutdown()
    server.server_close()
    assert Message(f"Dask dashboard: http://127.0.0.1:{server.server_port}/status") in events["status"]
    first, second, *problems = events["nothing"]
    assert (first, second) == (JobStarted(3, 0), TrainingStarted("zscore", 3))
    solved = [one for one in problems if isinstance(one, ProblemsSolved)]
    assert [one.title for one in solved] == [f"zscore, fold {fold}" for fold in range(3)]
    assert all(one.seconds is not None and one.worker for one in solved)
