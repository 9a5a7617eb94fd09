"""Corpora, stores, models, a run and a cache on disk: how they are made, and what later versions must find in them."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from snapshot_parts.inputs import (
    LABEL_KERNEL,
    candidate_parses,
    letter_dags,
    letter_sequences,
    letter_trees,
    tagged_sentences,
    unlabeled_letters,
    valued_sequences,
)
from snapshot_parts.kernels import record_store
from snapshot_parts.recording import Record, succeed, visible_text, written

from gramline.pipeline import Corpus, KernelLabeler, StoredGram

CORPORA: dict[str, Callable[[int, int], Corpus]] = {
    "sequences": letter_sequences,
    "trees": letter_trees,
    "dags": letter_dags,
    "parses": candidate_parses,
    "tagged": tagged_sentences,
    "values": valued_sequences,
    "unlabeled": unlabeled_letters,
}
# A store and the options of the command that builds it.
STORES = {
    "store-sequences.gram": "sequences.parquet --c 0.5 --gap 0.25 --prior tabulated --label-kernel labels.json",
    "store-trees.gram": "trees.parquet --c 0.5 --observation polynomial:degree=2,normalized=true --dtype float32",
    "store-dags.gram": "dags.parquet --c 0.5 --prior empirical:smoothing=0.5 --compression zstd",
    "store-parses.gram": "parses.parquet --kernel subset-tree:decay=0.5,max_depth=3,normalized=true --block-rows 5",
    "store-tagged.gram": "tagged.parquet --kernel tagging:decay=0.5,gap=0.25 --block-rows 5 --compression lz4",
    "store-rectangular.gram": "values.parquet --other values-new.parquet --c 0.5 --observation gaussian:gamma=0.5",
    "store-appended.gram": "unlabeled.parquet --c 0.5 --observation linear",
}
APPENDED = "gram append store-appended.gram unlabeled-new.parquet --inline"
# A model, what it is trained from and how, and the corpus it is tried on.
MODELS = {
    "model-perceptron.model": ("store-sequences.gram --rounds 3 --average", "sequences-new"),
    "model-counted.model": ("store-dags.gram --rounds 3", "dags-new"),
    "model-hidden-markov.model": ("values.parquet --learner hidden-markov-perceptron --rounds 3", "values-new"),
    "model-hidden-markov-dual.model": (
        "store-trees.gram --learner hidden-markov-perceptron --set dual=true --rounds 3",
        "trees-new",
    ),
    "model-zscore.model": ("values.parquet --learner zscore --set ridge=0.1 --set loss=hamming", "values-new"),
    "model-kernel-zscore.model": ("store-trees.gram --learner kernel-zscore --set ridge=0.5", "trees-new"),
    "model-gaussian-process.model": (
        "store-appended.gram --learner gaussian-process --set max_sweeps=5",
        "unlabeled-new",
    ),
    "model-gaussian-process-nystrom.model": (
        "store-appended.gram --learner gaussian-process --set approximation=nystrom --set rank=6 --set max_sweeps=5",
        "unlabeled-new",
    ),
    "model-ranker-forests.model": (
        "store-parses.gram --learner ranking-perceptron --candidates parses.parquet --rounds 2",
        "parses-new",
    ),
    "model-ranker-forest.model": (
        "store-parses.gram --learner ranking-perceptron --candidates parses.parquet --average",
        "parses-new",
    ),
    "model-ranker-tagged.model": (
        "store-tagged.gram --learner ranking-perceptron --candidates tagged.parquet --rounds 2",
        "tagged-new",
    ),
}
JOB = """[corpus]
path = "sequences.parquet"
[kernel]
c = 0.5
[[learner]]
name = "labeling-perceptron"
rounds = [1, 3]
[[learner]]
name = "zscore"
ridge = 0.5
[folds]
count = 2
seed = 1
inner = 2
[gram]
block_rows = 16
[cache]
path = "cache"
[cluster]
inline = true
[output]
path = "job.run"
"""
PROVENANCE = """# Written by gramline {version}

Everything here but this file and `expected.json` was written by version {version} of gramline, by

    python tests/house/snapshot.py --golden tests/golden/written-{version}

in a new folder of the system's folder for temporary files, which the run names. The commands stand in
`tests/house/snapshot_parts/golden.py`; `expected.json` holds what that version itself found in the files, and
`tests/house/test_written_before.py` compares it with what the code of today finds. Do not make these files again with a
later version: files of a new format get a new folder.

| files | |
|---|---|
| `*.parquet` | a corpus per kind of structure, and another to predict (`-new`) |
| `store-*.gram` | a Gram matrix per kind; one rectangular, one appended to; float32, lz4 and zstd among them |
| `model-*.model` | a model per learner; rankers with a forest per hypothesis, with one forest, and without |
| `job.toml`, `job.run`, `cache` | a finished cross-validation with nested folds, and its Gram matrix |
"""


def make(target: Path) -> None:
    """Write everything anew, with what is found in it, into the folder `target`."""
    folder = Path(tempfile.gettempdir(), "gramline-golden")
    folder.mkdir()
    try:
        with chdir(folder):
            _write()
        # Looking must not change what is kept: a copy is looked at.
        looked_at = Path(shutil.copytree(folder, f"{folder}-copy"))
        try:
            found = look(looked_at)
        finally:
            shutil.rmtree(looked_at)
        (folder / "expected.json").write_text(written(found.sections), "utf-8")
        version = succeed("--version").split()[-1]
        (folder / "PROVENANCE.md").write_text(PROVENANCE.format(version=version), "utf-8")
        shutil.copytree(folder, target)
    finally:
        shutil.rmtree(folder)


def _write() -> None:
    """Everything, into the current folder."""
    for name, corpus in CORPORA.items():
        corpus(3 if name in ("parses", "tagged") else 8, 1).save(f"{name}.parquet")
        corpus(5, 2).save(f"{name}-new.parquet")
    Path("labels.json").write_text(json.dumps(LABEL_KERNEL))
    Path("job.toml").write_text(JOB)
    for name in STORES:
        succeed(build_line(name))
    succeed(APPENDED)
    for name, (options, _) in MODELS.items():
        succeed(f"fit {options} -o {name}")
    succeed("cv job.toml")


def build_line(store: str) -> str:
    """The command that builds a store."""
    options = STORES[store]
    return f"gram build {options} -o {store} --inline" + ("" if "--block-rows" in options else " --block-rows 16")


# ---- opening them


def look(folder: Path, names: list[str] | None = None) -> Record:
    """What is found in the files of `folder`, a copy: in all of them, or in those of these names."""
    record = Record(folder)
    with chdir(folder):
        for name, look_at in LOOKS.items():
            if names is None or name in names:
                look_at(record, name)
    return record


def look_at_corpus(record: Record, name: str) -> None:
    for file in (f"{name}.parquet", f"{name}-new.parquet"):
        corpus = Corpus.load(file)
        content = [corpus.kind, corpus.ids, corpus.tokens, corpus.labels, corpus.label_names, corpus.fingerprint]
        record.document(name, file, content)
        record.document(name, f"{file}: shown", told(f"corpus show {file} --json", "kind positions labels prior"))


def look_at_store(record: Record, name: str) -> None:
    """Its tiles and corpus; every tile is checked; a build of the same matrix finds nothing to do."""
    gram = StoredGram.open(name)
    record_store(record, name, gram)
    record.sections[name] = record.sections.pop("stores")
    record.document(name, "labels", [gram.labels, gram.col_labels, gram.label_names])
    status = "shape n_structures dtype compression block_rows n_tiles n_present n_segments fingerprint"
    record.document(name, "status", told(f"gram status {name} --json", status))
    record.document(name, "verified", told(f"gram verify {name} --inline --json", "n_tiles bad is_good"))
    again = APPENDED if name == "store-appended.gram" else build_line(name)
    record.document(name, "again", told(f"{again} --json", "computed reused n_tiles"))


def look_at_model(record: Record, name: str) -> None:
    """Its predictions and their scores."""
    new, is_ranker = MODELS[name][1], "ranker" in name
    record.document(name, "predictions", told(f"predict {name} {new}.parquet --json", "predictions"))
    scores = "chosen first oracle" if is_ranker else "wrong accuracy exact_match confusion"
    record.document(name, "evaluation", told(f"evaluate {name} {new}.parquet --no-dummy --json", scores))
    if not is_ranker:
        record.numbers(
            name, "scores", np.concatenate(KernelLabeler.load(name).predict_scores(Corpus.load(f"{new}.parquet")))
        )


def look_at_run(record: Record, name: str) -> None:
    """Its results; the job finds all of them solved and computes nothing; a page can be made of them."""
    answer = json.loads(succeed("cv job.toml --json"))
    settings = [[setting[key] for key in ("learner", "params", "scores")] for setting in answer["settings"]]
    record.document(name, "settings", [settings, answer["best"], answer["nested"], answer["fingerprint"]])
    record.document(name, "work", [answer["problems"], [store["computed"] for store in answer["stores"]]])
    record.document(name, "plan", told("cv job.toml --plan --json", "problems solved bytes"))
    succeed("report job.run -o page.html")
    # The sections that pages of all versions have.
    kept = r'<section id="(?:settings|nested|calibration)">.*?</section>'
    page = visible_text(" ".join(re.findall(kept, Path("page.html").read_text("utf-8"), flags=re.DOTALL)))
    record.document(name, "numbers of the page", sorted(set(re.findall(r"\b[01]\.\d{4}\b", page))))


def look_at_cache(record: Record, name: str) -> None:
    listed = json.loads(succeed("cache ls --json --cache cache"))
    record.document(
        name, "entries", [[entry[key] for key in ("name", "tiles", "present")] for entry in listed["entries"]]
    )
    checked = json.loads(succeed("cache verify --json --cache cache"))
    record.document(name, "verified", [[entry["name"], entry["is_good"]] for entry in checked["entries"]])


def told(line: str, keys: str) -> dict[str, Any]:
    """These keys of what a command writes as JSON; others may be added later."""
    answer = json.loads(succeed(line))
    return {key: answer[key] for key in keys.split()}


LOOKS: dict[str, Callable[[Record, str], None]] = {
    **dict.fromkeys(CORPORA, look_at_corpus),
    **dict.fromkeys(STORES, look_at_store),
    **dict.fromkeys(MODELS, look_at_model),
    "job.run": look_at_run,
    "cache": look_at_cache,
}
