"""Settings files of clusters: what is read, what is refused, and where the file says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gramline.pipeline.cluster.serve import n_wanted
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
    assert (settings.scheduler.host, settings.workers.memory_limit, settings.tls) == ("127.0.0.1", "2GiB", None)
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
    ("text", "words"),
    [
        ("", "one of .* says where the cluster runs; found none"),
        ("[local]\n[slurm]\njobs = 1\n", r"found \[local\] and \[slurm\]"),
        ("[local]\n[wokers]\n", r"cluster.toml:2: there is no setting 'wokers'; did you mean 'workers'"),
        ("[local]\n[workers]\ntreads = 1\n", r"cluster.toml:3 \[workers\]: there is no setting 'treads'"),
        ("local = 1\n", r"cluster.toml:1: 'local' must be a table"),
        ("[slurm]\n", r"cluster.toml:1 \[slurm\]: jobs is missing"),
        ("[slurm]\njobs = 0\n", r"cluster.toml:2 .*jobs must be a whole number of at least 1, got 0"),
        ("[slurm]\njobs = true\n", "jobs must be a whole number"),
        ("[slurm]\njobs = 1\nprologue = 'module load'\n", "prologue must be a list of strings"),
        ("[ssh]\nscheduler = 'a'\nhosts = []\n", "hosts must name at least one host"),
        ("[ssh]\nscheduler = 'a'\nhosts = [1]\n", "hosts must be a list of strings"),
        ("[ssh]\nscheduler = ''\nhosts = ['a']\n", "scheduler must be a string"),
        ("[local]\n[scheduler]\nhost = 5\n", "host must be a string, got 5"),
        ("[local", "not valid TOML"),
        # No way to accept the danger in a file, which may be a stranger's.
        ("[local]\n[scheduler]\ninsecure_plain_text = true\n", "there is no setting 'insecure_plain_text'"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(tmp_path, text)


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
    with pytest.raises(InputError, match=r"runs code as you; name the folder of certificates.*--insecure-plain-text"):
        settings.refuse_exposed(insecure_plain_text=False)
    with pytest.raises(InputError, match="runs code as you"), opened(settings):
        pass
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
