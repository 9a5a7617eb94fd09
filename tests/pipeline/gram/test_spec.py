"""What decides the numbers, and how a mismatch is told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from gram_samples import KERNEL, corpus

from gramline.kernels import Polynomial, SequenceLabeling, Substitution
from gramline.kernels.catalogue import KERNELS
from gramline.kernels.errors import KernelError
from gramline.pipeline.errors import StoreError
from gramline.pipeline.gram.spec import DEFAULT_KERNELS, GramSpec, kernel_for


def spec(kernel: SequenceLabeling = KERNEL, *, seed: int = 0, rectangular: bool = False) -> GramSpec:
    rows = corpus(seed=seed).packed()
    return GramSpec.of(kernel, rows, corpus(seed=5).packed(like=rows) if rectangular else None, "float64")


def test_equal_builds_have_equal_specs_also_after_json() -> None:
    matrix = Substitution(("a", "b"), ((1.0, 0.5), (0.5, 2.0)))
    for kernel in (KERNEL, replace(KERNEL, observation=matrix), replace(KERNEL, observation=Polynomial(degree=3))):
        made = spec(kernel)
        again = GramSpec.from_dict(json.loads(json.dumps(made.to_dict())))
        assert again == made == spec(kernel)
        assert again.fingerprint() == made.fingerprint()
        assert made.differences(again) is None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (spec(replace(KERNEL, c=0.9)), "kernel.c: 0.8 instead of 0.9"),
        (spec(replace(KERNEL, observation=Polynomial(degree=3))), "kernel.observation: identity instead of polynomial"),
        (spec(replace(KERNEL, label_kernel=((1.0, 0.5), (0.5, 1.0)))), "kernel.label_kernel: none instead of a matrix"),
        (spec(seed=1), "corpus: it holds another one"),
        (spec(rectangular=True), "shape: it is symmetric"),
        (replace(spec(), dtype="float32"), "dtype: float64 instead of float32"),
        (replace(spec(), format=2), "format: 1 instead of 2"),
    ],
)
def test_a_mismatch_names_what_differs(other: GramSpec, said: str) -> None:
    told = spec().differences(other)
    assert told is not None
    assert said in told
    assert spec().fingerprint() != other.fingerprint()


def test_values_that_fill_no_sentence_are_named() -> None:
    first, second = (spec(replace(KERNEL, observation=_letters(value))) for value in (0.5, 0.25))
    assert first.differences(second) == "kernel.observation.matrix: other values in a matrix of 9 rows"
    fewer = spec(replace(KERNEL, observation=_letters(0.5, "ABCDEFGH")))
    assert first.differences(fewer) == (
        "kernel.observation.matrix: a matrix of 9 rows instead of a matrix of 8 rows; "
        'kernel.observation.symbols: a list of 9 entries instead of ["A", "B", "C", "D", "E", "F", "G", "H"]'
    )


def _letters(value: float, symbols: str = "ABCDEFGHI") -> Substitution:
    return Substitution(symbols, [[1.0 if row == column else value for row in symbols] for column in symbols])


def test_rectangular_and_appended_mismatches() -> None:
    appended = replace(spec(), rows=(*spec().rows, "more"))
    assert appended.differences(spec()) == "corpus: it holds this one with 1 appended to it"
    assert spec(rectangular=True).differences(spec()) == "shape: it is between two corpora"
    other = replace(spec(rectangular=True), cols="elsewhere")
    assert spec(rectangular=True).differences(other) == "second corpus: it holds another one"


def test_only_the_two_float_types_are_stored() -> None:
    with pytest.raises(StoreError, match="dtype must be one of float64, float32, got 'float16'"):
        replace(spec(), dtype="float16")


def test_every_kind_of_corpus_has_a_kernel() -> None:
    for kind, name in DEFAULT_KERNELS.items():
        assert name in KERNELS
        assert kernel_for({}, kind).packed_kind == kind
    assert kernel_for({"c": 0.5}, "sequences") == SequenceLabeling(c=0.5)
    with pytest.raises(KernelError, match="compares trees, but the corpus holds sequences"):
        kernel_for({"name": "tree-labeling"}, "sequences")
