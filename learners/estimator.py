"""Plain-parameter objects by scikit-learn's rules, and fitted learners as small dictionaries plus arrays.

The constructor only stores its arguments; `fit` sets attributes that end in `_`; scikit-learn's `clone` works.
scikit-learn itself is not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramline.kernels.parameters import Record, checked, refuse_unknown
from gramline.learners.arrays import Indices
from gramline.learners.errors import LearnerError, LearnerParameterError, NotFittedError

Unlabeled = Annotated[
    Literal["error", "drop"], '`"drop"` leaves structures with an unlabeled position out, `"error"` refuses them'
]
Loss = Annotated[Literal["none", "hamming"], '`"hamming"` counts wrong positions']


def is_listed(value: Any) -> bool:
    """Several values one after another: a list, an array, a generator.

    Text would fall into characters, bytes into numbers and a mapping into its keys: they are none. An array without
    axes is one value.
    """
    if isinstance(value, str | bytes | bytearray | Mapping | type) or getattr(value, "ndim", 1) == 0:
        return False
    return isinstance(value, Iterable)


class Estimator:
    """get_params, set_params, repr and the check of all values from the constructor's signature."""

    @classmethod
    def _parameters(cls) -> dict[str, Parameter]:
        found = dict(signature(cls.__init__).parameters)
        del found["self"]
        return found

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name; `deep` adds those of nested objects as outer__inner."""
        params: dict[str, Any] = {}
        for key in self._parameters():
            value = params[key] = getattr(self, key)
            if deep and isinstance(value, Estimator | Record):
                params |= {f"{key}__{inner}": item for inner, item in value.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments in place; outer__inner reaches into nested objects."""
        kind, (own, nested) = type(self).__name__, _by_level(params)
        refuse_unknown([*own, *nested], self._parameters(), LearnerParameterError, type(self))
        for key, value in own.items():
            setattr(self, key, value)
        for key, inner in nested.items():
            setattr(self, key, _with_params(getattr(self, key), inner, f"{kind}.{key}"))
        return self

    def check_parameters(self) -> None:
        """Refuse a value that the constructor's annotations do not allow; `fit` does so before any work.

        A subclass adds what one parameter says of another.
        """
        checked(type(self), self.get_params(deep=False), LearnerParameterError, as_given=True)

    def fresh(self) -> Self:
        """An unfitted copy with the same parameters; nested estimators are copied as well."""
        params = self.get_params(deep=False)
        return type(self)(**{key: v.fresh() if isinstance(v, Estimator) else v for key, v in params.items()})

    def __sklearn_clone__(self) -> Self:
        """What scikit-learn's `clone` does, but frozen records and cluster connections are shared, not copied."""
        return self.fresh()

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn 1.6 and later asks before it searches or cross-validates; nobody else calls this."""
        tags = import_module("sklearn.utils")
        return tags.Tags(
            estimator_type=None,
            target_tags=tags.TargetTags(required=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
        )

    def changed_params(self) -> dict[str, Any]:
        """Parameters that are not as they come, in the order of the constructor."""
        return {
            key: getattr(self, key)
            for key, parameter in self._parameters().items()
            if parameter.default is Parameter.empty or not _same(getattr(self, key), parameter.default)
        }

    def __repr__(self) -> str:
        shown = (f"{key}={value!r}" for key, value in self.changed_params().items())
        return f"{type(self).__name__}({', '.join(shown)})"

    def fitted(self) -> dict[str, Any]:
        """Fitted attributes by name."""
        return {key: value for key, value in vars(self).items() if key.endswith("_") and not key.startswith("_")}

    def forget(self) -> None:
        """Drop all that an earlier training left."""
        for key in self.fitted():
            delattr(self, key)

    def require_fitted(self) -> None:
        if not self.fitted():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")


class Learner(Estimator):
    """An estimator that a model can keep: its state is a JSON-able dictionary and named arrays.

    Fitted attributes are arrays (any dtype but object), numbers, strings, None, or lists and dictionaries of those;
    a learner with anything else overrides `to_state` and `from_state`.
    """

    name: ClassVar[str]  # its key in the catalogue
    summary: ClassVar[str]  # half a sentence for docs/reference.md
    what: ClassVar[str] = "a learner such as labeling-perceptron"
    factors_by_tiles: ClassVar[bool] = False  # needs no whole Gram in memory although it cannot share a pass
    is_lazy: ClassVar[bool] = False  # asks for rows that changed: values computed then cost less than tiles kept
    round_measure: ClassVar[str] = ""  # what fit(..., progress=) is told after every round; empty: it takes none
    row_arrays: ClassVar[tuple[str, ...]] = ()  # fitted arrays with one row per training row of the Gram
    partial_labels: ClassVar[str] = ""  # what it makes of missing labels where a structure has others; empty: unsaid
    paper: ClassVar[Mapping[str, Any]] = {}  # parameters of the published learner that are not the defaults here

    @classmethod
    def paper_settings(cls) -> dict[str, Any]:
        """Parameters that make it the learner as it was published, `Kind(**Kind.paper_settings())`."""
        return dict(cls.paper)

    @property
    def reads_corpus(self) -> bool:
        """Whether it learns and predicts from a corpus, fit(corpus), rather than from a Gram matrix."""
        return False

    @property
    def resumes(self) -> bool:
        """Whether fit(..., checkpoint=) can go on with a training that was interrupted."""
        return False

    @property
    def round_limit(self) -> int:
        """Most passes over the training data, or iterations, that `fit` makes; 0 where nothing limits them."""
        return 0

    def traces(self) -> dict[str, list[float]]:
        """How the training went, by what is counted: one number per round, sweep or iteration."""
        return {}

    def chosen(self) -> dict[str, float]:
        """The values that a training has chosen for parameters that were left open, by name."""
        return {}

    def notes(self) -> list[str]:
        """What a user should know of the training and of the last prediction, one sentence each; mostly nothing."""
        return []

    def support(self) -> NDArray[np.bool_]:
        """Which training rows prediction needs, shape (n_rows,): those with a nonzero entry in a row array."""
        self.require_fitted()
        arrays = [getattr(self, name) for name in self.row_arrays]
        if not arrays:
            raise LearnerError(f"{type(self).__name__} keeps nothing per training row")
        return np.asarray(np.any([array.reshape(len(array), -1).any(axis=1) for array in arrays], axis=0))

    def restricted(self, rows: Indices) -> Self:
        """The same fitted learner on a subset of its training rows; the rest must not be support."""
        self.require_fitted()
        reduced = self.fresh()
        for key, value in self.fitted().items():
            setattr(reduced, key, value[rows] if key in self.row_arrays else value)
        return reduced

    def for_prediction(self) -> Self:
        """The same fitted learner, for those who only predict: perhaps without arrays that tell of the training."""
        return self

    def plain_params(self) -> dict[str, Any]:
        """Constructor arguments as JSON has them."""
        return {key: _plain(value) for key, value in self.get_params(deep=False).items()}

    def attributes(self) -> dict[str, Any]:
        """What a fitted learner is but for its arrays: its name, parameters and fitted values."""
        self.require_fitted()
        values = {key: _plain(value) for key, value in self.fitted().items() if not isinstance(value, np.ndarray)}
        return {"name": self.name, "params": self.plain_params(), "fitted": values}

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """(attributes, arrays): everything a fitted learner is; `from_state` gives an equal one back."""
        arrays = {key: value for key, value in self.fitted().items() if isinstance(value, np.ndarray)}
        return self.attributes(), arrays

    @classmethod
    def from_state(cls, attributes: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The inverse of `to_state`."""
        known = cls._parameters()
        refuse_unknown(attributes["params"], known, LearnerParameterError, cls)
        learner = cls(**{key: _tuples(value) for key, value in attributes["params"].items()})
        for key, value in attributes["fitted"].items():
            # JSON has no tuples; label names are one everywhere.
            setattr(learner, key, tuple(value) if key == "label_names_" else value)
        for key, array in arrays.items():
            setattr(learner, key, array)
        learner.require_fitted()
        return learner


def _with_params(value: Any, params: dict[str, Any], where: str) -> Any:
    """`value` with other parameters; a frozen record is replaced by a new one."""
    if isinstance(value, Estimator):
        return value.set_params(**params)
    if not isinstance(value, Record):
        raise LearnerParameterError(f"{where} is {value!r}, which has no parameters of its own", key=where)
    (own, nested), before = _by_level(params), value.get_params()
    for key in (*own, *nested):
        if key not in before:
            raise LearnerParameterError(f"{where} has no parameter {key!r}", key=key)
    changed = before | own
    for key, inner in nested.items():
        changed[key] = _with_params(changed[key], inner, f"{where}.{key}")
    return value.from_params(changed)


def _by_level(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """(own parameters, parameters of nested objects by the own one that holds them), from outer__inner."""
    own: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = {}
    for key, value in params.items():
        outer, _, inner = key.partition("__")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            own[key] = value
    return own, nested


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(np.all(value == default)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple | range):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, str | int | float):
        return value
    raise LearnerError(f"a model cannot keep a value of type {type(value).__name__}: {value!r}")


def _tuples(value: Any) -> Any:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
