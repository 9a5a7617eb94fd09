"""The command line: corpora, Gram matrices, models, predictions, cross-validations, reports and the cache."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from snapshot_parts.inputs import GENERATED
from snapshot_parts.kernels import record_store
from snapshot_parts.recording import Answer, Record, gramline, succeed, visible_text

from gramline.pipeline import Corpus, StoredGram

# One command a line. A name in brackets at the end says what to look at afterwards, besides what the command writes.
IMPORTS = """
corpus import words.conll -o i1.parquet --json
corpus import words.conll -o i2.parquet --features spelling --window 2 --skip-document-marks --json
corpus import words.conll -o i3.parquet --features words --label-column 1 --labels VB,NN,DT,-X- --json
corpus import words.conll -o i4.parquet --features template:template --json
corpus import words.conll -o i5.parquet --features template:template --minimum-count 2 --missing-label O --json
corpus import words.conll -o i6.parquet --features template:template --like i5.parquet
corpus import words.conll -o i7.parquet --no-labels
corpus import words.conllu -o i8.parquet --json
corpus import words.conllu -o i9.parquet --label DEPREL --features spelling --window 1 --json
corpus import words.conllu -o i10.parquet --kind sequences --label NER
corpus import words.conllu -o i11.parquet --label FEATS.Number --features words
corpus import words.jsonl -o i12.parquet --json
corpus import priors.jsonl -o i13.parquet --json
corpus import trees.jsonl -o i14.parquet --json
corpus import graphs.jsonl -o i15.parquet --json
corpus import tagged.jsonl -o i16.parquet --json
corpus import parses.jsonl -o i17.parquet --json
corpus import parses.trees -o i18.parquet --json
corpus import parses.trees -o i19.parquet --strip-functions --strip-empty
corpus candidates treebank.trees --held-out 4 --best 4 -o c1.parquet --json
corpus candidates treebank-new.trees --grammar treebank.trees --best 4 -o c2.parquet
corpus candidates treebank-new.trees --grammar treebank.trees --best 3 --horizontal 1 -o c3.parquet --json
"""

SHOWN = """
--version
--help
gram build --help
reproduce
reproduce --json
corpus show sequences.parquet
corpus show trees.parquet --json
corpus show dags.parquet
corpus show parses.parquet
corpus show tagged.parquet
corpus show i12.parquet
corpus show i13.parquet --json
"""

GRAMS = """
gram plan sequences.parquet --c 0.8 --block-rows 60 --workers 2 --json
gram build sequences.parquet -o g1.zarr --c 0.8 --block-rows 60 --inline --json  [g1.zarr]
gram build sequences.parquet -o g1.zarr --c 0.8 --inline
gram plan sequences.parquet --c 0.8 --block-rows 60 -o g1.zarr --workers 2
gram status g1.zarr
gram status g1.zarr --json
gram verify g1.zarr --inline
gram verify g1.zarr --inline --json
gram export g1.zarr g1.npy  [g1.npy]
gram export g1.zarr exported.zarr --json
gram append g1.zarr sequences-more.parquet --inline --json  [g1.zarr]
gram append g1.zarr sequences-more.parquet --inline
gram status g1.zarr --json
gram build sequences-spelled.parquet -o g2.zarr --c 0.8 --gap 0.2 \
--observation polynomial:degree=2,normalized=true --dtype float32 --inline --json  [g2.zarr]
gram build letters.parquet -o g3.zarr --c 0.5 --observation substitution:file=substitution.json \
--prior tabulated --label-kernel label-kernel.json --block-rows 20 --inline  [g3.zarr]
gram build letters.parquet -o g4.zarr --kernel sequence-labeling:c=0.5,gap=0.1 \
--prior empirical:smoothing=0.5 --inline --compression zstd  [g4.zarr]
gram build letters.parquet --other letters-new.parquet -o g5.zarr --c 0.5 --inline --json  [g5.zarr]
gram build trees.parquet -o g6.zarr --c 0.5 --observation gaussian:gamma=0.5 --inline  [g6.zarr]
gram build dags.parquet -o g7.zarr --c 0.5 --observation linear --inline  [g7.zarr]
gram build parses.parquet -o g8.zarr --kernel subset-tree:decay=0.4,max_depth=3,normalized=true --inline \
--json  [g8.zarr]
gram build tagged.parquet -o g9.zarr --kernel tagging:decay=0.5,gap=0.3 --block-rows 7 --inline  [g9.zarr]
gram build c1.parquet -o g10.zarr --kernel subset-tree:decay=0.4 --inline  [g10.zarr]
gram build --job gram.toml --json  [g11.zarr]
gram status g11.zarr
gram plan --job gram.toml --json
gram build letters.parquet -o g13.zarr --c 0.5 --prior tabulated --block-rows 20 --inline  [g13.zarr]
gram build letters-unlabeled.parquet -o g12.zarr --c 0.5 --block-rows 20 --inline --json
"""

MODELS = """
fit g1.zarr -o m1.zarr --rounds 3 --set average=false --json
fit g1.zarr -o m1.zarr --rounds 4 --average --overwrite
fit g3.zarr -o m2.zarr --learner labeling-perceptron --set early_stop=false --set average=false --rounds 3
fit g2.zarr -o m3.zarr --learner hidden-markov-perceptron --set dual=true --set average=false --set scale=1 \
--rounds 3 --json
fit sequences-spelled.parquet -o m4.zarr --learner hidden-markov-perceptron --rounds 3 --average --json
fit sequences-spelled.parquet -o m5.zarr --learner zscore --set ridge=1e-3 --set transition_ridge=1000 \
--set loss=hamming --json
fit sequences-spelled.parquet -o m6.zarr --learner zscore --set constraints=iterative --set ridge=10 \
--set transition_ridge=null
fit letters.parquet -o m7.zarr --learner zscore --set moments=sampled --set n_paths=20 --set seed=2 \
--set ridge=1e-3 --set transition_ridge=null
fit g2.zarr -o m8.zarr --learner kernel-zscore --set ridge=0.5 --set transition_ridge=null --json
fit g13.zarr --learner gaussian-process --plan --json
fit g13.zarr -o m9.zarr --learner gaussian-process --set bound=jensen --set scale=1 --set max_sweeps=8 --json
fit g4.zarr -o m10.zarr --learner gaussian-process --set offsets=[-1] --set bound=expected \
--set learn_scale=shared --set scale=1 --set max_sweeps=5
fit g12.zarr -o m11.zarr --learner gaussian-process --set approximation=nystrom --set rank=10 --set max_sweeps=5 \
--set bound=jensen --set scale=1
fit g10.zarr -o m12.zarr --learner ranking-perceptron --candidates c1.parquet --rounds 2 --json
fit g10.zarr -o m13.zarr --learner ranking-perceptron --candidates c1.parquet --average
fit g9.zarr -o m14.zarr --learner ranking-perceptron --candidates tagged.parquet --set vote=false --set passes=3
fit g6.zarr -o m15.zarr --rounds 3 --set average=false
fit g7.zarr -o m16.zarr --rounds 3 --set average=false
fit --job fit.toml --json
predict m1.zarr sequences-new.parquet -o p1.jsonl  [p1.jsonl]
predict m1.zarr sequences-new.parquet -o p1.conll  [p1.conll]
predict m1.zarr sequences-new.parquet --block-rows 60
predict m1.zarr sequences-new.parquet --json
predict m2.zarr letters-new.parquet
predict m3.zarr sequences-spelled-new.parquet
predict m4.zarr sequences-spelled-new.parquet
predict m5.zarr sequences-spelled-new.parquet --format conll
predict m6.zarr sequences-spelled-new.parquet
predict m7.zarr letters-new.parquet
predict m8.zarr sequences-spelled-new.parquet
predict m9.zarr letters-new.parquet
predict m9.zarr letters-new.parquet --probabilities -o p9.jsonl  [p9.jsonl]
predict m10.zarr letters-new.parquet --probabilities -o p10.jsonl  [p10.jsonl]
predict m11.zarr letters-new.parquet --probabilities -o p11.jsonl  [p11.jsonl]
predict m12.zarr c2.parquet -o p12.jsonl  [p12.jsonl]
predict m13.zarr c2.parquet --json
predict m14.zarr tagged-new.parquet
predict m15.zarr trees-new.parquet
predict m16.zarr dags-new.parquet
predict m17.zarr letters-new.parquet
evaluate m1.zarr sequences-new.parquet
evaluate m1.zarr sequences-new.parquet --json
evaluate p1.jsonl sequences-new.parquet --no-dummy --json
evaluate p1.conll sequences-new.parquet --dummy product.uses
evaluate m5.zarr sequences-spelled-new.parquet --json
evaluate m9.zarr letters-new.parquet --no-dummy
evaluate m12.zarr c2.parquet --json
evaluate m12.zarr c2.parquet --gold treebank-new.trees
evaluate p12.jsonl c2.parquet
evaluate m15.zarr trees-new.parquet --json
"""

RUNS = """
cv g1.zarr --set rounds=1,3 --set average=true,false --folds 3 --seed 1 --inline -o r1 --json  [r1]
cv g1.zarr --set rounds=1,3 --set average=true,false --folds 3 --seed 1 --inline -o r1
cv job.toml --plan --json
cv job.toml --plan
cv job.toml --json  [r2]
cv job.toml
cv letters.parquet --learner zscore --set ridge=0.1,1 --set transition_ridge=null --folds 2 --repeats 2 \
--seed 3 --stratified --inline -o r3 --json  [r3]
cv g13.zarr --learner gaussian-process --missing 0,0.4 --set max_sweeps=4 --set bound=jensen --set scale=1 \
--folds 2 --inline -o r4 --metric f1 --no-dummy  [r4]
cv g3.zarr --learner kernel-zscore --set ridge=0.1,1 --set transition_ridge=null --folds-file folds.json \
--inline -o r5 --corpus letters.parquet --json  [r5]
cv grouped.parquet --learner hidden-markov-perceptron --set rounds=2,4 --set average=false --group half --folds 2 \
--inline -o r6  [r6]
cv letters.parquet --set rounds=2 --set average=false --inner 2 --folds 2 --cache cache --block-rows 30 \
--inline -o r7 --json  [r7]
cv g6.zarr --learner hidden-markov-perceptron --set dual=true --set rounds=2 --set average=false --set scale=1 \
--folds 2 --inline -o r8 --json
report r1 -o r1.html --json  [r1.html]
report r2 -o r2.html  [r2.html]
report r4  [r4/report.html]
report r6 -o r6.html  [r6.html]
cache ls --cache cache --json
cache ls --cache cache
cache verify --cache cache --json
cache gc --cache cache --older-than 1 --dry-run --json
cache gc --cache cache --all --json
cache ls --cache cache
demo --folder demo --sentences 10 --inline  [demo/report.html]
"""

FILES = {
    "gram.toml": """
[corpus]
path = "words.conll"
[features]
features = "template:template"
minimum_count = 1
[kernel]
name = "sequence-labeling"
c = 0.7
observation = { name = "polynomial", degree = 2, normalized = true }
prior = "empirical:smoothing=0.5"
[gram]
path = "g11.zarr"
dtype = "float32"
block_rows = 8
compression = "lz4"
[cluster]
inline = true
""",
    "fit.toml": """
[gram]
path = "g3.zarr"
[learner]
name = "kernel-zscore"
ridge = 0.5
transition_ridge = 0.5
loss = "hamming"
[model]
path = "m17.zarr"
""",
    "job.toml": """
[corpus]
path = "letters.parquet"

[kernel]
name = "sequence-labeling"
c = [0.5, 1.0]

[[learner]]
name = "labeling-perceptron"
rounds = [1, 4]
average = true

[[learner]]
name = "kernel-zscore"
ridge = [0.1, 1.0]
transition_ridge = [1.0, 1e3]

[[learner]]
name = "zscore"
ridge = 1e-3
transition_ridge = 1e-3
loss = "hamming"

[[learner]]
name = "hidden-markov-perceptron"
dual = [true, false]
rounds = 2
average = false
scale = 1.0

[folds]
count = 3
seed = 1
inner = 2

[gram]
block_rows = 20

[cache]
path = "cache"

[cluster]
inline = true

[output]
path = "r2"
metric = "f1"
dummy = "X"
report = true
""",
    "folds.json": "[[0, 1, 5], [2, 3, 15], [4, 5]]",
}


def record_imports(record: Record) -> None:
    """Every reader with its options; the corpora by their fingerprints."""
    record_lines(record, "imports", IMPORTS)
    for line in GENERATED.strip().splitlines() + IMPORTS.strip().splitlines():
        words = line.split()
        name = words[words.index("-o") + 1]
        corpus = Corpus.load(name)
        record.document("imports", f"{name}: content", [corpus.show(), corpus.ids, corpus.tokens, corpus.labels])


def record_commands(record: Record) -> None:
    """Everything else, in the order of the tables: later lines use what earlier ones wrote."""
    for name, text in FILES.items():
        Path(name).write_text(text)
    Corpus.load("letters.parquet").with_column("half", [k % 2 for k in range(16)]).save("grouped.parquet")
    for section, lines in (("shown", SHOWN), ("grams", GRAMS), ("models", MODELS), ("runs", RUNS)):
        record_lines(record, section, lines)
    record_repair(record)


def record_lines(record: Record, section: str, lines: str) -> None:
    """Run every line, which must do well, and record what it wrote and made."""
    for number, whole in enumerate(lines.strip().splitlines(), 1):
        line, _, made = whole.partition("  [")
        answer = gramline(line)
        if answer.code:
            raise RuntimeError(f"gramline {line}: exit code {answer.code}\n{answer.err}")
        name = f"{number:02} {line}"
        record.document(section, name, _said(answer, line))
        if made:
            _record_made(record, section, name, Path(made.rstrip("]")))


def record_experiments(record: Record) -> None:
    """Two of the papers' experiments on built-in data, small; the second table of the Z-score holds seconds."""
    for name in ("labeling-usage", "zscore-artificial"):
        answer = json.loads(succeed(f"reproduce {name} --quick -o experiments --json"))[name]
        record.document("experiments", f"{name}: tables", answer["tables"][: 1 if "zscore" in name else None])
    record.text("report", "experiments", visible_text(Path("experiments/report.html").read_text("utf-8")))


def record_repair(record: Record) -> None:
    """A lost tile is found, and computed again."""
    lost = sorted(path for path in Path("g9.zarr", "tiles").rglob("*") if path.is_file() and path.name != "zarr.json")
    lost[0].unlink()
    record.document("grams", "lost tile", [gramline("gram verify g9.zarr --inline --json").code])
    record_lines(record, "repair", "gram verify g9.zarr --repair --inline --json  [g9.zarr]")


def _said(answer: Answer, line: str) -> Any:
    if line.endswith("--json"):
        out = json.loads(answer.out)
        if line.startswith("report "):
            out.pop("bytes", None)  # there are times on the page
        return {"out": out, "err": answer.err}
    lines = answer.out.splitlines()
    return {"out": sorted(lines) if line.startswith("cv ") else lines, "err": answer.err.splitlines()}


def _record_made(record: Record, section: str, name: str, path: Path) -> None:
    if path.suffix == ".zarr":
        record_store(record, f"{section} {name}", StoredGram.open(path))
    elif path.suffix == ".npy":
        record.exact("stores", f"{section} {name}: array", np.load(path))
    elif path.suffix == ".jsonl":
        record.document(section, f"{name}: file", [json.loads(line) for line in path.read_text().splitlines()])
    elif path.suffix == ".html":
        record.text("report", name, visible_text(path.read_text("utf-8")))
    elif path.is_dir():
        _record_run(record, section, name, path)
    else:
        record.document(section, f"{name}: file", path.read_text())


def _record_run(record: Record, section: str, name: str, folder: Path) -> None:
    """The documents and tables of a run."""
    record.document(section, f"{name}: results", json.loads((folder / "results.json").read_text()))
    for table in ("results", "predictions", "structures"):
        record.document(section, f"{name}: {table} table", pq.read_table(folder / f"{table}.parquet").to_pylist())
