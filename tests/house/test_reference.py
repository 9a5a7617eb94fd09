"""What is made of declared parameters is up to date: reference, guide to job files, and their schema."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gramline.kernels.catalogue import EVERYTHING
from gramline.learners.catalogue import LEARNERS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "jobs.md").read_text("utf-8")


@pytest.fixture(scope="module")
def generate() -> Any:
    spec = spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def validator(generate: Any) -> Any:
    schema = generate.job_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_everything_generated_is_up_to_date(generate: Any) -> None:
    """Otherwise: make reference."""
    texts = generate.generated()
    assert {path.name for path, text in texts.items() if path.read_text("utf-8") != text} == set()
    reference = texts[ROOT / "docs" / "reference.md"]
    assert (
        set(re.findall(r"^\| `([a-z-]+)` \| `\w+`:", reference, flags=re.MULTILINE))
        == EVERYTHING.keys() | LEARNERS.keys()
    )


def test_the_schema_is_shipped(generate: Any) -> None:
    shipped = files("gramline.pipeline.cli.job_file") / "job.schema.json"
    assert shipped.read_text("utf-8") == generate.SCHEMA.read_text("utf-8")


SOUND = [
    *re.findall(r"```toml[^\n]*\n(.*?)```", GUIDE, flags=re.DOTALL),
    "",
    "[kernel]\nc = 0.5",
    "[[kernel]]\nname = 'subset-tree'\ndecay = [0.5, 1]\n[[kernel]]\nname = 'tagging'",
    "[kernel]\nobservation = 'polynomial:degree=2'\nprior = { name = 'empirical', smoothing = [1, 2] }",
    "[kernel]\nobservation = [{ name = 'gaussian', gamma = 0.5 }, 'linear']\nlabel_kernel = [[1, 0.5], [0.5, 1]]",
    "[kernel]\nobservation = { name = 'substitution', file = 'm.json' }\nlabel_kernel = 'labels.json'",
    "[learner]\nrounds = 3",
    "[learner]\nname = 'gaussian-process'\noffsets = ['GPSL1', [-1, 1]]\nlearn_scale = 'shared'",
    "[learner]\nname = 'gaussian-process'\noffsets = [-1, 1]",
    "[cluster]\nmemory_limit = '2GiB'\n[features]\nlabel_column = -2",
]
UNSOUND = [
    "[corpsu]",
    "[folds]\ncuont = 2",
    "[folds]\ncount = 1",
    "[gram]\ndtype = 'float16'",
    "[cluster]\nmemory_limit = 'lots'",
    "[kernel]\nc = 'much'",
    "[kernel]\ngap = 2",
    "[kernel]\nname = 'sequence-labelling'",
    "[kernel]\nname = 'tagging'\nc = 1",
    "[kernel]\nobservation = { name = 'polynomial', degree = 0 }",
    "[learner]\nname = 'zscore'\nrounds = 3",
    "[learner]\nrounds = [1, 0]",
    "[learner]\nname = 'zscore'\nloss = 'hinge'",
    "[learner]\nname = 'gaussian-process'\noffsets = [0]",
]


@pytest.mark.parametrize("text", SOUND)
def test_the_schema_takes_what_is_sound(validator: Any, text: str) -> None:
    assert [error.message for error in validator.iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize("text", UNSOUND)
def test_the_schema_refuses_what_is_not(validator: Any, text: str) -> None:
    assert not validator.is_valid(tomllib.loads(text))
