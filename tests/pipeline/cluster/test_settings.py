"""Settings files of clusters: what is read, what is refused, and where the file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.cluster.places import n_wanted
from gramline.pipeline.cluster.settings import Local, Slurm, Ssh, load_settings
from gramline.pipeline.errors import InputError

SHIPPED = sorted((Path(__file__).parents[3] / "deploy").glob("*/cluster.toml"))


def load(folder: Path, text: str):  # type: ignore[no-untyped-def]
    path = folder / "cluster.toml"
    path.write_text(text, "utf-8")
    return load_settings(path)


def test_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, "[local]\n")
    assert settings.place == Local()
    assert (settings.scheduler.host, settings.workers.memory_limit, settings.tls) == ("127.0.0.1", 2 << 30, None)
    assert settings.is_on_loopback
    assert n_wanted(settings) == 1


def test_everything(tmp_path: Path) -> None:
    text = """
        [ssh]
        scheduler = "head"
        hosts = ["a", "b"]
        username = "me"
        port = 2222
        key = "keys/id"
        known_hosts = "/etc/hosts_known"
        [scheduler]
        host = "10.0.0.1"
        port = 8786
        [workers]
        processes = 3
        scratch = "scratch"
        [tls]
        folder = "certs"
    """
    settings = load(tmp_path, text)
    place = Ssh("head", ("a", "b"), "me", 2222, str(tmp_path / "keys/id"), "/etc/hosts_known")
    assert settings.place == place
    assert settings.tls is not None
    assert (settings.tls.folder, settings.workers.scratch) == (str(tmp_path / "certs"), str(tmp_path / "scratch"))
    assert n_wanted(settings) == 6


@pytest.mark.parametrize(("minimum", "wanted"), [("", 8), ("minimum_jobs = 1\n", 2), ("minimum_jobs = 0\n", 0)])
def test_slurm_starts_with_as_many_jobs_as_are_always_there(tmp_path: Path, minimum: str, wanted: int) -> None:
    settings = load(tmp_path, f"[workers]\nprocesses = 2\n[slurm]\njobs = 4\n{minimum}")
    assert isinstance(settings.place, Slurm)
    assert n_wanted(settings) == wanted


@pytest.mark.parametrize(
    ("text", "line", "table", "key", "problem"),
    [
        ("", None, None, None, "one of [local], [ssh] and [slurm] says where the cluster runs; found none"),
        (
            "[local]\n[slurm]\njobs = 1\n",
            None,
            None,
            None,
            "one of [local], [ssh] and [slurm] says where the cluster runs; found [local] and [slurm]",
        ),
        ("[local]\n[wokers]\n", 2, None, "wokers", "there is no 'wokers'; did you mean 'workers'?"),
        ("[local]\n[workers]\ntreads = 1\n", 3, "workers", "treads", "there is no 'treads'; did you mean 'threads'?"),
        ("local = 1\n", 1, None, None, "'local' must be a table; write [local] above its settings"),
        ("[slurm]\n", 1, "slurm", "jobs", "jobs is missing"),
        ("[slurm]\njobs = 0\n", 2, "slurm", "jobs", "jobs must be a whole number of at least 1, got 0"),
        ("[slurm]\njobs = true\n", 2, "slurm", "jobs", "jobs must be a whole number of at least 1, got True"),
        (
            "[slurm]\njobs = 1\nprologue = 'module load'\n",
            3,
            "slurm",
            "prologue",
            "prologue must be a list of strings, got 'module load'",
        ),
        ("[ssh]\nscheduler = 'a'\nhosts = []\n", 3, "ssh", "hosts", "hosts must name at least 1"),
        ("[ssh]\nscheduler = 'a'\nhosts = [1]\n", 3, "ssh", "hosts", "hosts must be a list of strings, got [1]"),
        (
            "[ssh]\nscheduler = ''\nhosts = ['a']\n",
            2,
            "ssh",
            "scheduler",
            "scheduler must be a string that is not empty, got ''",
        ),
        ("[local]\n[scheduler]\nhost = 5\n", 3, "scheduler", "host", "host must be a string that is not empty, got 5"),
        (
            "[local]\n[workers]\nmemory_limit = 'lots'\n",
            3,
            "workers",
            "memory_limit",
            "memory_limit must be a size such as 2GiB or 500MB, got 'lots'",
        ),
        # No way to accept the danger in a file, which may be a stranger's.
        (
            "[local]\n[scheduler]\ninsecure_plain_text = true\n",
            3,
            "scheduler",
            "insecure_plain_text",
            "there is no 'insecure_plain_text'; known are host, port, idle_timeout, dashboard",
        ),
    ],
)
def test_what_is_refused(
    tmp_path: Path, text: str, line: int | None, table: str | None, key: str | None, problem: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    error = caught.value
    assert (error.path, error.line, error.table, error.key) == (str(tmp_path / "cluster.toml"), line, table, key)
    assert f"{error.problem}; {error.advice}".removesuffix("; ") == problem


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: no such file"):
        load_settings(tmp_path / "none.toml")


EXPOSED = [
    '[local]\n[scheduler]\nhost = "0.0.0.0"\n',
    '[local]\n[scheduler]\nhost = "192.0.2.1"\n',
    '[ssh]\nscheduler = "127.0.0.1"\nhosts = ["192.0.2.1"]\n',
    '[slurm]\njobs = 1\n[scheduler]\nhost = "192.0.2.1"\n',
]


@pytest.mark.parametrize("text", EXPOSED)
def test_plain_text_on_a_network_is_refused_before_anything_starts(tmp_path: Path, text: str) -> None:
    from gramline.pipeline.cluster.places import opened

    settings = load(tmp_path, text)
    said = r"runs code as you; name the folder of certificates.*--insecure-plain-text"
    for action in (lambda: settings.refuse_exposed(insecure_plain_text=False), lambda: opened(settings).__enter__()):
        with pytest.raises(InputError, match=said):
            action()
    settings.refuse_exposed(insecure_plain_text=True)
    load(tmp_path, f'{text}[tls]\nfolder = "certs"\n').refuse_exposed(insecure_plain_text=False)


def test_certificates_that_are_not_there(tmp_path: Path) -> None:
    from gramline.pipeline.cluster.places import opened

    settings = load(tmp_path, '[local]\n[tls]\nfolder = "certs"\n')
    with pytest.raises(InputError, match=r"ca\.pem is not there; make the certificates"), opened(settings):
        pass


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_the_files_in_deploy_are_sound_and_safe(path: Path) -> None:
    settings = load_settings(path)
    settings.refuse_exposed(insecure_plain_text=False)
    assert type(settings.place).__name__.lower() == path.parent.name
