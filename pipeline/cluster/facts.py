"""What a running cluster says about itself, as plain values; judging them is somebody else's work.

The second half is called by name on every process of the cluster. Only plain values go back: an error comes back as its
sentence, so that one bad worker hides no other.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import shutil
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from gramline.pipeline.executors.worker_settings import ALLOCATOR
from gramline.pipeline.files import system_reason
from gramline.pipeline.storage.groups import read_group
from gramline.pipeline.storage.places import refusal_number
from gramline.pipeline.storage.writer import remove_group, write_group

PACKAGES = ("gramline", "dask", "distributed", "numpy", "numba", "zarr")
HERE, SCHEDULER = "this process", "the scheduler"
CLOCK_ROUNDS = 3
EVERYTHING = "gramline.pipeline.gram.task"  # what a tile needs: kernels, numba, zarr
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")
START_ENVIRONMENT = Path("/proc/self/environ")  # as it was when the process began; later changes are not in it


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
    kept_bytes: int | None = None  # freed memory that it does not give back; None: its system has no such setting


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


def describe() -> dict[str, Any]:
    """Machine, memory and the sources of gramline as this process has them."""
    import_module(EVERYTHING)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "machine": socket.gethostname(),
        "sources": source_fingerprint(),
        "machine_bytes": physical,
        "available_bytes": min(physical, _cgroup_bytes(CGROUP_LIMIT)),
        "kept_bytes": _kept_bytes(START_ENVIRONMENT),
    }


def _kept_bytes(start: Path) -> int | None:
    """The lesser of the thresholds that glibc read as this process began, 0 where one was not set."""
    if platform.libc_ver()[0] != "glibc" or not start.is_file():
        return None
    settings = dict(entry.partition("=")[::2] for entry in start.read_text("utf-8", "replace").split("\0"))
    values = [settings.get(name, "0") for name in ALLOCATOR]
    return min(int(value) if value.isascii() and value.isdigit() else 0 for value in values)


def source_fingerprint() -> str:
    """A digest of every module of gramline: equal versions of a program under work may still differ."""
    state = hashlib.blake2b(digest_size=6)
    for package in ("kernels", "learners", "pipeline"):
        folder = Path(str(import_module(f"gramline.{package}").__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            state.update(f"{package}/{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return state.hexdigest()


def _cgroup_bytes(limit: Path) -> int:
    try:
        return int(limit.read_text("ascii"))
    except (OSError, ValueError):  # no such file, or the word "max"
        return 1 << 62


def write_note(place: str, text: str) -> dict[str, Any]:
    """Leave a note of this process in a folder or object store; {"name": ...} or what `_refusal` says."""
    name = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
    try:
        if _is_remote(place):
            write_group(f"{place}/{name}", {"text": text}, {})
        else:
            with (Path(place) / name).open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
    except Exception as error:  # noqa: BLE001 - whatever the storage says is the finding
        return _refusal(error)
    return {"name": name}


def read_notes(place: str, names: list[str], text: str, patience: float = 5.0) -> dict[str, str]:
    """The notes that cannot be read or say something else, with the reason; shared folders may lag a little."""
    deadline = time.monotonic() + patience
    missing = dict.fromkeys(names, "")
    while True:
        for name in list(missing):
            try:
                content = _read(place, name)
            except Exception as error:  # noqa: BLE001 - whatever the storage says is the finding
                missing[name] = _sentence(error)
            else:
                if content == text:
                    del missing[name]
                else:
                    missing[name] = "it holds something else"
        if not missing or time.monotonic() > deadline:
            return missing
        time.sleep(0.2)


def _read(place: str, name: str) -> str:
    if _is_remote(place):
        return str(read_group(f"{place}/{name}")[0]["text"])
    return (Path(place) / name).read_text("utf-8")


def remove_note(place: str, name: str) -> dict[str, Any]:
    """Delete a note; why not, as `_refusal` says it, or nothing."""
    try:
        if _is_remote(place):
            remove_group(f"{place}/{name}")
        else:
            (Path(place) / name).unlink()
    except Exception as error:  # noqa: BLE001 - whatever the storage says is the finding
        return _refusal(error)
    return {}


def new_place(store: str, token: str) -> str:
    """A fresh folder (or prefix) for notes: in the folder `store`, or beside it when it is a store or not there yet."""
    if _is_remote(store):
        return f"{store.rstrip('/')}.gramline-check-{token}"
    path = Path(store).absolute()
    if not path.is_dir() or (path / "zarr.json").exists():
        path = path.parent
    place = path / f".gramline-check-{token}"
    place.mkdir()
    return str(place)


def remove_place(place: str) -> None:
    """Remove what is left of the notes."""
    if not _is_remote(place):
        shutil.rmtree(place, ignore_errors=True)


def _is_remote(place: str) -> bool:
    return "://" in place


def _refusal(error: Exception) -> dict[str, Any]:
    return {"error": _sentence(error), "number": refusal_number(error)}


def _sentence(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join((text or type(error).__name__).split())
