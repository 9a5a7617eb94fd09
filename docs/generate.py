"""Writes what follows from declared parameters: tables of README.md, reference.md and jobs.md, the schema of job files.

Also the files of the tutorial, from the built-in grammar. Run by `make reference`; tests/house/test_reference.py fails
when it was forgotten. Prose around the tables stays as it is: a generated part stands between `<!-- NAME -->` and
`<!-- end of NAME -->`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import KERNELS, OBSERVATIONS, PRIORS, find
from gramline.kernels.observations.base import ObservationKernel
from gramline.kernels.parameters import REQUIRED, Parameter, Record, parameters_of
from gramline.kernels.value_kinds import Choice, Instance
from gramline.learners.catalogue import LEARNERS, find_learner
from gramline.pipeline.cli.job_file.tables import TABLES
from gramline.pipeline.corpus.saleslog import OUTSIDE, derive
from gramline.pipeline.gram.kernel_choice import REACH, SHARES

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "pipeline" / "cli" / "job_file" / "job.schema.json"
TABLE_START = '{"type": "object"'  # in the schema, which has one line per table
DEFAULT_LEARNER = "labeling-perceptron"
TUTORIAL = {"train.conll": (60, 1), "new.conll": (40, 2)}  # sentences and seed


def main() -> None:
    for path, text in generated().items():
        path.write_text(text, "utf-8")


def generated() -> dict[Path, str]:
    """The whole new text of every generated file."""
    parts = {
        "README.md": {"overview": overview()},
        "docs/reference.md": {
            "kernels": titled({name: find(name, Record) for name in KERNELS}),
            "observation kernels": titled({name: find(name, Record) for name in OBSERVATIONS}),
            "priors": titled({name: find(name, Record) for name in PRIORS}),
            "learners": titled({name: find_learner(name) for name in LEARNERS}),
        },
        "docs/jobs.md": {
            "tables": "\n".join(table(f"`[{name}]`", kind, str(kind.__doc__)) for name, kind in TABLES.items())
        },
    }
    files = {ROOT / name: filled(ROOT / name, texts) for name, texts in parts.items()}
    files |= {ROOT / "docs" / "tutorial" / name: conll(*which) for name, which in TUTORIAL.items()}
    return files | {SCHEMA: json.dumps(job_schema()).replace(TABLE_START, "\n" + TABLE_START) + "\n"}


def filled(path: Path, texts: dict[str, str]) -> str:
    text = path.read_text("utf-8")
    for name, part in texts.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        text, n_found = re.subn(f"{start}.*?{end}", lambda _, new=start + part + end: new, text, flags=re.DOTALL)  # type: ignore[misc]
        assert n_found == 1, f"{path} has no part {name}"
    return text


def conll(n: int, seed: int) -> str:
    """Sentences of the sales log: word, part of speech and IOB2 label, which says what is named but not its state."""
    lines = []
    for sentence in (derive(seed, index) for index in range(n)):
        slots = ["", *(label.partition(".")[0] for label in sentence.labels)]
        for word, tag, before, slot in zip(sentence.words, sentence.tags, slots[:-1], slots[1:], strict=True):
            label = slot if slot == OUTSIDE else f"{'I' if slot == before else 'B'}-{slot}"
            lines.append(f"{word} {tag} {label}\n")
        lines.append("\n")
    return "".join(lines)


# --- tables -----------------------------------------------------------------------------------------------------------


def overview() -> str:
    """The classes of everything by what it is."""
    kernels = [find(name, Kernel) for name in KERNELS]
    learners = [find_learner(name) for name in LEARNERS]
    groups: dict[str, list[Any]] = {
        "position kernels": [kind for kind in kernels if kind.per_position],
        "structure kernels": [kind for kind in kernels if not kind.per_position],
        "observation kernels": [find(name, Record) for name in OBSERVATIONS],
        "priors": [find(name, Record) for name in PRIORS],
        "learners on a Gram matrix": [kind for kind in learners if not kind().reads_corpus],
        "learners on features": [kind for kind in learners if kind().reads_corpus],
    }
    rows = [f"| {title} | {', '.join(f'`{kind.__name__}`' for kind in kinds)} |\n" for title, kinds in groups.items()]
    return "".join(["| | |\n|---|---|\n", *rows])


def titled(kinds: Mapping[str, Any]) -> str:
    return "\n".join(
        table(f"`{name}`", kind, f"`{kind.__name__}`: {kind.summary}{published(kind)}") for name, kind in kinds.items()
    )


def published(kind: Any) -> str:
    """The settings of a learner's paper, where they are not the defaults."""
    settings = getattr(kind, "paper", {})
    listed = ", ".join(f"`{name}` {shown(value)}" for name, value in settings.items())
    return f". As published (`paper_settings()`): {listed}" if listed else ""


def table(name: str, kind: type, title: str) -> str:
    rows = [f"| `{one.name}` | {shown(one.default)} | {described(one)} |" for one in parameters_of(kind).values()]
    return "\n".join([f"| {name} | {title} | |", "|---|---|---|", *rows, ""])


def described(one: Parameter) -> str:
    """What a parameter is for; with the names it chooses among, unless the description has some of them."""
    if not isinstance(one.kind, Choice) or any(name in one.description for name in one.kind.names):
        return one.description
    return f"{one.description}: {', '.join(f'`{name}`' for name in one.kind.names)}"


def shown(value: Any) -> str:
    """A default as it is written in a job file."""
    if value is REQUIRED:
        return "required"
    if isinstance(value, Record):
        return f"`{value.name}`"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return f'`"{value}"`' if isinstance(value, str) else str(value)


# --- schema -----------------------------------------------------------------------------------------------------------


def job_schema() -> dict[str, Any]:
    tables: dict[str, Any] = {
        name: record(kind, repeats=False) | {"description": str(kind.__doc__)} for name, kind in TABLES.items()
    }
    kernels = [record(find(name, Record), name) for name in KERNELS]
    learners = [record(find_learner(name), name, needs_name=name != DEFAULT_LEARNER) for name in LEARNERS]
    tables |= {name: several({"$ref": f"#/definitions/{name}"}) for name in ("kernel", "learner")}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "gramline job file",
        "type": "object",
        "additionalProperties": False,
        "properties": tables,
        "definitions": {
            "kernel": {"anyOf": kernels},
            "learner": {"anyOf": learners},
            "observation": part(OBSERVATIONS),
            "prior": part(PRIORS),
        },
    }


def part(names: dict[str, str]) -> dict[str, Any]:
    """An observation kernel or a prior: as on the command line, or a table; a file may hold its parameters."""
    tables = []
    for name in names:
        schema = record(find(name, Record), name, needs_name=True)
        if "settings" in schema["properties"]:  # which stand beside the record's own, as keys of the table
            schema = schema | {"additionalProperties": True}
        tables.append(
            schema | {"properties": schema["properties"] | {"file": {"type": "string"}}, "required": ["name"]}
        )
    return {"anyOf": [{"type": "string"}, *tables]}


def record(kind: Any, name: str | None = None, *, needs_name: bool = False, repeats: bool = True) -> dict[str, Any]:
    """A table with these parameters; `repeats`: a list of values means each of them."""
    parameters = parameters_of(kind).values()
    properties = {one.name: value(one, repeats) for one in parameters}
    if name is not None:
        properties = {"name": {"const": name, "description": kind.summary}} | properties
    required = (["name"] if needs_name else []) + [one.name for one in parameters if one.default is REQUIRED]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {})


def value(one: Parameter, repeats: bool) -> dict[str, Any]:
    schema = one.kind.schema
    if isinstance(one.kind, Instance):
        name = "observation" if issubclass(one.kind.base, ObservationKernel) else "prior"
        schema = {"$ref": f"#/definitions/{name}"}
    if one.name == "label_kernel":
        schema = {"anyOf": [schema, {"type": "string"}]}
    if one.name == REACH:
        schema = {"anyOf": [schema, {"enum": list(SHARES)}]}
    schema = several(schema) if repeats else schema
    default = one.default.name if isinstance(one.default, Record) else one.default
    known = {} if default is REQUIRED or default is None else {"default": default}
    return {"description": one.description} | schema | known


def several(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


if __name__ == "__main__":
    main()
