"""A job file of tests: two kernels, two learners and folds inside folds."""

from __future__ import annotations

JOB = """
[corpus]
path = "train.parquet"

[kernel]
c = [0.5, 0.9]

[[learner]]
rounds = [1, 3]

[[learner]]
name = "zscore"

[folds]
count = 2
seed = 1
inner = 2

[gram]
block_rows = 5

[cluster]
inline = true

[output]
path = "out"
metric = "f1"
report = true
"""
