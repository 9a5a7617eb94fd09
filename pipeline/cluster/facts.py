"""What a running cluster says about itself, as plain values; judging them is somebody else's work."""

from __future__ import annotations

import importlib.metadata
import platform
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gramline.pipeline.cluster.probe import describe, new_place, read_notes, remove_note, remove_place, write_note
from gramline.pipeline.files import system_reason

PACKAGES = ("gramline", "dask", "distributed", "numpy", "numba", "zarr")
HERE, SCHEDULER = "this process", "the scheduler"
CLOCK_ROUNDS = 3


@dataclass(frozen=True)
class Member:
    """One process: this one, the scheduler, or a worker. None is what it does not know."""

    label: str
    versions: dict[str, str | None]
    clock: tuple[float, float] = (0.0, 0.0)  # seconds ahead of this process, give or take
    machine: str | None = None
    sources: str | None = None
    problem: str = ""  # why gramline cannot be imported there
    machine_bytes: int = 0
    available_bytes: int = 0
    threads: int = 0
    limit_bytes: int = 0


@dataclass(frozen=True)
class NoteFailure:
    """What a process could not do with the notes: in words, with the system's number where it has one."""

    text: str
    number: int = 0
    has_gramline: bool = True  # False: it could not even try


@dataclass(frozen=True)
class Notes:
    """What became of the notes in the store: who could not write, read or delete, by label."""

    place: str
    failures: dict[str, NoteFailure] = field(default_factory=dict)


@dataclass(frozen=True)
class Facts:
    """The client's process first, then the scheduler, then the workers."""

    address: str
    members: tuple[Member, ...]
    notes: Notes | None = None

    @property
    def workers(self) -> tuple[Member, ...]:
        return self.members[2:]


Everywhere = dict[str, Any]  # label -> value, or the exception it got


def gather_facts(client: Any, store: str | None = None) -> Facts:
    """Ask every process of the cluster. `client` is a Dask client."""
    details = {_label(address): worker for address, worker in _workers(client).items()}
    versions: dict[str, dict[str, str | None]] = {}
    # Functions of the standard library travel by name: they answer also where gramline is missing.
    questions: dict[str, tuple[Any, ...]] = {"python": (platform.python_version,)}
    questions |= {package: (importlib.metadata.version, package) for package in PACKAGES}
    for name, question in questions.items():
        for label, value in _everywhere(client, *question).items():
            versions.setdefault(label, {})[name] = value if isinstance(value, str) else None
    clocks = _clocks(client)
    described = _everywhere(client, describe)
    members = []
    for label in [HERE, SCHEDULER, *sorted(set(versions) - {HERE, SCHEDULER})]:
        answer = described.get(label)
        known = answer if isinstance(answer, dict) else {"problem": _reason(answer)}
        if label in details:
            known["threads"] = int(details[label]["nthreads"])
            known["limit_bytes"] = int(details[label]["memory_limit"] or 0)
        members.append(Member(label, versions[label], clocks.get(label, (0.0, 0.0)), **known))
    notes = None if store is None else _exchange_notes(client, store)
    return Facts(str(client.scheduler_info()["address"]), tuple(members), notes)


def _label(address: str) -> str:
    return f"worker {address}"


def _workers(client: Any) -> dict[str, Any]:
    workers: dict[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def _everywhere(client: Any, function: Callable[..., Any], *arguments: Any) -> Everywhere:
    """The value of a function, sent by name, in this process, on the scheduler and on all workers."""
    answers: Everywhere = {}
    ways: dict[str, Callable[..., Any]] = {HERE: function, SCHEDULER: partial(client.run_on_scheduler, function)}
    for label, call in ways.items():
        try:
            answers[label] = call(*arguments)
        except Exception as error:  # noqa: BLE001 - that it failed there is the fact
            answers[label] = error
    return answers | _on_workers(client, function, *arguments)


def _on_workers(client: Any, function: Callable[..., Any], *arguments: Any) -> Everywhere:
    answers = client.run(function, *arguments, on_error="return")
    return {_label(address): value for address, value in answers.items()}


def _clocks(client: Any) -> dict[str, tuple[float, float]]:
    """Of a few rounds the quickest; the answer was given some time between question and reply."""
    best: dict[str, tuple[float, float]] = {}
    ways: tuple[Callable[[], Everywhere], ...] = (
        lambda: {SCHEDULER: client.run_on_scheduler(time.time)},
        lambda: _on_workers(client, time.time),
    )
    for ask in ways * CLOCK_ROUNDS:
        asked = time.time()
        answers = ask()
        half = (time.time() - asked) / 2
        for label, value in answers.items():
            if isinstance(value, float) and (label not in best or half < best[label][1]):
                best[label] = (value - asked - half, half)
    return best


def _reason(error: Any) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _exchange_notes(client: Any, store: str) -> Notes:
    """Every process that touches a store leaves a note there, reads everybody's, and deletes its own."""
    token = uuid.uuid4().hex
    try:
        place = new_place(store, token)
    except OSError as error:
        why = system_reason(error)
        return Notes(store, {HERE: NoteFailure(f"cannot write there: {why}", error.errno or 0)})
    failures: dict[str, NoteFailure] = {}
    try:
        written = {HERE: write_note(place, token), **_on_workers(client, write_note, place, token)}
        names = {}
        for label, answer in written.items():
            if not isinstance(answer, dict):
                failures[label] = NoteFailure("cannot try", has_gramline=False)
            elif "name" in answer:
                names[label] = answer["name"]
            else:
                failures[label] = NoteFailure(f"cannot write there: {answer['error'].lower()}", answer["number"])
        wanted = list(names.values())
        seen = {HERE: read_notes(place, wanted, token), **_on_workers(client, read_notes, place, wanted, token)}
        for label, missing in seen.items():
            if label not in failures and missing:
                count = len(missing) if isinstance(missing, dict) else len(wanted)
                failures[label] = NoteFailure(f"does not see {count} of {len(wanted)} notes that others wrote")
        for label, failure in _delete(client, place, names).items():
            failures.setdefault(label, failure)
    finally:
        remove_place(place)
    return Notes(store, failures)


def _delete(client: Any, place: str, names: dict[str, str]) -> dict[str, NoteFailure]:
    failures = {}
    for label, name in names.items():
        if label == HERE:
            answer = remove_note(place, name)
        else:
            address = label.removeprefix("worker ")
            answer = client.run(remove_note, place, name, workers=[address], on_error="return").get(address, {})
        if answer:
            why = answer if isinstance(answer, dict) else {"error": _reason(answer), "number": 0}
            failures[label] = NoteFailure(f"cannot delete there: {why['error'].lower()}", why["number"])
    return failures
