from __future__ import annotations

from typing import Any

import pytest

from gramline.kernels import Identity
from gramline.kernels.positions import PositionKernel
from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.learners.zscore.kernel_labeler import KernelZScoreLabeler
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.gram.alternatives import Alternative
from gramline.pipeline.models import training_choice
from gramline.pipeline.models.training_choice import Choice, choose_way

KERNEL = PositionKernel(Identity())
CORPUS = generate_saleslog(8)


def way(keep: str, seconds: float, *, fits: bool = True) -> Alternative:
    return Alternative(keep, 1000, seconds / 2, seconds / 2, 1000, fits)


@pytest.mark.parametrize(
    ("ways", "choice"),
    [
        ([way("all", 10), way("none", 30)], Choice(True, "about 10 s with a store, 30 s without")),
        ([way("all", 10), way("none", 12)], Choice(False, "about 10 s with a store, 12 s without")),
        (
            [way("all", 10, fits=False), way("500", 5), way("none", 30)],
            Choice(False, "the disk has no room for the tiles"),
        ),
    ],
)
def test_a_store_must_be_clearly_cheaper_and_fit(ways: list[Alternative], choice: Choice) -> None:
    assert Choice.among(ways) == choice


@pytest.mark.parametrize("worth", [1e9, 0.0])
def test_a_perceptron_that_is_soon_done_is_not_measured(monkeypatch: pytest.MonkeyPatch, worth: float) -> None:
    measured: list[Any] = []

    def compared(*given: Any) -> list[Alternative]:
        measured.append(given)
        return [way("all", 1), way("none", 2)]

    monkeypatch.setattr(training_choice, "WORTH_MEASURING", worth)
    monkeypatch.setattr(training_choice, "training_alternatives", compared)
    assert choose_way(KERNEL, CORPUS, HiddenMarkovPerceptron(2, dual=True)).stores is (worth == 0)
    assert len(measured) == (worth == 0)


def test_a_solve_is_priced_both_ways() -> None:
    choice = choose_way(KERNEL, CORPUS, KernelZScoreLabeler(ridge=0.1))
    assert "s with a store" in choice.why
