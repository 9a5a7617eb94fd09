"""Declared parameters: what every kind takes and refuses, in which words; and what every record refuses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from gramline.kernels import (
    DagLabeling,
    EmpiricalPrior,
    Gaussian,
    Identity,
    Linear,
    Polynomial,
    SequenceLabeling,
    SubsetTree,
    Substitution,
    Tagging,
    TreeLabeling,
)
from gramline.kernels.catalogue import EVERYTHING, find, from_dict
from gramline.kernels.errors import KernelParameterError, LocatedError
from gramline.kernels.matrices import Matrix
from gramline.kernels.parameters import (
    REQUIRED,
    AnyWhole,
    Boolean,
    NonNegative,
    Positive,
    Record,
    Share,
    Text,
    Weight,
    Whole,
    WholeOrZero,
    ZeroToOne,
    checked,
    parameters_of,
)
from gramline.kernels.value_kinds import Kind


@dataclass(frozen=True)
class Everything:
    """A parameter of every kind; none of them is checked by the class itself."""

    whole: Annotated[Whole, "from 1"] = 1
    seed: WholeOrZero = 0
    column: AnyWhole = 0
    positive: Positive = 1.0
    ridge: NonNegative = 0.0
    decay: Share = 1.0
    gap: ZeroToOne = 0.0
    weight: Weight = 1.0
    flag: Boolean = False
    text: Text = ""
    choice: Literal["none", "some"] = "none"
    matrix: Matrix = ()
    perhaps: Annotated[Whole | None, "or nothing"] = None


NUMBERS = [*(key for key in parameters_of(Everything) if key not in ("flag", "text", "choice", "matrix"))]


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("whole", 0, "whole must be a whole number of at least 1, got 0"),
        ("whole", 1.5, "whole must be a whole number of at least 1, got 1.5"),
        ("whole", 10**30, "whole must be a whole number of at most 64 bits"),
        ("whole", 1e300, "whole must be a whole number of at most 64 bits"),
        ("seed", -1, "seed must be a whole number of at least 0, got -1"),
        ("column", "x", "column must be a whole number, got 'x'"),
        ("positive", 0, "positive must be a number above 0, got 0"),
        ("positive", 10**400, "positive must be a number of at most 64 bits; write a larger one as a float"),
        ("positive", math.inf, "positive must be a finite number, got inf"),
        ("text", ["x" * 300], f"text must be a string, got {str(['x' * 300])[:200]}..."),
        ("ridge", -1.0, "ridge must be a number of at least 0, got -1.0"),
        ("decay", 1 + 1e-9, "decay must be a number above 0 and at most 1, got 1.000000001"),
        ("gap", 1.1, "gap must be a number between 0 and 1, got 1.1"),
        ("weight", 1e200, "weight must be a positive number (1e-150 to 1e150), got 1e+200"),
        ("flag", 1, "flag must be true or false, got 1"),
        ("text", 3, "text must be a string, got 3"),
        ("choice", "all", "choice must be one of none, some, got 'all'"),
        ("choice", ["none"], "choice must be one of none, some, got ['none']"),
        ("choice", None, "choice must be one of none, some, got None"),
        ("matrix", [[1.0, 0.0]], "matrix must be a square matrix, got shape (1, 2)"),
        ("matrix", [["1"]], "matrix must be a square matrix of numbers, got ['1']"),
        ("matrix", [[math.nan]], "matrix contains a value that is not a finite number"),
        ("perhaps", 0, "perhaps must be a whole number of at least 1, got 0"),
    ],
    ids=[str(number) for number in range(23)],
)
def test_sentences(key: str, value: Any, sentence: str) -> None:
    with pytest.raises(LocatedError) as caught:
        checked(Everything, {key: value}, LocatedError)
    assert caught.value.key == key
    assert str(caught.value) == sentence


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize(
    "value", ["2", b"1", True, np.True_, np.array(True), 1j, [1], np.array([2]), math.nan, object()]
)
def test_what_is_no_number(key: str, value: Any) -> None:
    with pytest.raises(LocatedError) as caught:
        checked(Everything, {key: value}, LocatedError)
    assert caught.value.key == key


@pytest.mark.parametrize("key", NUMBERS)
@pytest.mark.parametrize("value", [1, np.int64(1), np.uint8(1), np.float32(1), np.array(1), 1.0, Fraction(1)], ids=repr)
def test_numbers_become_plain_ones(key: str, value: Any) -> None:
    plain = checked(Everything, {key: value}, LocatedError)[key]
    assert plain == 1
    assert type(plain) in (int, float)
    assert plain is value or type(value) is not int


def test_what_is_right_already_stays_the_same_object() -> None:
    """scikit-learn's clone compares identity."""
    given = {"whole": 12345, "positive": 0.123, "ridge": 12345, "matrix": ((1.0, 0.5), (0.5, 1.0)), "perhaps": None}
    plain = checked(Everything, given, LocatedError)
    assert all(plain[key] is value for key, value in given.items())


@pytest.mark.parametrize("value", [2.0, Fraction(2), np.float64(2)], ids=repr)
def test_what_is_used_as_it_is_must_be_so_already(value: Any) -> None:
    assert checked(Everything, {"whole": value}, LocatedError) == {"whole": 2}
    with pytest.raises(LocatedError):
        checked(Everything, {"whole": value}, LocatedError, as_given=True)
    assert checked(Everything, {"whole": np.uint8(2), "positive": np.float32(2)}, LocatedError, as_given=True)


def test_declarations_are_read_with_their_descriptions() -> None:
    parameters = parameters_of(Everything)
    assert parameters["whole"].description == "from 1"
    assert (parameters["perhaps"].description, parameters["perhaps"].may_be_none) == ("or nothing", True)
    assert parameters_of(Gaussian)["gamma"].default is REQUIRED
    assert parameters_of(SequenceLabeling)["observation"].default == Identity()


@pytest.mark.parametrize("name", EVERYTHING)
def test_every_parameter_of_a_record_is_declared(name: str) -> None:
    kind = find(name, Record)
    assert kind.summary
    for parameter in parameters_of(kind).values():
        assert type(parameter.kind) is not Kind
        assert parameter.description


REFUSED: list[tuple[type[Record], str, list[Any]]] = [
    (Polynomial, "degree", [0, 1.5, "2", 10**30]),
    (Polynomial, "coef0", [np.complex128(1), -1.0, math.inf]),
    (Polynomial, "normalized", ["yes", 1, None]),
    (Linear, "normalized", [1]),
    (Identity, "normalized", [None]),
    (Gaussian, "gamma", [0, math.nan, b"1", [1]]),
    (EmpiricalPrior, "smoothing", [0, -1.0, math.nan, "much", 1e308, 5e-324]),
    (Tagging, "decay", [0.0, math.inf, 1 + 1e-9]),
    (Tagging, "gap", [-0.1, 1.1, math.nan]),
    (SubsetTree, "decay", [0.0, -1.0, math.nan, 1.5, b"1"]),
    (SubsetTree, "max_depth", [0, 1e300, np.array([2])]),
    (SubsetTree, "normalized", ["yes"]),
    *((kind, "c", [0, -1.0, "1", None, True, 1e200, 1e-200]) for kind in (SequenceLabeling, TreeLabeling, DagLabeling)),
    (SequenceLabeling, "gap", [-0.1, 1.1, math.nan, "x", None]),
    (SequenceLabeling, "observation", ["identity", SequenceLabeling(), None]),
    (SequenceLabeling, "prior", [Identity(), "uniform"]),
    (SequenceLabeling, "label_kernel", [[], np.empty((0, 0)), [[1.0], [0.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]], "m.json"]),
    (TreeLabeling, "label_kernel", [[[1.0, 0.1], [0.2, 1.0]]]),
]


@pytest.mark.parametrize(("kind", "key", "values"), REFUSED, ids=lambda part: getattr(part, "__name__", None))
def test_what_records_refuse(kind: type[Record], key: str, values: list[Any]) -> None:
    required = {"gamma": 1.0} if kind is Gaussian else {}
    for value in values:
        with pytest.raises(KernelParameterError) as caught:
            kind(**required | {key: value})
        assert caught.value.key == key
        assert str(caught.value).startswith(f"{kind.__name__}.{key} ")


@pytest.mark.parametrize(
    ("symbols", "matrix", "key", "sentence"),
    [
        (
            "ab",
            [[1.0, 0.5], [0.4, 1.0]],
            "matrix",
            "matrix is not symmetric: 'a' to 'b' is 0.5, but back it is 0.4; use their mean",
        ),
        ("abc", np.eye(2), "matrix", "matrix has 2 rows for 3 symbols; give one row per symbol"),
        ("aa", np.eye(2), "symbols", "symbols names 'a' twice"),
        ("", np.empty((0, 0)), "symbols", "symbols is empty; give the symbols that the matrix compares"),
        ([1, 2], np.eye(2), "symbols", "symbols must be a list of strings, got [1, 2]"),
        (3, np.eye(3), "symbols", "symbols must be a list of strings, got 3"),
        ("ab", [[1.0, 0.0]], "matrix", "matrix must be a square matrix, got shape (1, 2)"),
        ("a", [[1 + 2j]], "matrix", "matrix must be a square matrix of numbers, got [(1+2j)]"),
    ],
)
def test_what_a_substitution_refuses(symbols: Any, matrix: Any, key: str, sentence: str) -> None:
    with pytest.raises(KernelParameterError) as caught:
        Substitution(symbols, matrix)
    assert (caught.value.key, str(caught.value)) == (key, f"Substitution.{sentence}")


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[1.0, 0.1], [0.2, 1.0]], "is not symmetric; a label kernel must be"),
        (np.empty((0, 0)), "is empty; give one row and column per label"),
        (
            [[1.0, 2.0], [2.0, 1.0]],
            "is not positive semidefinite (smallest eigenvalue -1); add that much to its diagonal, or use another "
            "label kernel",
        ),
    ],
)
def test_what_a_label_kernel_must_be(matrix: Any, sentence: str) -> None:
    with pytest.raises(KernelParameterError) as caught:
        SequenceLabeling(label_kernel=matrix)
    assert str(caught.value) == f"SequenceLabeling.label_kernel {sentence}"


@pytest.mark.parametrize(
    ("description", "key", "sentence"),
    [
        ({"name": "gaussian"}, "gamma", "Gaussian.gamma is missing"),
        ({"name": "gaussian", "gama": 1}, "gama", "Gaussian has no parameter 'gama'; did you mean 'gamma'?"),
        ({"name": "linear", "x": 1}, "x", "Linear has no parameter 'x'; known are normalized"),
        (
            {"name": "sequence-labeling", "observation": {"name": "polynomial", "degree": 0}},
            "observation.degree",
            "Polynomial.degree must be a whole number of at least 1, got 0",
        ),
        (
            {"name": "sequence-labeling", "observation": {"name": "polynomical"}},
            "observation.name",
            "there is no kernel, observation kernel or prior called 'polynomical'; did you mean 'polynomial'?",
        ),
        ({"name": ["linear"]}, "name", None),
        (
            {"name": "tree-labeling", "prior": {"name": "linear"}},
            "prior",
            "TreeLabeling.prior must be a prior such as uniform, got Linear(normalized=False)",
        ),
    ],
)
def test_descriptions_are_refused_with_the_key(description: dict[str, Any], key: str, sentence: str | None) -> None:
    with pytest.raises(KernelParameterError) as caught:
        from_dict(description, Record)
    assert caught.value.key == key
    assert sentence in (None, str(caught.value))


@pytest.mark.parametrize("kind", [Identity, lambda **more: Gaussian(0.5, **more)])
def test_what_is_normalized_already_is_the_same_when_asked_to_be(kind: Any) -> None:
    assert kind(normalized=True) == kind() == from_dict(kind().to_dict() | {"normalized": True}, Record)
    assert kind(normalized=True).to_dict()["normalized"] is False
