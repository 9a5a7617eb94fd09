"""What can go wrong between an operator, labels and a model, each said in one sentence."""


class LearnerError(ValueError):
    """Any input a learner refuses."""


class LayoutError(LearnerError):
    """Structures do not fit the blocks they were given."""


class LabelError(LearnerError):
    """Labels do not fit the Gram matrix; names the structure and the position."""


class LearnerParameterError(LearnerError):
    """A learner was built with a value it cannot use."""


class NotFittedError(LearnerError, AttributeError):
    """`predict` before `fit`."""


class ConvergenceError(LearnerError, RuntimeError):
    """A solve that did not converge was asked for its numbers; says what to change."""


class NotPositiveDefiniteError(LearnerError):
    """A matrix that must be positive definite is not; carries the row and the pivot found there."""

    def __init__(self, message: str, row: int, pivot: float) -> None:
        super().__init__(message)
        self.row = row
        self.pivot = pivot

    def __reduce__(self) -> "tuple[type[NotPositiveDefiniteError], tuple[str, int, float]]":
        """All three arguments: a worker process sends its errors."""
        return type(self), (str(self), self.row, self.pivot)
