"""The commands of a deployment's README, run as they stand in a folder of the test's own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.stored import StoredGram

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE = 240.0
ENDING = "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n"  # a command that fails must not leave a cluster behind

RunReadme = Callable[..., str]


def commands(place: str, number: int = 0) -> str:
    """A block of commands of a README."""
    blocks = re.findall(r"```sh\n(.*?)```", (DEPLOY / place / "README.md").read_text("utf-8"), flags=re.DOTALL)
    return str(blocks[number])


@pytest.fixture
def run_readme(tmp_path: Path) -> RunReadme:
    """Runs commands with other settings than the shipped ones, to a complete Gram matrix; what they wrote."""

    def run(
        place: str,
        settings: str = "",
        environment: Mapping[str, str] | None = None,
        *,
        block: int = 0,
        changes: Mapping[str, str] | None = None,
    ) -> str:
        script = commands(place, block)
        for shipped, other in (changes or {}).items():
            assert shipped in script
            script = script.replace(shipped, other)
        (tmp_path / "cluster.toml").write_text(settings, "utf-8")
        words = [["the", "dog", "barks"], ["a", "cat", "sleeps"]]
        Corpus.from_sequences(words, [["D", "N", "V"]] * 2).save(tmp_path / "corpus.parquet")
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        job = subprocess.Popen(
            ["bash", "-eu", "-c", ENDING + script],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = job.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGTERM)
            said, _ = job.communicate(timeout=30)
        assert job.returncode == 0, said
        assert StoredGram.open(tmp_path / "corpus.gram.zarr").status().is_complete, said
        assert "checks passed" in said
        return said

    return run
