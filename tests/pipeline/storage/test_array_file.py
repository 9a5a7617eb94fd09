"""Arrays in one file: what comes back is what was written, with its layout; a changed byte is never used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramline.pipeline.errors import StoreDamagedError, StoreError
from gramline.pipeline.storage import array_file
from gramline.pipeline.storage.array_file import (
    read_array_file,
    remove_array_file,
    sweep_partial_files,
    write_array_file,
)

CUBE = np.arange(24.0).reshape(2, 3, 4)
ARRAYS: dict[str, Any] = {
    "matrix": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "turned": CUBE.transpose(1, 2, 0),
    "part": CUBE[:, ::2, 1:],
    "number": np.array(7),
    "truth": np.array(True),
    "nothing": np.empty((0, 3), np.float32),
    "counts": np.arange(5, dtype=np.int32),
}


def nothing(_about: dict[str, Any]) -> None:
    pass


def test_arrays_come_back_with_their_layout(tmp_path: Path) -> None:
    url = str(tmp_path / "new folder" / "x.checkpoint")
    write_array_file(url, {"after": "round 1"}, ARRAYS)
    found = read_array_file(url, nothing)
    assert found is not None
    about, arrays = found
    assert about == {"after": "round 1"}
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        again = arrays[name]
        assert (again.dtype, again.shape) == (array.dtype, array.shape)
        assert again.tobytes() == array.tobytes()
        assert again.flags.writeable
        assert again.flags.aligned
        assert not array.size or np.argsort(again.strides).tolist() == np.argsort(array.strides).tolist()
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["x.checkpoint"]


def test_there_is_none(tmp_path: Path) -> None:
    assert read_array_file(str(tmp_path / "x"), nothing) is None
    remove_array_file(str(tmp_path / "x"))


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_array_file(str(path), {"after": "round 1"}, {"a": np.arange(4.0), "b": np.arange(3)})
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        with pytest.raises(StoreDamagedError) as caught:
            read_array_file(str(path), nothing)
        assert caught.value.url == str(path)


def test_every_truncated_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_array_file(str(path), {"after": "round 1"}, {"a": np.arange(4.0)})
    content = path.read_bytes()
    for text in (*(content[:end] for end in range(len(content))), content + b"\0"):
        path.write_bytes(text)
        with pytest.raises(StoreDamagedError):
            read_array_file(str(path), nothing)


def test_objects_are_never_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_array_file(str(path), {}, {"a": np.array(["text"])})
    with pytest.raises(StoreDamagedError):
        read_array_file(str(path), nothing)


def test_who_checks_sees_no_array(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_array_file(str(path), {"of": "another"}, {"a": np.arange(4.0)})
    path.write_bytes(path.read_bytes()[:-8])

    def refuse(about: dict[str, Any]) -> None:
        raise KeyError(about["of"])

    with pytest.raises(KeyError, match="another"):
        read_array_file(str(path), refuse)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(tmp_path / "x")
    write_array_file(url, {"number": 1}, {})

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(array_file.os, "fsync", full)
    with pytest.raises(StoreError, match="no space left"):
        write_array_file(url, {"number": 2}, {})
    monkeypatch.undo()
    found = read_array_file(url, nothing)
    assert found is not None
    assert found[0] == {"number": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_what_dead_writers_left_is_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    host = array_file._host()
    dead, own = (tmp_path / f".x.{host}.{process}.partial" for process in (gone.pid, os.getpid()))
    old, young = tmp_path / ".x.elsewhere.1.partial", tmp_path / ".x.elsewhere.2.partial"
    other = tmp_path / f".y.{host}.{gone.pid}.partial"
    for path in (dead, own, old, young, other):
        path.touch()
    os.utime(old, (0, 0))
    assert sweep_partial_files(str(tmp_path / "x")) == 2
    assert sorted(tmp_path.iterdir()) == sorted([own, young, other])


def test_in_an_object_store_it_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore")
    bucket = obstore.store.MemoryStore()
    monkeypatch.setattr("obstore.store.from_url", lambda _url, **_: bucket)
    url = "s3://bucket/models/x.checkpoint"
    assert read_array_file(url, nothing) is None
    for number in (1, 2):
        write_array_file(url, {"number": number}, ARRAYS)
    found = read_array_file(url, nothing)
    assert found is not None
    assert found[0] == {"number": 2}
    assert all(found[1][name].tobytes() == array.tobytes() for name, array in ARRAYS.items())
    assert [item["path"] for page in obstore.list(bucket) for item in page] == ["x.checkpoint"]
    remove_array_file(url)
    assert read_array_file(url, nothing) is None
