"""deploy/kubernetes: the manifests against the schemas, what security asks of them, and their commands for real."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from dask_processes import process, scheduler
from deploy.schema_checks import against, schema, spoilt

from gramline.pipeline.cluster.certificates import make_certificates
from gramline.pipeline.executors.connect import connect

DEPLOY = Path(__file__).parents[2] / "deploy"
FOLDER = DEPLOY / "kubernetes"
KINDS = {
    "Namespace": "io.k8s.api.core.v1.Namespace",
    "NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
}
README = (FOLDER / "README.md").read_text("utf-8")


def errors(manifest: dict[str, Any]) -> list[str]:
    """What the schema of its kind has against a manifest."""
    if manifest["apiVersion"] == "kubernetes.dask.org/v1":
        return against(schema(manifest["kind"].lower()), manifest)
    return against(kubernetes(KINDS[manifest["kind"]]), manifest)


def kubernetes(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}", "$defs": schema("kubernetes")["$defs"]}


def manifests() -> list[dict[str, Any]]:
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))["resources"]
    return [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text("utf-8"))]


def of_kind(kind: str) -> dict[str, Any]:
    (one,) = [manifest for manifest in manifests() if manifest["kind"] == kind]
    return one


CLUSTER = of_kind("DaskCluster")
PODS = {part: CLUSTER["spec"][part]["spec"] for part in ("scheduler", "worker")}


def container(part: str) -> dict[str, Any]:
    (one,) = PODS[part]["containers"]
    return dict(one)


def test_every_file_is_applied() -> None:
    names = set(yaml.safe_load((FOLDER / "kustomization.yaml").read_text("utf-8"))["resources"])
    assert names == {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}


@pytest.mark.parametrize("manifest", manifests(), ids=lambda one: f"{one['kind']}-{one['metadata']['name']}")
def test_a_manifest_fits_its_schema(manifest: dict[str, Any]) -> None:
    assert errors(manifest) == []


@pytest.mark.parametrize("part", PODS)
def test_a_pod_fits_the_newest_schema_too(part: str) -> None:
    assert against(kubernetes("io.k8s.api.core.v1.PodSpec"), PODS[part]) == []


@spoilt(
    CLUSTER,
    {
        "misspelt field": lambda one: one["spec"]["worker"].update(replica=1),
        "wrong kind of value": lambda one: one["spec"]["worker"].update(replicas="many"),
        "misspelt field of a pod": lambda one: one["spec"]["worker"]["spec"].update(container=[]),
        "no containers": lambda one: one["spec"]["scheduler"]["spec"].pop("containers"),
        "misspelt limit": lambda one: one["spec"]["worker"]["spec"]["containers"][0]["resources"].update(limit={}),
        "no service": lambda one: one["spec"]["scheduler"].pop("service"),
    },
)
def test_the_schema_finds_what_is_wrong(content: Any) -> None:
    assert errors(content) != []


@pytest.mark.parametrize("part", PODS)
def test_a_pod_has_no_more_rights_than_it_needs(part: str) -> None:
    pod, inside = PODS[part], container(part)
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(inside["resources"]["limits"]) == set(inside["resources"]["requests"]) == {"cpu", "memory"}
    assert {mount["name"] for mount in inside["volumeMounts"] if not mount.get("readOnly")} == {"scratch"}


@pytest.mark.parametrize("part", PODS)
def test_secrets_come_from_secrets_and_each_part_gets_its_own(part: str) -> None:
    (tls,) = [volume["secret"] for volume in PODS[part]["volumes"] if "secret" in volume]
    assert tls == {"secretName": f"gramline-tls-{part}", "defaultMode": 0o440}
    assert f"--tls-key=/tls/{part}.key" in container(part)["args"]
    sources = [source["secretRef"]["name"] for source in container(part).get("envFrom", [])]
    assert sources == (["gramline-object-store"] if part == "worker" else [])
    names = {variable["name"] for variable in container(part)["env"]}
    assert not any("AWS" in name or "SECRET" in name or "PASSWORD" in name for name in names)


def test_the_readme_makes_every_secret_that_is_used() -> None:
    used = {volume["secret"]["secretName"] for pod in PODS.values() for volume in pod["volumes"] if "secret" in volume}
    used |= {"gramline-object-store"}
    assert set(re.findall(r"create secret generic (\S+)", README)) == used
    assert "--from-literal" not in README


def test_the_scheduler_is_reached_by_nobody_else() -> None:
    assert CLUSTER["spec"]["scheduler"]["service"]["type"] == "ClusterIP"
    policies = {one["metadata"]["name"]: one["spec"] for one in manifests() if one["kind"] == "NetworkPolicy"}
    assert policies["deny"] == {"podSelector": {}, "policyTypes": ["Ingress"]}
    (rule,) = policies["operator"]["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8787}]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "dask-operator"}}}]
    assert "--namespace dask-operator" in README


def test_everything_is_of_one_cluster_and_one_image() -> None:
    name = CLUSTER["metadata"]["name"]
    assert of_kind("DaskAutoscaler")["spec"]["cluster"] == name
    assert CLUSTER["spec"]["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    assert {container(part)["image"] for part in PODS} == {"gramline:0.2.0"}
    assert {manifest["metadata"].get("namespace", "gramline") for manifest in manifests()} == {"gramline"}


def local(part: str, certificates: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a container, for a process of this machine."""
    inside = container(part)
    arguments = [text.replace("/tls/", f"{certificates}/") for text in inside["args"][2:]]
    kept = [text for text in arguments if not text.startswith(("--port=", "--dashboard-address=", "--no-dashboard"))]
    return kept, {variable["name"]: variable["value"] for variable in inside["env"]}


def test_scheduler_and_worker_understand_their_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = make_certificates(tmp_path / "certs").folder
    options, settings = local("scheduler", certificates)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with scheduler(tmp_path, options) as address:
        options, settings = local("worker", certificates)
        options = [text.replace("$(DASK_WORKER_NAME)", "a").replace("/scratch", str(tmp_path)) for text in options]
        settings["DASK_SCHEDULER_ADDRESS"] = address
        files = {"tls_ca": "ca.pem", "tls_cert": "client.pem", "tls_key": "client.key"}
        paths = {option: str(certificates / name) for option, name in files.items()}
        with process(tmp_path, "worker", *options, settings=settings), connect(address, **paths) as client:
            client.wait_for_workers(1, timeout=120)
            port = client.scheduler_info()["services"]["dashboard"]
            # What the operator asks, to know how many workers there should be.
            assert "workers" in json.loads(asked(port, "/api/v1/adaptive_target"))
            assert asked(port, "/health") == b"ok"


def asked(port: int, path: str) -> bytes:
    """The answer of a web server on loopback, whatever proxy the environment names."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return bytes(answer.read())
