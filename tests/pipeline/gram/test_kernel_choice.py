"""A reach of "auto" or "grid" becomes numbers before a kernel is made, the same that Python's helpers give."""

from __future__ import annotations

import pytest
from gram_samples import corpus

from gramline.kernels import EmpiricalPrior, SequenceLabeling, context_share, reach_grid, with_reach
from gramline.kernels.errors import KernelParameterError
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.gram.kernel_choice import KernelChoice, choose_kernel, choose_kernels


def test_the_chosen_reach_is_that_of_the_library_and_is_told() -> None:
    found = corpus(12)
    choice = choose_kernel({"reach": "auto", "c": 0.5}, found)
    assert choice.kernel == with_reach(SequenceLabeling(c=0.5), found)
    assert choice.context_share == context_share(choice.kernel, found)
    assert choice.notes == (f"reach {choice.kernel.reach:g}: neighbours make 50% of the matrix",)
    grid = choose_kernels({"reach": "grid", "c": 0.5}, found)
    assert [choice.kernel for choice in grid] == reach_grid(SequenceLabeling(c=0.5), found)
    assert [choice.context_share for choice in grid][:3] == pytest.approx([0.05, 0.2, 0.5], abs=0.01)


def test_a_given_reach_is_nobodys_choice() -> None:
    for description in ({}, {"reach": 0.5}, {"name": "position"}):
        choice = choose_kernel(description, corpus(4))
        assert choice.notes == ()
    assert choose_kernels({"reach": 0.5}, corpus(4)) == [KernelChoice(SequenceLabeling(reach=0.5))]


def test_labels_do_not_choose_the_reach() -> None:
    found = corpus(12)
    prior = {"name": "empirical", "smoothing": 0.1}
    one = choose_kernel({"reach": "auto", "prior": prior}, found).kernel
    flipped = found.with_labels([["O"] * len(labels) for labels in found.labels])
    assert one == choose_kernel({"reach": "auto", "prior": prior}, flipped).kernel
    assert one.prior == EmpiricalPrior(smoothing=0.1)


@pytest.mark.parametrize(
    ("description", "said"),
    [
        ({"reach": "far"}, "SequenceLabeling.reach must be a number above 0, auto or grid, got 'far'"),
        ({"reach": "auto", "name": "position"}, "PositionKernel has no parameter 'reach'"),
        ({"reach": -1}, "SequenceLabeling.reach must be a number above 0, got -1"),
    ],
)
def test_what_is_no_reach(description: dict[str, object], said: str) -> None:
    with pytest.raises(KernelParameterError) as caught:
        choose_kernel(description, Corpus.from_sequences([["a"]]))
    assert str(caught.value).startswith(said)
    assert caught.value.key == "reach"
