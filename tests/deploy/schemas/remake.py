"""Takes from three published wheels the schemas that the manifests here are checked against, and makes them small.

pip download --no-deps dask-kubernetes==2026.3.0 kubernetes-validate==1.37.0 check-jsonschema==0.39.0
python remake.py dask_kubernetes-*.whl kubernetes_validate-*.whl check_jsonschema-*.whl
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CRDS = "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds"
KUBERNETES = "kubernetes_validate/kubernetes-json-schema/v1.37.0-local-strict/_definitions.json"
COMPOSE = "check_jsonschema/builtin_schemas/vendor/compose-spec.json"
KINDS = (
    "io.k8s.api.core.v1.Namespace",
    "io.k8s.api.core.v1.PodSpec",
    "io.k8s.api.core.v1.ServiceSpec",
    "io.k8s.api.core.v1.ServiceAccount",
    "io.k8s.api.batch.v1.Job",
    "io.k8s.api.networking.v1.NetworkPolicy",
)
WORDS = ("description", "title", "$comment")  # for people; half of the bytes


def without_words(node: Any) -> Any:
    """The schema without its explanations; a property that is called "description" stays."""
    if isinstance(node, list):
        return [without_words(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: without_words(value) for key, value in node.items() if not (key in WORDS and isinstance(value, str))}


def strict(node: Any) -> Any:
    """A custom resource's schema that refuses properties it does not know, as an API server would drop them."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) for key, value in node.items()}
    if made.pop("x-kubernetes-int-or-string", False):
        made.pop("type", None)
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if isinstance(made.get("properties"), dict) and not node.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return {key: value for key, value in made.items() if not key.startswith("x-kubernetes-")}


def custom_resource(text: bytes) -> dict[str, Any]:
    definition = yaml.safe_load(text)["spec"]
    schema: dict[str, Any] = strict(without_words(definition["versions"][0]["schema"]["openAPIV3Schema"]))
    names = {"apiVersion": f"{definition['group']}/{definition['versions'][0]['name']}"}
    names["kind"] = definition["names"]["kind"]
    schema["properties"] |= {key: {"const": value} for key, value in names.items()} | {"metadata": {"type": "object"}}
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    return schema


def reachable(definitions: dict[str, Any], roots: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += references(definitions[name])
    return dict(sorted(found.items()))


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [str(node["$ref"]).rpartition("/")[2]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in references(value)]
    return [name for item in node for name in references(item)] if isinstance(node, list) else []


def save(name: str, schema: Any) -> None:
    (HERE / name).write_text(json.dumps(schema, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")


def main(dask_kubernetes: str, kubernetes_validate: str, check_jsonschema: str) -> None:
    with zipfile.ZipFile(dask_kubernetes) as wheel:
        for kind in ("daskcluster", "daskautoscaler"):
            save(f"{kind}.json", custom_resource(wheel.read(f"{CRDS}/{kind}.yaml")))
    with zipfile.ZipFile(kubernetes_validate) as wheel:
        everything = json.loads(wheel.read(KUBERNETES))
    definitions = without_words(reachable(everything["$defs"], KINDS))
    save("kubernetes.json", {"$schema": everything["$schema"], "$defs": definitions})
    with zipfile.ZipFile(check_jsonschema) as wheel:
        save("compose.json", without_words(json.loads(wheel.read(COMPOSE))))


if __name__ == "__main__":
    main(*sys.argv[1:4])
