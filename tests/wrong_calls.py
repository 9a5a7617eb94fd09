"""Tables of wrong calls in Python: each is refused by an error of ours, in one sentence that says what and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from gramline.kernels import SequenceLabeling
from gramline.kernels.errors import LocatedError
from gramline.learners import DenseGram, LabelingPerceptron
from gramline.pipeline import Corpus, KernelLabeler, build_gram

WORDS: Any = [["the", "cat"], ["a", "dog", "sat"], ["the", "dog"]]
LABELS: list[Any] = [["D", "N"], ["D", "N", "V"], ["D", "N"]]
CORPUS = Corpus.from_sequences(WORDS, LABELS)
TREES = Corpus.from_trees([["a", "b"]], [[[1], []]], [["D", "N"]])
KERNEL = SequenceLabeling(c=0.5)
ONE_ROUND = LabelingPerceptron(rounds=1)
GRAM = DenseGram.of(KERNEL, CORPUS)
LABELER = KernelLabeler(KERNEL, ONE_ROUND).fit(WORDS, LABELS)
Call = Callable[..., Any]
Calls = Mapping[str, Mapping[str, tuple[Call, str]]]  # group, case: the call, and what is said of it


def cases(calls: Calls) -> pytest.MarkDecorator:
    """One test per case, which is given its group and its name."""
    return pytest.mark.parametrize(("group", "case"), [(group, case) for group, own in calls.items() for case in own])


def check_refused(calls: Calls, group: str, case: str, *folder: Path) -> None:
    """The call of a case, which may be given a folder, ends in one sentence with its words; FOLDER is that folder."""
    call, said = calls[group][case]
    with pytest.raises(LocatedError) as caught:
        call(*folder)
    sentence = str(caught.value)
    assert said.replace("FOLDER", str(*folder)) in sentence
    assert "\n" not in sentence


def one_of_everything(path: Path) -> Path:
    """A folder with a model, a corpus, a Gram matrix, a text and a folder."""
    LABELER.save(path / "a.model")
    CORPUS.save(path / "a.parquet")
    build_gram(KERNEL, CORPUS, path / "a.zarr")
    (path / "a.conll").write_text("Ann B\nran O\n")
    (path / "folder").mkdir()
    return path
