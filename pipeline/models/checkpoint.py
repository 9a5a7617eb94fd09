"""A training that survives: its state kept in a file beside the model, until that is written.

The same training, begun again, goes on from there and ends with the same model, bit by bit. What makes it the same is
its identity: learner and parameters, Gram matrix with its blocks, labels, and the version of gramline. A checkpoint of
anything else is not used, and neither is a damaged one. How many workers share a product is no part of it: with another
number of them the last bits of sums may differ.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any

from gramline.kernels.base import Kernel
from gramline.learners.checkpoints import State
from gramline.learners.estimator import Learner
from gramline.learners.operators.operator import GramOperator
from gramline.pipeline.corpus.corpus import Corpus
from gramline.pipeline.errors import InputError, RunError, StoreDamagedError, StoreError
from gramline.pipeline.events import CheckpointWritten, Listener, Message, silent
from gramline.pipeline.files import path_text
from gramline.pipeline.gram.spec import GramSpec
from gramline.pipeline.gram.stored import StoredGram
from gramline.pipeline.storage.array_file import (
    read_array_file,
    remove_array_file,
    sweep_partial_files,
    write_array_file,
)
from gramline.pipeline.storage.groups import digest
from gramline.pipeline.storage.places import is_in_memory

EVERY = 60.0  # seconds between two checkpoints
WORTH_SECONDS = 10.0  # of training that nobody wants to repeat
HOLD_SECONDS = 1.0  # between two copies in memory, for a stop between two checkpoints
# Copies and files may take these parts of the time, less than 2 % together.
HOLD_SHARE, SAVE_SHARE = 1 / 200, 1 / 80
LEFT = "no model was written, but {after} is kept; the same command goes on from there"
STOPS = (KeyboardInterrupt, RunError, OSError, MemoryError)  # after which the same command may go on


class TrainingPaused(Exception):  # noqa: N818 - no failure: it was asked for
    """The time that a training was given has passed; its state, `after` so much of it, is kept at `path`."""

    def __init__(self, after: str, path: str) -> None:
        super().__init__(f"stopped after {after}; the same command goes on from there")
        self.after, self.path = after, path


class _Unsuitable(Exception):  # noqa: N818 - said in a sentence, and the training begins at its beginning
    """A checkpoint of another training."""


def identity_of(
    learner: Learner, gram: GramOperator, labels: Any, kernel: Kernel | None = None, corpus: Corpus | None = None
) -> dict[str, Any]:
    """What decides every bit of a training; `kernel` and `corpus` are those of a matrix that is in no store."""
    text = json.dumps(labels, default=lambda array: array.tolist())
    return {
        "version": version("gramline"),
        "learner": {"name": learner.name} | learner.plain_params(),
        "matrix": _matrix_identity(gram, kernel, corpus),
        "labels": hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
    }


def identity_of_problems(learner: str, gram: StoredGram, problems: Sequence[str]) -> dict[str, Any]:
    """What decides every bit of problems that are trained together: their digests know settings, folds and labels."""
    matrix = _matrix_identity(gram, None, None)
    return {"version": version("gramline"), "learner": {"name": learner}, "matrix": matrix, "problems": [*problems]}


def _matrix_identity(gram: GramOperator, kernel: Kernel | None, corpus: Corpus | None) -> dict[str, Any]:
    if isinstance(gram, StoredGram):
        spec, kind = gram.store.spec, f"keeps {gram.store.keep}"
    elif kernel is not None and corpus is not None:
        spec, kind = GramSpec.of(kernel, corpus.packed(), None, "float64"), type(gram).__name__
    else:
        raise InputError("a checkpoint needs a stored Gram matrix, or the kernel and the corpus of another one")
    return {"numbers": spec.fingerprint(), "blocks": digest(gram.layout.rows.block_starts), "kind": kind}


def problems_in(path: str) -> list[str]:
    """The problems whose training the checkpoint at `path` holds; StoreDamagedError where it is none."""
    found: list[str] = []

    def look(about: Mapping[str, Any]) -> None:
        identity = about.get("identity")
        problems = identity.get("problems") if isinstance(identity, dict) else None
        if not isinstance(problems, list):
            raise StoreDamagedError("it names no problems", path)
        found.extend(map(str, problems))
        raise _Unsuitable  # the arrays are not wanted

    with suppress(_Unsuitable):
        read_array_file(path, look)
    return found


class TrainingCheckpoint:
    """The `checkpoint` of one training, beside the model at `model_path`, as a learner's `fit` takes it.

    It writes every so many seconds (0: whenever it can), at most 2 % of the time, and not at all in a training shorter
    than that. After `stop_after` seconds it ends the training, with TrainingPaused, at the next point it can go on
    from. A checkpoint that is not used is told to `warn`; `left` is what Ctrl-C says.

    >>> from gramline.kernels import SequenceLabeling
    >>> from gramline.pipeline import Corpus, KernelLabeler
    >>> corpus = Corpus.from_sequences([["a", "b"], ["b"]], [["X", "Y"], ["Y"]])
    >>> labeler = KernelLabeler(SequenceLabeling()).fit(corpus, checkpoint=TrainingCheckpoint("model.zarr"))
    >>> labeler.predict([["b", "a"]])
    [['Y', 'X']]
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        *,
        every: float = EVERY,
        stop_after: float | None = None,
        warn: Callable[[str], None] = lambda text: warnings.warn(text, stacklevel=4),
        left: str = LEFT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = f"{path_text(model_path).rstrip('/')}.checkpoint"
        self._every, self._warn, self._clock, self._left = every, warn, clock, left
        self._is_kept = not is_in_memory(self.path)  # what is in memory survives nothing
        self._stop_at = None if stop_after is None else clock() + stop_after
        self._identity: dict[str, Any] = {}
        self._tell: Listener = silent
        self._begun = self._held_at = self._saved_at = clock()
        self._hold_seconds = self._save_seconds = 0.0
        self._has_warned = self._has_trained = self._is_there = False
        self._held: tuple[str, State] | None = None  # newer than the file
        self.after: str | None = None  # how far the training is that the file holds

    def begin(self, identity: Mapping[str, Any], tell: Listener = silent) -> None:
        """Before the training; `tell` hears where it goes on."""
        self._identity, self._tell = json.loads(json.dumps(identity)), tell
        self._begun = self._held_at = self._saved_at = self._clock()

    # ---- what a learner calls

    def restore(self) -> State | None:
        """The state in the file, if it is one of this very training."""
        if not self._is_kept:
            return None
        sweep_partial_files(self.path)
        try:
            found = read_array_file(self.path, self._require_same)
        except (_Unsuitable, StoreDamagedError) as refusal:
            self._is_there = True
            reason = f"damaged, {refusal.problem}" if isinstance(refusal, StoreDamagedError) else f"of {refusal}"
            self._warn(f"{self.path} is not used and will be replaced: it is {reason}")
            return None
        if found is None:
            return None
        (about, state), self._is_there = found, True
        self.after = str(about["after"])
        at = time.strftime("%H:%M", time.localtime(float(about["time"])))
        self._tell(Message(f"going on after {self.after} (checkpoint of {at})"))
        return state

    def offer(self, after: str, state: Callable[[], State], *, is_last: bool = False) -> None:
        self._has_trained = True
        now = self._clock()
        is_late = self._stop_at is not None and now >= self._stop_at and not is_last
        if not self._is_kept or not (is_late or now - self._begun >= min(self._every, WORTH_SECONDS)):
            return
        is_due = now - self._saved_at >= self._pause(self._every, self._save_seconds / SAVE_SHARE)
        if (
            is_due
            or is_late
            or is_last
            or now - self._held_at >= self._pause(min(self._every, HOLD_SECONDS), self._hold_seconds / HOLD_SHARE)
        ):
            self._held = after, state()
            self._held_at = self._clock()
            self._hold_seconds = self._held_at - now
        if (is_due or is_late) and not self._write():
            return
        if is_late:
            raise TrainingPaused(after, self.path)

    def hold(self, after: str, state: Callable[[], State]) -> None:
        """Take the state now, for the stop that is about to come."""
        if self._is_kept and self._clock() - self._begun >= min(self._every, WORTH_SECONDS):
            self._held = after, state()

    def _pause(self, wanted: float, affordable: float) -> float:
        return max(wanted, affordable) if self._every else 0.0

    # ---- what surrounds the training

    def settle(self) -> None:
        """Before other work that takes long: write what is not written yet, and stop where it is time to.

        Where nothing was left to train it does not stop: the other work would never begin.
        """
        if self._clock() - self._begun >= min(self._every, WORTH_SECONDS):
            self._write()
        is_late = self._stop_at is not None and self._clock() >= self._stop_at
        if is_late and self.after is not None and self._has_trained:
            raise TrainingPaused(self.after, self.path)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Around the training and the writing of its model: a stop leaves the last state, the end removes it."""
        try:
            yield
        except STOPS as error:
            self._write()
            if self.after is not None and isinstance(error, KeyboardInterrupt):
                error.args = (self._left.format(after=self.after),)
            raise
        if self._is_there:
            with suppress(StoreError):  # the model is written; the next one at this path removes it
                remove_array_file(self.path)

    def _write(self) -> bool:
        """Write the state that is held, if one is; a training does not fail because that cannot be written."""
        if self._held is None:
            return True
        begin = self._clock()
        after, state = self._held
        about = {"identity": self._identity, "after": after, "time": time.time()}
        try:
            write_array_file(self.path, about, state)
            self.after, self._held, self._is_there = after, None, True
            self._tell(CheckpointWritten(self.path, after))
        except (StoreError, RunError) as refusal:
            if not self._has_warned:
                self._warn(f"no checkpoint was written: {refusal}")
            self._has_warned = True
        self._saved_at = self._clock()
        self._save_seconds = self._saved_at - begin
        return self._held is None

    def _require_same(self, about: Mapping[str, Any]) -> None:
        """Refuse a state of another training, in words."""
        theirs, ours = about.get("identity"), self._identity
        if not isinstance(theirs, dict) or "after" not in about or "time" not in about:
            raise _Unsuitable("something else")
        if theirs.get("version") != ours["version"]:
            raise _Unsuitable(f"gramline {theirs.get('version')}, and this is {ours['version']}")
        if changes := _changes(theirs.get("learner"), ours["learner"]):
            raise _Unsuitable(changes)
        if theirs.get("matrix") != ours["matrix"]:
            raise _Unsuitable("another Gram matrix: another corpus or kernel, or other blocks")
        if theirs.get("labels") != ours.get("labels"):
            raise _Unsuitable("other labels")
        if theirs != ours:
            raise _Unsuitable("other settings or folds")


def _changes(theirs: Any, ours: Mapping[str, Any]) -> str:
    """How learners differ, as "an x with other parameters (rounds is 10 instead of 20)"; nothing where they do not."""
    if not isinstance(theirs, dict) or theirs.get("name") != ours["name"]:
        return "another learner"
    changes = [key for key in {**ours, **theirs} if theirs.get(key) != ours.get(key)]
    listed = ", ".join(f"{key} is {theirs.get(key)} instead of {ours.get(key)}" for key in changes)
    return f"{ours['name']} with other parameters ({listed})" if changes else ""
