"""The scale run at a small size: every stage in processes of its own, under a ceiling of memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gramline.pipeline.errors import InputError, RunError
from gramline.pipeline.experiments import scale
from gramline.pipeline.experiments.base import Run
from gramline.pipeline.experiments.catalogue import EXPERIMENTS
from gramline.pipeline.experiments.scale_size import FOLDS, ROUNDS, SizeResult, SizeSettings, sales_corpus


def test_a_small_size_stays_below_its_ceiling(tmp_path: Path) -> None:
    told: list[str] = []
    found = scale.measured(SizeSettings(6000, str(tmp_path), block_rows=512, memory_limit=10**9), told.append)
    full_bytes = 4 * found.n_positions**2
    assert 5900 < found.n_positions <= 6000
    assert found.n_tiles == 13 * 14 // 2
    assert full_bytes / 2 < found.stored_bytes < full_bytes
    # Far below the matrix: a worker holds tiles of 512 rows, the scheduler none, the client a few and its scores.
    grown = {part: found.peaks[part] - found.at_rest[part] for part in found.peaks}
    assert found.planned_bytes < full_bytes / 8
    assert grown["worker"] < full_bytes / 4
    assert grown["scheduler"] < full_bytes / 2
    assert grown["client"] < full_bytes
    assert max(found.peaks.values()) < 10**9
    # One stream of tiles serves all folds: as many reads as one training, and one product to predict.
    assert found.tile_reads["perceptron"] <= ROUNDS * 13 * 13
    assert found.tile_reads["folds"] <= ROUNDS * 13 * 13 + found.n_tiles
    assert found.accuracy > 0.8
    assert [line.split(":")[0].strip() for line in told] == ["plan", "start", *scale.STAGES[1:]]
    assert (tmp_path / "cv.run" / "report.html").is_file()


def test_the_size_fits_the_disk() -> None:
    assert scale.fitting(60 * 10**9) == scale.LARGEST
    smaller = scale.fitting(15 * 10**9)
    assert 60_000 < smaller < scale.LARGEST
    assert scale.STORED_PER_CELL * smaller**2 <= 10 * 10**9
    with pytest.raises(InputError, match=r"5\.0 GB of disk are free"):
        scale.fitting(scale.LEFT_FREE + 10**6)


def made_up(settings: SizeSettings) -> SizeResult:
    """A size whose times grow with the square."""
    n = settings.n_positions
    seconds = dict.fromkeys(scale.STAGES, n**2 / 100000000.0)
    peaks = {"worker": 250_000_000, "scheduler": 150_000_000, "client": 300_000_000 + 1000 * n}
    reads = {"perceptron": n, "Z-score": n, "folds": n}
    return SizeResult(n, n, 2 * n**2, n**2 // 2, seconds, seconds, reads, peaks, 10**8, 5, 0.9, peaks)


def test_the_tables_show_the_square(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "measured", lambda settings, _say: made_up(settings))
    monkeypatch.setattr(scale, "fitting", lambda _free: 80_000)
    sizes, growth = scale.scale(Run(tmp_path, scratch=tmp_path))
    assert sizes.columns == ("measure", "10,000", "20,000", "40,000", "80,000")
    assert "so the largest size is 80,000 positions" in sizes.notes[0]
    powers = {row[0]: row[-1] for row in growth.rows}
    assert powers["build, processor s"] == pytest.approx(2)
    assert powers["peak of the worker, MB"] == pytest.approx(0, abs=1e-9)
    assert growth.picture is not None
    assert list(tmp_path.iterdir()) == []


def test_a_size_that_fails_says_why(tmp_path: Path) -> None:
    settings = SizeSettings(2000, str(tmp_path), memory_limit=10**6)
    with pytest.raises(RunError, match=r"the run of 2,000 positions failed: .*PlanError: tile .* needs"):
        scale.measured(settings, lambda _line: None)


def test_the_corpus_of_a_size_begins_the_next() -> None:
    small, large = sales_corpus(500, seed=0), sales_corpus(1000, seed=0)
    assert large.tokens[: len(small)] == small.tokens
    assert 900 < large.n_positions <= 1000
    assert len(small) > FOLDS


def test_the_scale_runs_are_never_run_along() -> None:
    by_name = [name for name, experiment in EXPERIMENTS.items() if experiment.by_name_only]
    assert by_name == ["scale", "scale-computed"]


def test_peak_memory_is_of_this_process() -> None:
    program = (
        "from gramline.pipeline.experiments.scale_size import peak_bytes\n"
        "before = peak_bytes()\n"
        "held = bytes(range(256)) * 400_000\n"
        "del held\n"
        "print(before, peak_bytes())"
    )
    job = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    before, after = map(int, job.stdout.split())
    assert 0 < before < after - 80_000_000
