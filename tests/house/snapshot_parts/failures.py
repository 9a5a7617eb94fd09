"""Typical mistakes on the command line: the exit code and the one line that is said."""

from __future__ import annotations

from pathlib import Path

from snapshot_parts.recording import Record, gramline

JOB = """[corpus]
path = "letters.parquet"
[kernel]
c = 0.5
[learner]
rounds = 2
[folds]
count = 2
[cluster]
inline = true
[output]
path = "failed-run"
"""
# What is changed in the job file above, and into what.
JOB_FILES = {
    "unknown table": ("[folds]", "[fold]"),
    "unknown key": ("rounds = 2", "round = 2"),
    "unknown key of folds": ("count = 2", "counts = 2"),
    "unknown key of the kernel": ("c = 0.5", "cc = 0.5"),
    "number as text": ("c = 0.5", 'c = "half"'),
    "text as number": ('path = "letters.parquet"', "path = 3"),
    "negative": ("c = 0.5", "c = -0.5"),
    "truth as number": ("rounds = 2", "rounds = true"),
    "fraction": ("rounds = 2", "rounds = 2.5"),
    "one of a list": ("rounds = 2", 'rounds = [1, "two"]'),
    "empty list": ("rounds = 2", "rounds = []"),
    "folds too many": ("count = 2", "count = 99"),
    "folds too few": ("count = 2", "count = 1"),
    "unknown kernel": ("c = 0.5", 'name = "sequence-labelling"'),
    "unknown learner": ("rounds = 2", 'name = "perceptron"'),
    "unknown observation": ("c = 0.5", 'observation = "polynomail"'),
    "unknown parameter of an observation": ("c = 0.5", 'observation = { name = "polynomial", degre = 2 }'),
    "kernel of another structure": ("c = 0.5", 'name = "tree-labeling"'),
    "unknown metric": ('path = "failed-run"', 'path = "failed-run"\nmetric = "f2"'),
    "unknown dtype": ("[folds]", '[gram]\ndtype = "float16"\n[folds]'),
    "not TOML": ("count = 2", "count = "),
    "twice": ("count = 2", "count = 2\ncount = 3"),
    "missing corpus": ("letters.parquet", "nowhere.parquet"),
    "no corpus": ('[corpus]\npath = "letters.parquet"', ""),
    "group that is not there": ("count = 2", 'count = 2\ngroup = "half"'),
    "inline and scheduler": ("inline = true", 'inline = true\nscheduler = "tcp://127.0.0.1:1"'),
    "features of a parquet file": ("[kernel]", "[features]\nwindow = 1\n[kernel]"),
}
BAD_FILES = {
    "columns.conll": "the D\ndog N x\n",
    "empty.conll": "\n\n",
    "broken.jsonl": '{"tokens": ["a"]}\n{"tokens": ["a"\n',
    "lengths.jsonl": '{"tokens": ["a", "b"], "labels": ["A"]}\n',
    "short.conllu": "1\tdogs\n",
    "open.mrg": "(S (NP they)\n",
    "cyclic.jsonl": '{"tokens": ["a", "b"], "edges": [[0, 1], [1, 0]]}\n',
    "labels.json": "[[1, 2], [2, 1]]",
    "folds-bad.json": "[[0, 99]]",
    "notes.txt": "hello\n",
    "other-labels.jsonl": '{"tokens": ["A", "B"], "labels": ["X", "W"]}\n',
}
LINES = """
nonsense
gram
gram bild
gram build
gram build nowhere.parquet -o f.zarr --inline
gram build notes.txt -o f.zarr --inline
gram build letters.parquet --inline
gram build letters.parquet -o f.zarr --c 0 --inline
gram build letters.parquet -o f.zarr --c much --inline
gram build letters.parquet -o f.zarr --gap 1.5 --inline
gram build letters.parquet -o f.zarr --kernel uniform --inline
gram build letters.parquet -o f.zarr --kernel tree-labeling --inline
gram build letters.parquet -o f.zarr --kernel sequence-labeling:d=2 --inline
gram build letters.parquet -o f.zarr --observation polynomial:degree=0 --inline
gram build letters.parquet -o f.zarr --observation polynomial:degre=2 --inline
gram build letters.parquet -o f.zarr --observation gaussian --inline
gram build letters.parquet -o f.zarr --observation substitution:file=nowhere.json --inline
gram build letters-unlabeled.parquet -o f.zarr --prior tabulated --inline
gram build letters.parquet -o f.zarr --label-kernel labels.json --inline
gram build letters.parquet -o f.zarr --block-rows 2 --inline
gram build letters.parquet -o f.zarr --block-rows 0 --inline
gram build letters.parquet -o f.zarr --dtype float16 --inline
gram build letters.parquet -o f.zarr --memory-limit lots --inline
gram build letters.parquet -o f.zarr --workers 2 --inline
gram build letters.parquet -o f.zarr --scheduler tcp://192.0.2.1:8786
gram build letters.parquet -o f.zarr --scheduler tls://127.0.0.1:1 --tls-ca ca.pem
gram build letters.parquet -o g3.zarr --c 0.7 --inline
gram build sequences.parquet -o g4.zarr --inline
gram build parses.parquet -o f.zarr --c 0.5 --inline
gram build --job nowhere.toml
gram status nowhere.zarr
gram status m2.zarr
gram export g3.zarr g3.csv
gram export g1.zarr g1.npy
gram append g5.zarr letters-more.parquet --inline
gram append g4.zarr letters-more.parquet --inline
gram append g3.zarr other-labels.parquet --inline
gram append g3.zarr trees.parquet --inline
fit g3.zarr
fit g3.zarr -o m2.zarr
fit g3.zarr -o f.zarr --learner perceptron
fit g3.zarr -o f.zarr --set round=3
fit g3.zarr -o f.zarr --rounds 0
fit g3.zarr -o f.zarr --learner kernel-zscore --set ridge=-1
fit g3.zarr -o f.zarr --learner zscore
fit letters.parquet -o f.zarr
fit letters.parquet -o f.zarr --learner zscore --set loss=hinge
fit letters-unlabeled.parquet -o f.zarr --learner zscore
fit g8.zarr -o f.zarr
fit g10.zarr -o f.zarr --learner ranking-perceptron
fit g10.zarr -o f.zarr --learner ranking-perceptron --candidates parses.parquet
fit nowhere.zarr -o f.zarr
predict nowhere.zarr letters-new.parquet
predict g3.zarr letters-new.parquet
predict m2.zarr nowhere.parquet
predict m2.zarr trees-new.parquet
predict m2.zarr letters-new.parquet --probabilities
predict m2.zarr letters-new.parquet -o nowhere/p.jsonl
evaluate m2.zarr other-labels.parquet
evaluate notes.txt letters-new.parquet
evaluate p1.jsonl letters-new.parquet
corpus import nowhere.conll -o f.parquet
corpus import columns.conll -o f.parquet
corpus import empty.conll -o f.parquet
corpus import broken.jsonl -o f.parquet
corpus import lengths.jsonl -o f.parquet
corpus import cyclic.jsonl -o f.parquet
corpus import short.conllu -o f.parquet
corpus import open.mrg -o f.parquet
corpus import words.conll -o f.parquet --features spellings
corpus import words.conll -o f.parquet --features template:nowhere
corpus import words.conll -o f.parquet --label-column 7
corpus import words.conll -o f.parquet --labels A,B
corpus import words.conll -o f.parquet --strip-empty
corpus import words.conll -o nowhere/f.parquet
corpus generate weblog -o f.parquet
corpus generate saleslog --sentences 0 -o f.parquet
corpus candidates treebank.trees -o f.parquet
corpus show notes.txt
cv g3.zarr --folds 99 --inline -o failed-run
cv g3.zarr --folds-file folds-bad.json --inline -o failed-run
cv g3.zarr --set rounds=1,x --inline -o failed-run
cv g3.zarr --metric f2 --inline -o failed-run
cv g4.zarr --folds 2 --inline -o failed-run
cv nowhere.toml
cv g3.zarr --folds 2 --inline -o records
report nowhere
report records
cache show 12 --cache cache
cache ls --cache nowhere
reproduce nothing
cluster check
"""


def record_failures(record: Record) -> None:
    """Every mistake; each must fail with its code and say one thing."""
    for name, text in BAD_FILES.items():
        Path(name).write_text(text)
    gramline("corpus import other-labels.jsonl -o other-labels.parquet")
    for name, (before, after) in JOB_FILES.items():
        path = Path(f"job-{name.replace(' ', '-')}.toml")
        path.write_text(JOB.replace(before, after, 1))
        _record(record, f"job file: {name}", f"cv {path}")
    for line in LINES.strip().splitlines():
        _record(record, line, line)


def _record(record: Record, name: str, line: str) -> None:
    answer = gramline(line)
    record.text("failures", name, f"{answer.code}: {answer.err or answer.out}".strip())
