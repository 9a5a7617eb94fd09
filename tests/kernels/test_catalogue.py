"""Kernels in one line: defaults are left out."""

from __future__ import annotations

from gramline.kernels import Polynomial, SequenceLabeling, Substitution
from gramline.kernels.catalogue import describe


def test_kernels_in_words() -> None:
    assert describe(SequenceLabeling().to_dict()) == "sequence-labeling"
    assert describe(SequenceLabeling(c=0.5).to_dict()) == "sequence-labeling(c=0.5)"
    nested = SequenceLabeling(gap=0.2, observation=Polynomial(degree=3, normalized=True))
    assert describe(nested.to_dict()) == "sequence-labeling(gap=0.2, observation=polynomial(degree=3, normalized=True))"
    symbols = Substitution(("a", "b"), ((1.0, 0.5), (0.5, 1.0)))
    assert describe(symbols.to_dict()) == "substitution(symbols=['a', 'b'], matrix=2 x 2 matrix)"
    assert describe({"name": "of-another-version", "speed": 3}) == "of-another-version(speed=3)"
    assert describe(None) == ""
