"""deploy/slurm: its commands against a real Slurm of one node, started by the script that `make slurm` runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy" / "slurm" / "single-node.sh"
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
MISSING = [name for name in ("slurmctld", "slurmd", "munged", "sbatch") if shutil.which(name, path=PATH) is None]

needs_slurm = pytest.mark.skipif(
    bool(MISSING) or os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2,
    reason=f"needs Slurm ({', '.join(MISSING) or 'installed'}; make slurm installs it), root and two cores",
)

SETTINGS = f"""
[slurm]
jobs = 2
partition = "debug"
walltime = "00:10:00"
[scheduler]
host = "127.0.0.1"
[workers]
memory_limit = "1GiB"
scratch = "scratch"
python = "{sys.executable}"
[tls]
folder = "certs"
"""


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What the environment needs so that sbatch talks to a Slurm of the test's own."""
    folder, environment = tmp_path / "slurm", os.environ | {"PATH": PATH}
    subprocess.run([SCRIPT, "start", folder], check=True, env=environment, timeout=120, stdout=subprocess.DEVNULL)
    try:
        yield {"SLURM_CONF": str(folder / "slurm.conf")}
    finally:
        for log in [*folder.glob("log/*.log"), *tmp_path.glob("slurm-logs/*")]:  # pytest shows them when the test fails
            sys.stdout.write(f"--- {log.name}\n{log.read_text('utf-8', 'replace')[-4000:]}\n")
        subprocess.run([SCRIPT, "stop", folder], check=True, env=environment, timeout=60)


@pytest.mark.places
@needs_slurm
def test_the_commands_of_the_readme(run_readme: Callable[..., str], slurm: dict[str, str], tmp_path: Path) -> None:
    said = run_readme("slurm", SETTINGS, slurm)
    assert "tls://127.0.0.1:" in said
    assert "2 workers, 2 threads" in said
    assert len(list((tmp_path / "slurm-logs").glob("*.err"))) >= 2
    deadline = time.monotonic() + 60
    while (queue := _queue(slurm)) and time.monotonic() < deadline:
        time.sleep(0.5)
    assert queue == []


def _queue(environment: dict[str, str]) -> list[str]:
    done = subprocess.run(
        ["squeue", "--noheader"], env=os.environ | environment, check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def test_the_script_is_sound() -> None:
    assert os.access(SCRIPT, os.X_OK)
    subprocess.run(["bash", "-n", str(SCRIPT)], check=True)
    refused = subprocess.run([SCRIPT, "restart"], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (2, "install, start or stop, not restart\n")


def test_the_make_target_runs_it() -> None:
    target = re.search(r"^slurm:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), flags=re.MULTILINE)
    assert target is not None
    assert "deploy/slurm/single-node.sh start" in target[1]
