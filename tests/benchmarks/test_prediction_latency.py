"""One raw sentence from Python: a kernel learner, a learner on features, and a CRF on the same features.

A small untimed version runs by default; `pytest -m benchmark -s tests/benchmarks/test_prediction_latency.py` prints
milliseconds, and the seconds of `gramline predict` on one sentence.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import pycrfsuite
import pytest

from gramline.learners.perceptrons.hidden_markov import HiddenMarkovPerceptron
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.corpus.recipe import Recipe
from gramline.pipeline.corpus.saleslog import generate_saleslog
from gramline.pipeline.models.labeler import KernelLabeler
from gramline.pipeline.models.raw_features import BySet

SUPPORT = 5000  # positions
FEATURES_AT_MOST, KERNEL_AT_MOST = 1.0, 3.0  # milliseconds, median
COMMAND_AT_MOST = 1.0  # seconds
describe = BySet(Recipe("lists", features="spelling", window=1))

Sentence = list[str]
Label = Callable[[Sentence], list[str]]


def sentences(corpus: Corpus) -> list[Sentence]:
    return [[str(word) for word in line] for line in corpus.tokens]


def named(sentence: Sentence) -> list[list[str]]:
    """The features that the CRF is given: those of the model's own recipe."""
    return [[name for group in position.groups for name in group] for position in describe(sentence)]


def crf(corpus: Corpus, path: Path) -> Label:
    trainer = pycrfsuite.Trainer(verbose=False, params={"max_iterations": 30})
    for sentence, labels in zip(sentences(corpus), corpus.labels, strict=True):
        trainer.append(named(sentence), labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return lambda sentence: list(tagger.tag(named(sentence)))


def labelers(corpus: Corpus, folder: Path, rounds: int) -> dict[str, tuple[Label, KernelLabeler | None]]:
    """By name: what labels one sentence; models are saved and loaded, as a service has them."""
    made: dict[str, tuple[Label, KernelLabeler | None]] = {}
    pairs = {
        "kernel learner": KernelLabeler(learner=HiddenMarkovPerceptron(rounds, dual=True), features="spelling"),
        "learner on features": KernelLabeler(learner=HiddenMarkovPerceptron(rounds, dual=False), features="spelling"),
    }
    for number, (name, labeler) in enumerate(pairs.items()):
        labeler.fit(sentences(corpus), corpus.labels).save(folder / f"{number}.zarr")
        loaded = KernelLabeler.load(folder / f"{number}.zarr")
        made[name] = (lambda sentence, loaded=loaded: loaded.predict([sentence])[0]), loaded
    return made | {"python-crfsuite": (crf(corpus, folder / "crf"), None)}


def milliseconds(label: Label, new: list[Sentence]) -> float:
    """Median over the sentences, after one that pays for the index."""
    label(new[0])
    seconds = []
    for sentence in new:
        begin = perf_counter()
        label(sentence)
        seconds.append(perf_counter() - begin)
    return 1000 * median(seconds)


def test_single_sentences_get_the_labels_of_the_whole_corpus(tmp_path: Path) -> None:
    made = labelers(generate_saleslog(12, seed=1), tmp_path, rounds=3)
    new = generate_saleslog(6, seed=2)
    for label, labeler in made.values():
        one_by_one = [label(sentence) for sentence in sentences(new)]
        assert [len(labels) for labels in one_by_one] == new.lengths.tolist()
        if labeler is not None:
            whole = Corpus.from_sequences(sentences(new)).with_features("spelling", 1)
            assert one_by_one == labeler.model_.predict(whole, block_rows=256)


@pytest.mark.benchmark
def test_one_sentence_is_labeled_in_milliseconds(tmp_path: Path) -> None:
    corpus = generate_saleslog(SUPPORT // 28, seed=1)
    new = sentences(generate_saleslog(300, seed=2))
    found: dict[str, float] = {}
    for name, (label, labeler) in labelers(corpus, tmp_path, rounds=5).items():
        found[name] = milliseconds(label, new)
        kept = "" if labeler is None else f", {labeler.model_.support.n_positions:,} support positions"
        sys.stdout.write(f"\n{name}: {found[name]:.2f} ms a sentence (median of {len(new)}{kept})")
    (tmp_path / "new.conll").write_text("\n".join(new[0]) + "\n")
    command = [Path(sys.executable).with_name("gramline"), "predict", tmp_path / "0.zarr", tmp_path / "new.conll"]
    # An installed program finds its modules compiled; that also holds here after the first run, unless it is forbidden.
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    seconds = []
    for _ in range(4):
        begin = perf_counter()
        shown = subprocess.run(command, check=True, capture_output=True, text=True, env=usual).stdout
        seconds.append(perf_counter() - begin)
        assert len(shown.splitlines()) == len(new[0])
    sys.stdout.write(f"\ngramline predict of one sentence: {min(seconds[1:]):.2f} s\n")
    assert found["learner on features"] <= FEATURES_AT_MOST
    assert found["kernel learner"] <= KERNEL_AT_MOST
    assert min(seconds[1:]) <= COMMAND_AT_MOST
