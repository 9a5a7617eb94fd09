"""Files of a deployment against their schemas, and the schemas against files that were spoilt on purpose."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

SCHEMAS = Path(__file__).parent / "schemas"

Change = Callable[[Any], Any]


def schema(name: str) -> Any:
    """The schema kept in a file of that name."""
    return json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))


def against(definition: Mapping[str, Any], content: Any) -> list[str]:
    """What a schema has against a file's content, with the place."""
    validator = jsonschema.Draft202012Validator(definition)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]


def spoilt(good: Any, changes: Mapping[str, Change]) -> pytest.MarkDecorator:
    """Runs a test once per change, with `content` a copy of `good` that was changed that way."""

    def changed(change: Change) -> Any:
        content = copy.deepcopy(good)
        change(content)
        assert content != good
        return content

    cases = [pytest.param(changed(change), id=name) for name, change in changes.items()]
    return pytest.mark.parametrize("content", cases)
