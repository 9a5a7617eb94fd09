"""Lines of the tables and keys of a TOML file."""

from __future__ import annotations

from gramline.pipeline.toml_lines import TomlLines

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
    lines = TomlLines.of(TEXT)
    assert lines.line("title") == 2
    assert lines.line("corpus") == 3
    assert lines.line("corpus", "path") == 4
    assert lines.line("kernel", "c") == 7
    assert lines.line("kernel", "observation") == 8
    assert lines.line("kernel", "c", 1) == 10
    assert lines.line("kernel", "gap", 1) == 15
    assert lines.line("kernel", "prior", 1) == 16
    assert lines.line("folds", "count") == 19


def test_what_is_unknown_is_told_by_its_table_or_not_at_all() -> None:
    lines = TomlLines.of(TEXT)
    assert lines.line("folds", "seed") == 18
    assert lines.line("cluster", "workers") is None
