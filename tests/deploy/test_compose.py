"""deploy/compose and deploy/image: against the schema, what security asks of them, and their commands for real."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from dask_processes import process, scheduler
from deploy.schema_checks import against, schema, spoilt

from gramline.pipeline.cluster.certificates import make_certificates
from gramline.pipeline.executors.connect import connect

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
SCHEMA = schema("compose")
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text("utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
CLIENT = {"ca": "ca.pem", "cert": "client.pem", "key": "client.key"}
BASE = "docker.io/library/python:3.11.11-slim-bookworm"
IMAGE = (ROOT / "deploy" / "image" / "Containerfile").read_text("utf-8")


def test_the_file_fits_the_schema() -> None:
    assert against(SCHEMA, COMPOSE) == []


@spoilt(
    COMPOSE,
    {
        "misspelt key": lambda one: one["services"]["worker"].update(memory_limit="2g"),
        "wrong kind of value": lambda one: one["services"]["worker"].update(cap_drop="ALL"),
        "misspelt key inside": lambda one: one["services"]["worker"]["deploy"].update(replica=2),
        "misspelt section": lambda one: one.update(service={}),
    },
)
def test_the_schema_finds_what_is_wrong(content: Any) -> None:
    assert against(SCHEMA, content) != []


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_no_more_rights_than_it_needs(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] == "${GRAMLINE_UID:-10001}:${GRAMLINE_GID:-10001}"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in service
    assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    assert service["secrets"] == ["ca.pem", f"{name}.pem", f"{name}.key"]
    assert service["environment"]["DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION"] == "true"


def test_every_secret_is_a_file_of_the_certificates(tmp_path: Path) -> None:
    made = {path.name for path in make_certificates(tmp_path / "certs").files}
    assert {name: secret["file"] for name, secret in COMPOSE["secrets"].items()} == {
        name: f"./certs/{name}" for name in made
    }


def local(name: str, certificates: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a service, for a process of this machine."""
    service = SERVICES[name]
    kept = [
        text
        for text in service.get("command", [])[2:]
        if not text.startswith(("tls:", "--port=", "--dashboard-address=", "--no-dashboard"))
    ]
    settings = service["environment"].items()
    return kept, {key: value.replace("/run/secrets", str(certificates)) for key, value in settings}


def test_scheduler_worker_and_client_understand_their_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = make_certificates(tmp_path / "certs").folder
    options, settings = local("scheduler", certificates)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with scheduler(tmp_path, options) as address:
        options, settings = local("worker", certificates)
        options = [text.replace("/scratch", str(tmp_path)) for text in options]
        paths = {f"tls_{kind}": str(certificates / name) for kind, name in CLIENT.items()}
        with process(tmp_path, "worker", address, *options, settings=settings), connect(address, **paths) as client:
            client.wait_for_workers(1, timeout=120)
            assert address.startswith("tls://")
            assert all(worker.startswith("tls://") for worker in client.nthreads())


def test_the_client_gets_its_certificates_from_the_environment(tmp_path: Path) -> None:
    _, settings = local("client", tmp_path)
    program = "from distributed import Security; print(Security().get_tls_config_for_role('client'))"
    job = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    for name in CLIENT.values():
        assert str(tmp_path / name) in job.stdout


def test_the_image_is_pinned_and_not_run_as_root() -> None:
    assert re.findall(r"^ARG BASE=(.*)$", IMAGE, flags=re.MULTILINE) == [
        "docker.io/library/python:3.11.11-slim-bookworm"
    ]
    assert set(re.findall(r"^FROM (\S+)", IMAGE, flags=re.MULTILINE)) == {"${BASE}"}
    assert re.findall(r"^USER (.*)$", IMAGE, flags=re.MULTILINE) == ["10001:10001"]
    assert IMAGE.count("pip install") == IMAGE.count("--constraint constraints.txt") == 2
    assert not re.search(r"SECRET|PASSWORD|TOKEN|\.key|\.pem", IMAGE)


def test_what_the_image_copies_is_there_and_let_through() -> None:
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*)$", IMAGE, flags=re.MULTILINE) for name in line.split()[:-1]
    ]
    allowed = (ROOT / "deploy" / "image" / "Containerfile.dockerignore").read_text("utf-8")
    assert len(copied) >= 6
    for name in copied:
        assert (ROOT / name).exists()
        assert f"\n!{name}\n" in allowed


def test_the_image_installs_extras_that_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    (wanted,) = re.findall(r'"\.\[([a-z,]+)\]"', IMAGE)
    assert set(wanted.split(",")) <= set(extras)


def test_compose_builds_that_image() -> None:
    for service in SERVICES.values():
        build = service["build"]
        assert (FOLDER / build["context"]).resolve() == ROOT
        assert (ROOT / build["dockerfile"]).is_file()
