from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.base import clone

from gramline.kernels.observations.features import Polynomial
from gramline.kernels.sequences.labeling import SequenceLabeling
from gramline.learners.errors import LearnerError, LearnerParameterError, NotFittedError
from gramline.learners.estimator import Estimator, Learner


class Inner(Learner):
    name: ClassVar[str] = "inner"
    row_arrays: ClassVar[tuple[str, ...]] = ("dual_",)

    def __init__(self, size: int = 3, offsets: tuple[int, ...] = (-1, 1)) -> None:
        self.size = size
        self.offsets = offsets


class Outer(Estimator):
    def __init__(self, kernel: Any, inner: Any = None, *, path: str | None = None) -> None:
        self.kernel = kernel
        self.inner = inner
        self.path = path


def test_parameters_are_the_constructors_arguments() -> None:
    outer = Outer(SequenceLabeling(c=0.5), Inner(size=4))
    assert Inner().get_params() == {"size": 3, "offsets": (-1, 1)}
    assert outer.get_params(deep=False).keys() == {"kernel", "inner", "path"}
    deep = outer.get_params()
    assert deep["inner__size"] == 4
    assert deep["kernel__c"] == 0.5


def test_nested_parameters_can_be_set() -> None:
    kernel = SequenceLabeling(c=0.5, observation=Polynomial(degree=2))
    outer = Outer(kernel, Inner())
    assert outer.set_params(inner__size=9, path="here", kernel__c=0.25, kernel__observation__degree=3) is outer
    assert outer.inner.size == 9
    assert outer.path == "here"
    assert outer.kernel == SequenceLabeling(c=0.25, observation=Polynomial(degree=3))
    assert kernel.c == 0.5, "a frozen record is replaced, not changed"
    with pytest.raises(LearnerParameterError) as caught:
        outer.set_params(colour=1)
    assert caught.value.key == "colour"
    assert str(caught.value) == "Outer has no parameter 'colour'; known are kernel, inner, path"
    for wrong, key, problem in (
        ("kernel__colour", "colour", "Outer.kernel has no parameter 'colour'"),
        ("kernel__is_normalized", "is_normalized", "Outer.kernel has no parameter 'is_normalized'"),
        ("path__x", "Outer.path", "Outer.path is 'here', which has no parameters of its own"),
    ):
        with pytest.raises(LearnerParameterError) as caught:
            outer.set_params(**{wrong: 1})
        assert (caught.value.key, caught.value.problem) == (key, problem)


def test_clone_gives_an_unfitted_copy() -> None:
    outer = Outer(SequenceLabeling(), Inner(size=4))
    outer.inner.dual_ = np.ones(2)
    copy = clone(outer)
    assert copy.inner is not outer.inner
    assert copy.inner.get_params() == outer.inner.get_params()
    assert not copy.inner.fitted()
    assert copy.kernel == outer.kernel


def test_repr_shows_what_differs_from_the_default() -> None:
    assert repr(Inner()) == "Inner()"
    assert repr(Inner(size=4)) == "Inner(size=4)"
    assert repr(Outer(None, Inner(offsets=(1,)))) == "Outer(kernel=None, inner=Inner(offsets=(1,)))"


def test_state_keeps_numbers_lists_and_arrays() -> None:
    learner = Inner(offsets=(2,))
    with pytest.raises(NotFittedError, match="this Inner is not fitted yet"):
        learner.to_state()
    learner.dual_ = np.arange(6.0).reshape(3, 2)  # type: ignore[attr-defined]
    learner.trace_ = [np.float64(1.5), 2]  # type: ignore[attr-defined]
    learner.label_names_ = ("a", "b")  # type: ignore[attr-defined]
    attributes, arrays = learner.to_state()
    assert attributes == {
        "name": "inner",
        "params": {"size": 3, "offsets": [2]},
        "fitted": {"trace_": [1.5, 2], "label_names_": ["a", "b"]},
    }
    again: Any = Inner.from_state(attributes, arrays)
    assert again.offsets == (2,)
    assert again.label_names_ == ("a", "b")
    assert again.trace_ == [1.5, 2]
    assert again.dual_ is arrays["dual_"]
    with pytest.raises(LearnerParameterError) as caught:
        Inner.from_state(attributes | {"params": {"colour": 1}}, arrays)
    assert caught.value.key == "colour"
    learner.path_ = object()  # type: ignore[attr-defined]
    with pytest.raises(LearnerError, match="cannot keep a value of type object"):
        learner.to_state()


def test_support_and_restriction_follow_the_row_arrays() -> None:
    learner: Any = Inner()
    learner.dual_ = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    learner.other_ = np.arange(3)
    assert learner.support().tolist() == [False, True, False]
    reduced = learner.restricted(np.array([1]))
    assert reduced.dual_.tolist() == [[0.0, 2.0]]
    assert reduced.other_.tolist() == [0, 1, 2]
    assert len(learner.dual_) == 3
