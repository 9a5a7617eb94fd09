"""Stores, models and corpora as damage or a stranger could leave them: documents, arrays and chunks made worse.

Half of the changed documents are sealed again and changed arrays get digests and checksums that fit, so that it is the
checks of content that must hold, not those of damage.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz.mutations import mutated, mutated_document
from fuzz.readers import OURS, Tally

from gramline.kernels import Identity, SequenceLabeling, SubsetTree, TreeLabeling
from gramline.kernels.base import Kernel
from gramline.learners import LabelingPerceptron, RankingPerceptron
from gramline.learners.operators.dense import DenseGram
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.build import build_gram
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.gram.verify import verify_gram
from gramline.pipeline.models.model import Model
from gramline.pipeline.models.ranker import Ranker
from gramline.pipeline.storage.groups import digest, open_group, read_attributes, write_arrays
from gramline.pipeline.storage.writer import write_attributes

X = [["a", "b"], ["b", "c", "a"], ["c"], ["a", "a"]]
Y = [["O", "B"], ["B", "O", "O"], ["B"], ["O", "O"]]
CHILDREN = [[[1], []], [[1, 2], [], []], [[]], [[1], []]]
PARSES = ["(S (NP a) (VP b))", "(S (NP b))", "(S (VP b) (NP a))", "(S (NP a))"]
SEQUENCES = Corpus.from_sequences(X, Y)
TREES = Corpus.from_trees(X, CHILDREN, Y)
TREEBANK = Corpus.from_parses(PARSES)


def _gram(path: Path, kernel: Kernel, corpus: Corpus) -> None:
    build_gram(kernel, corpus, path, block_rows=4)


def _model(path: Path) -> None:
    kernel = SequenceLabeling(c=0.5, observation=Identity())
    learner = LabelingPerceptron(rounds=2).fit(DenseGram.of(kernel, SEQUENCES), SEQUENCES.labels)
    Model.of(learner, SEQUENCES, kernel).save(path)


def _ranker(path: Path) -> None:
    kernel = SubsetTree(0.4)
    learner = RankingPerceptron().fit(DenseGram.of(kernel, TREEBANK), [[0, 1], [2, 3]])
    Ranker.of(learner, TREEBANK, kernel).save(path)


def _use_gram(path: Path) -> object:
    gram = StoredGram.open(path)
    return gram.status(), gram.labels, verify_gram(path)


@dataclass(frozen=True)
class Target:
    """Something on disk, and what a program does with it."""

    name: str
    make: Callable[[Path], None]
    use: Callable[[Path], object]


TARGETS = (
    Target("store of sequences", lambda path: _gram(path, SequenceLabeling(c=0.5, gap=0.2), SEQUENCES), _use_gram),
    Target("store of trees", lambda path: _gram(path, TreeLabeling(c=0.5), TREES), _use_gram),
    Target("model", _model, lambda path: Model.load(path).predict(SEQUENCES)),
    Target("ranker", _ranker, lambda path: Ranker.load(path).choose(TREEBANK, [[0, 1], [2, 3]])),
    Target("corpus", lambda path: TREES.save(path), lambda path: Corpus.load(path).packed()),
)


def attack(target: Target, folder: Path, seed: int, count: int) -> Tally:
    """`count` damaged copies; each works all the same, or is refused by an error of ours in one line with its name."""
    tally = Tally()
    whole = folder / "whole"
    target.make(whole)
    path = folder / "bad"
    for number in range(count):
        draw = random.Random(f"{target.name} {seed} {number}")
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        (shutil.copytree if whole.is_dir() else shutil.copy)(whole, path)
        what = f"{target.name}, seed {seed}, input {number}: {spoil(draw, path)}"
        try:
            target.use(path)
        except OURS as error:
            said = str(error)
            assert "\n" not in said.strip(), f"{what}\nsaid in several lines: {said}"
            named = (str(path), "structure", "learner", "kernel", "training")
            assert any(name in said for name in named), f"{what}\n{said}"
            tally.refused += 1
        except Exception as error:
            raise AssertionError(f"{what}\nraised {type(error).__name__}: {error}") from error
        else:
            tally.read += 1
    return tally


def spoil(draw: random.Random, path: Path) -> str:
    """Make it worse; says how."""
    if path.is_file():
        path.write_bytes(mutated(draw, path.read_bytes()))
        return "bytes of the file"
    way = draw.choice((_root_document, _root_document, _any_document, _any_document, _any_file, _array, _array, _array))
    return way(draw, path)


def _root_document(draw: random.Random, path: Path) -> str:
    attributes, _ = read_attributes(str(path))
    changed = mutated_document(draw, attributes)
    if isinstance(changed, dict):
        document = json.loads((path / "zarr.json").read_text("utf-8")) | {"attributes": changed}
        (path / "zarr.json").write_text(json.dumps(document), "utf-8")
        if draw.random() < 0.7:
            write_attributes(open_group(str(path)), changed)
    return f"attributes {json.dumps(changed)[:1500]}"


def _any_document(draw: random.Random, path: Path) -> str:
    chosen = draw.choice(sorted(path.rglob("zarr.json")))
    changed = mutated_document(draw, json.loads(chosen.read_text("utf-8")))
    chosen.write_text(json.dumps(changed), "utf-8")
    return f"{chosen.relative_to(path)} {json.dumps(changed)[:1500]}"


def _any_file(draw: random.Random, path: Path) -> str:
    chosen = draw.choice(sorted(found for found in path.rglob("*") if found.is_file()))
    chosen.write_bytes(mutated(draw, chosen.read_bytes()))
    return f"bytes of {chosen.relative_to(path)}"


def _array(draw: random.Random, path: Path) -> str:
    """Other numbers in an array, with digests that fit: what a stranger could write who knows the format."""
    names = [
        str(found.parent.relative_to(path))
        for found in sorted(path.rglob("zarr.json"))
        if json.loads(found.read_text("utf-8")).get("node_type") == "array"
    ]
    name = draw.choice(names)
    group = open_group(str(path))
    before = np.asarray(group[name][...])  # type: ignore[index]
    after = before.copy()
    if after.size:
        place = draw.randrange(after.size)
        odd = draw.choice((-1, -2, 0, 1, 2, 3, 7, 1000, 2**31 - 1, -(2**31), 10**15, float("inf"), float("nan"), 1e300))
        with np.errstate(all="ignore"):
            after.reshape(-1)[place] = (
                np.array([odd]).astype(after.dtype, casting="unsafe")[0]
                if odd == odd
                else (np.nan if after.dtype.kind == "f" else 5)
            )
    if draw.random() < 0.3 and after.ndim:
        after = after[: max(0, len(after) - draw.randint(1, 2))]
    elif draw.random() < 0.1:
        after = after.astype(draw.choice((np.float64, np.int16, np.uint8, np.bool_)), casting="unsafe")
    write_arrays(group, {name: after})
    attributes, _ = read_attributes(str(path))
    for part in attributes.get("segments", {}).values():
        for segment in part:
            local = name.removeprefix(segment["folder"] + "/")
            if local in segment["digests"]:
                segment["digests"][local] = digest(after)
    if name in attributes.get("arrays", {}):
        attributes["arrays"][name] = digest(after)
    write_attributes(group, attributes)
    return f"array {name} {before.tolist()} -> {after.dtype} {after.tolist()}"
