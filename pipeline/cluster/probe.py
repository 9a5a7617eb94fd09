"""What a worker says of itself and tries out on its store; called by name on every process of a cluster.

Only plain values go back: an error comes back as its sentence, so that one bad worker hides no other.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import time
import uuid
from importlib import import_module
from pathlib import Path
from typing import Any

from gramline.pipeline.storage.groups import read_group
from gramline.pipeline.storage.places import refusal_number
from gramline.pipeline.storage.writer import remove_group, write_group

EVERYTHING = "gramline.pipeline.gram.task"  # what a tile needs: kernels, numba, zarr
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def describe() -> dict[str, Any]:
    """Machine, memory and the sources of gramline as this process has them."""
    import_module(EVERYTHING)
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "machine": socket.gethostname(),
        "sources": source_fingerprint(),
        "machine_bytes": physical,
        "available_bytes": min(physical, _cgroup_bytes(CGROUP_LIMIT)),
    }


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
