"""Nested choices, differences and the words for what was chosen."""

from __future__ import annotations

import pytest

from gramline.pipeline.crossval.folds import FoldSpec
from gramline.pipeline.crossval.summary import NestedSelection
from gramline.pipeline.crossval.training import HeldOut
from gramline.pipeline.experiments.fold_trial import Method, Trial, choice_counts, difference


def test_nested_choice_sees_only_inner_folds() -> None:
    """A setting that is right on the outer folds alone is not the one that is chosen."""
    labels = [["a"], ["b"]] * 6
    trial = Trial(labels, FoldSpec(2), 2, "accuracy")

    def answers(on_outer: bool) -> list[tuple[int, bool]]:
        return [(fold, on_outer == (fold < len(trial.outer))) for fold in range(len(trial.folds))]

    rows = []
    for on_outer in (True, False):
        row = []
        for fold, is_right in answers(on_outer):
            held = trial.folds.held_out[fold]
            row.append(HeldOut([labels[k] if is_right else ["c"] for k in held]))
        rows.append(tuple(row))
    found = trial.chosen(Method(("outer", "inner"), tuple(rows), 1.0))
    assert found.chosen == (1, 1)
    assert found.mean("accuracy") == 0.0
    assert choice_counts(Method(("outer", "inner"), tuple(rows), 1.0), found) == "2 x inner"


def test_settings_of_several_methods_are_one_choice() -> None:
    one, other = Method(("a",), ((),), 1.0), Method(("b", ""), ((), ()), 4.0)
    both = Method.union([one, other.named("x")])
    assert both.settings == ("a", "x, b", "x")
    assert both.seconds == 3.0


def test_equal_differences_have_no_p() -> None:
    def values(*accuracies: float) -> NestedSelection:
        return NestedSelection("accuracy", (0,) * len(accuracies), (), {"accuracy": accuracies})

    assert difference(values(0.75, 0.5), values(0.5, 0.25), "accuracy") == (0.25, None)
    mean, p = difference(values(0.7, 0.5, 0.9), values(0.5, 0.4, 0.6), "accuracy")
    assert mean == pytest.approx(0.2)
    assert p == pytest.approx(0.0742, abs=1e-4)
