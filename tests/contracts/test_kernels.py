"""What every kernel promises: each of the catalogue as it is by default, and what EXAMPLES adds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from oracles.packed_structures import pack_nodes, pack_parses, pack_tagged
from sklearn.base import clone
from strategies import pack, words
from tolerances import assert_close

import gramline.kernels as public
from gramline.kernels import (
    DagLabeling,
    EmpiricalPrior,
    Gaussian,
    Identity,
    LearnedPrior,
    Linear,
    Polynomial,
    PositionKernel,
    SequenceLabeling,
    SubsetTree,
    Substitution,
    Sum,
    TabulatedPrior,
    Tagging,
    TreeLabeling,
    UniformPrior,
)
from gramline.kernels.base import Kernel
from gramline.kernels.catalogue import EVERYTHING, KERNELS, find, from_dict
from gramline.kernels.errors import KernelParameterError
from gramline.kernels.packing import Packed
from gramline.kernels.parameters import Record


def letters() -> Packed:
    labels = [["B", "I", "O", "O"], ["B", None], ["O"], ["O", "B", "I"]]
    return pack(words("abca ba c cab"), labels, [[[0.5, 0.3, 0.2]] * len(part) for part in labels])


NODES = [[0, 1, 2, 0, 1], [1, 0, 2], [2], [0, 0, 1, 2]]
NODE_TABLE = np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])[np.arange(13) % 3]


def trees() -> Packed:
    children = [[[1, 3], [2], [], [4], []], [[], [0, 2], []], [[]], [[], [3], [0], []]]  # the last one is a forest
    return pack_nodes(NODES, children, kind="trees", n_labels=2, table=NODE_TABLE)


def dags() -> Packed:
    successors = [[[1, 2], [3], [3], [4], []], [[], [0, 2], [0]], [[]], [[1, 3], [], [0, 3], []]]
    return pack_nodes(NODES, successors, kind="dags", n_labels=2, table=NODE_TABLE)


def parses() -> Packed:
    noun, verb = ["N", "they"], ["V", "see"]
    phrase = ["NP", ["D", "the"], noun]
    return pack_parses([["S", phrase, ["VP", verb, phrase]], ["S", ["NP", noun], ["VP", verb]], phrase, ["X"]])


def tagged() -> Packed:
    sentence = [("the", "D"), ("man", "N"), ("sees", "V"), ("the", "D"), ("dog", "N")]
    return pack_tagged([sentence, sentence[:2], [("dog", "V")], sentence[1:4]])


@dataclass(frozen=True)
class Example:
    kernel: Kernel
    corpus: Callable[[], Packed]  # structures it compares, at least three

    def ready(self) -> Any:
        return self.kernel.prepare(self.corpus())


LABEL_KERNEL = [[1.0, 0.5, 0.0], [0.5, 1.0, -0.25], [0.0, -0.25, 1.0]]
CORPORA = {"sequences": letters, "trees": trees, "dags": dags, "parses": parses, "tagged": tagged}
DEFAULTS = [find(name, Kernel) for name in KERNELS]
EXAMPLES = [
    *(Example(kind(), CORPORA[kind.packed_kind]) for kind in DEFAULTS),
    Example(SequenceLabeling(np.float32(0.5), gap=0.25, prior=EmpiricalPrior(2)), letters),
    Example(SequenceLabeling(0.8, 1, Polynomial(degree=3), TabulatedPrior(), np.array(LABEL_KERNEL)), letters),
    Example(
        SequenceLabeling(0.8, observation=Gaussian(0.5), prior=EmpiricalPrior(), label_kernel=LABEL_KERNEL), letters
    ),
    Example(SequenceLabeling(observation=Substitution("abc", np.eye(3), normalized=True)), letters),
    Example(TreeLabeling(0.7, prior=TabulatedPrior(), label_kernel=[[1.0, -0.5], [-0.5, 1.0]]), trees),
    Example(DagLabeling(0.7, prior=TabulatedPrior(), label_kernel=[[1.0, -0.5], [-0.5, 1.0]]), dags),
    Example(SequenceLabeling(reach=0.5, gap=0.25, observation=Linear(normalized=True)), letters),
    Example(TreeLabeling(reach=0.3, prior=TabulatedPrior()), trees),
    Example(DagLabeling(reach=0.3), dags),
    Example(PositionKernel(Sum(Identity(), Linear()), TabulatedPrior()), trees),
    Example(PositionKernel(Identity(), c=2.0), dags),
    Example(SubsetTree(np.float32(0.25), max_depth=np.int64(2)), parses),
    Example(SubsetTree(0.3, normalized=True), parses),
    Example(Tagging(1, gap=0.3), tagged),
]
PARTS: list[Record] = [
    Identity(normalized=True),
    Linear(normalized=True),
    Polynomial(2, 0.5, True),
    Gaussian(0.25),
    Sum(Linear(), Polynomial(unit=True), 0.5, True),
    Substitution(["x", "y"], [[1, 0], [0, 1]]),
    UniformPrior(),
    TabulatedPrior(),
    EmpiricalPrior(0.5),
    LearnedPrior("gaussian-process", 3, {"offsets": "GPSL1", "scale": [1, 2]}),
]

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: repr(example.kernel))
every_record = pytest.mark.parametrize("record", [*(example.kernel for example in EXAMPLES), *PARTS], ids=repr)


@every_example
def test_tile_has_a_row_per_position_or_structure(example: Example) -> None:
    ready = example.ready()
    n = int(example.kernel.row_lengths(ready).sum())
    for dtype in (np.float32, np.float64):
        tile = example.kernel.tile(ready, ready, dtype)
        assert tile.shape == (n, n)
        assert tile.dtype == dtype
        assert np.isfinite(tile).all()


@every_example
def test_symmetric_positive_semidefinite(example: Example) -> None:
    gram = example.kernel.gram(example.corpus())
    assert np.array_equal(gram, gram.T)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-9 * np.abs(gram).max()
    assert gram.any()


@every_example
def test_diagonal(example: Example) -> None:
    ready = example.ready()
    assert_close(example.kernel.diagonal(ready), example.kernel.tile(ready, ready).diagonal())


@every_example
def test_any_tiling_and_its_transpose(example: Example) -> None:
    kernel, ready = example.kernel, example.ready()
    gram = kernel.tile(ready, ready)
    parts = [ready.structures(0, 1), ready.structures(1, len(ready))]
    assert_close(np.block([[kernel.tile(a, b) for b in parts] for a in parts]), gram)
    assert_close(kernel.tile(parts[1], parts[0]).T, kernel.tile(parts[0], parts[1]))


@every_example
def test_same_tile_same_bytes(example: Example) -> None:
    ready = example.ready()
    again = type(ready).from_arrays({name: array.copy() for name, array in ready.arrays().items()}, ready.vocabulary)
    assert example.kernel.tile(ready, ready).tobytes() == example.kernel.tile(again, again).tobytes()


@every_example
def test_memory_is_used_again(example: Example) -> None:
    ready = example.ready()
    for dtype in (np.float32, np.float64):
        for cols in (ready, ready.structures(0, 2)):
            expected = example.kernel.tile(ready, cols, dtype)
            memory = np.full((expected.shape[0] + 2, expected.shape[1] + 3), np.nan, dtype)
            tile = example.kernel.tile(ready, cols, dtype, memory)
            assert np.shares_memory(tile, memory)
            assert tile.shape == expected.shape
            assert tile.tobytes() == expected.tobytes()


@every_example
def test_two_objects_with_the_same_structures_make_a_symmetric_tile(example: Example) -> None:
    gram = example.kernel.tile(example.ready(), example.ready())
    assert np.array_equal(gram, gram.T)


@every_example
def test_preparing_twice_changes_nothing(example: Example) -> None:
    once = example.ready()
    twice = example.kernel.prepare(once)
    assert {name: array.tolist() for name, array in once.arrays().items()} == {
        name: array.tolist() for name, array in twice.arrays().items()
    }


@every_record
def test_travels_as_a_dictionary(record: Record) -> None:
    description = json.loads(json.dumps(record.to_dict()))
    again = from_dict(description, Record)
    assert again == record
    assert hash(again) == hash(record)
    assert again.to_dict() == record.to_dict()


@every_record
def test_representation_rebuilds_it(record: Record) -> None:
    names = {name: getattr(public, name) for name in dir(public)}
    assert eval(repr(record), names) == record


@every_record
def test_clone(record: Record) -> None:
    assert clone(record) == record  # also checks that parameters are kept as they were given


@every_record
def test_unknown_parameter(record: Record) -> None:
    if isinstance(record, LearnedPrior):
        return  # a parameter of its learner, which is made elsewhere: tests/pipeline/models/test_learned_prior.py
    with pytest.raises(KernelParameterError) as caught:
        from_dict(record.to_dict() | {"depht": 1}, Record)
    assert caught.value.key == "depht"
    assert str(caught.value).startswith(f"{type(record).__name__} has no parameter 'depht'")


def test_every_record_of_the_catalogue_has_an_example_and_is_public() -> None:
    assert {record.name for record in [*(example.kernel for example in EXAMPLES), *PARTS]} == EVERYTHING.keys()
    records = {name: find(name, Record) for name in EVERYTHING}
    assert {name: record.name for name, record in records.items()} == {name: name for name in EVERYTHING}
    assert {record.__name__ for record in records.values()} <= set(public.__all__)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "sequence-labelling"}, r"no kernel, .* called 'sequence-labelling'; did you mean"),
        ({"name": "zzz"}, "known are sequence-labeling"),
        ({"name": "identity"}, "'identity' is not a kernel such as"),
        ({"c": 1.0}, "needs a 'name'"),
    ],
)
def test_a_name_that_nobody_has(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(KernelParameterError, match=sentence):
        from_dict(given, Kernel)
    assert KERNELS
