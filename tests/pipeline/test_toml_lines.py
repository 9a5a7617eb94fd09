"""Lines of a job file, and lists that are grids."""

from __future__ import annotations

from gramline.pipeline.crossval.grid import expand
from gramline.pipeline.toml_lines import JobLines

TEXT = '''# a job
title = "x"
[corpus]
path = "a.parquet"   # here

[[kernel]]
c = [0.5, 1.0]
observation.name = "polynomial"
[[kernel]]
"c" = 2
note = """
c = 3
[folds]
"""
gap = 0.1
[kernel.prior]
name = "uniform"
[folds]
count = 3
'''


def test_the_line_of_every_key() -> None:
    lines = JobLines.of("job.toml", TEXT)
    assert lines.where("title") == "job.toml:2"
    assert lines.where("corpus") == "job.toml:3"
    assert lines.where("corpus", "path") == "job.toml:4"
    assert lines.where("kernel", "c") == "job.toml:7"
    assert lines.where("kernel", "observation") == "job.toml:8"
    assert lines.where("kernel", "c", 1) == "job.toml:10"
    assert lines.where("kernel", "gap", 1) == "job.toml:15"
    assert lines.where("kernel", "prior", 1) == "job.toml:16"
    assert lines.where("folds", "count") == "job.toml:19"


def test_what_is_unknown_is_told_by_its_table_or_the_file() -> None:
    lines = JobLines.of("job.toml", TEXT)
    assert lines.where("folds", "seed") == "job.toml:18"
    assert lines.where("cluster", "workers") == "job.toml"


def test_lists_are_multiplied_out_in_order() -> None:
    assert expand({"a": [1, 2], "b": "x", "c": [True, False]}) == [
        {"a": 1, "b": "x", "c": True},
        {"a": 1, "b": "x", "c": False},
        {"a": 2, "b": "x", "c": True},
        {"a": 2, "b": "x", "c": False},
    ]
    assert expand({}) == [{}]


def test_inner_tables_are_multiplied_out_as_well() -> None:
    found = expand({"observation": {"name": "polynomial", "degree": [1, 2]}})
    assert [choice["observation"]["degree"] for choice in found] == [1, 2]
    both = expand({"observation": ["identity", {"name": "gaussian", "gamma": [0.1, 1.0]}]})
    assert [choice["observation"] for choice in both] == [
        "identity",
        {"name": "gaussian", "gamma": 0.1},
        {"name": "gaussian", "gamma": 1.0},
    ]


def test_parameters_that_are_lists_themselves_are_no_grids() -> None:
    matrix = [[1, 0.5], [0.5, 1]]
    assert expand({"label_kernel": matrix}) == [{"label_kernel": matrix}]
    assert len(expand({"label_kernel": [matrix, matrix]})) == 2
    assert expand({"offsets": [-1, 1]}) == [{"offsets": [-1, 1]}]
    assert [c["offsets"] for c in expand({"offsets": [[-1], [-1, 1]]})] == [[-1], [-1, 1]]
    assert [c["offsets"] for c in expand({"offsets": ["GPSL1", "GPSL2"]})] == ["GPSL1", "GPSL2"]
