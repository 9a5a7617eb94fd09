"""Named arrays and a little JSON in one file, which appears at once or not at all; every byte of it is checked.

Two lines and the bytes of the arrays. The first line has the name of the format, its version and the crc32c of the
second; the second is JSON with what the file is about and dtype, shape, order of axes and crc32c of every array. The
order of axes in memory is kept, because sums depend on it. In an object store the file is one object.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
from numpy.typing import NDArray

from gramline.pipeline.errors import StoreDamagedError
from gramline.pipeline.storage.groups import NUMBERS
from gramline.pipeline.storage.object_store import delete, get, open_bucket, put
from gramline.pipeline.storage.places import METADATA_BYTES, is_local, local_path, storage_errors

FORMAT = "gramline-arrays 1"
STRAY_SECONDS = 3600.0  # a temporary file of another machine this old belongs to nobody any more
# What a header that is no header of ours raises when it is read.
MALFORMED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def write_array_file(
    url: str, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, is_synced: bool = True
) -> None:
    """Replace the file at once; on a local disk it is on the disk before it has its name, where that is asked for."""
    described, bodies = [], []
    for name, array in arrays.items():
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        body = np.ascontiguousarray(array.transpose(axes)).reshape(-1).view(np.uint8)
        body.flags.writeable = False
        described.append([name, array.dtype.str, list(array.shape), axes, google_crc32c.value(body)])
        bodies.append(body.data)
    header = json.dumps({"about": about, "arrays": described}).encode()
    parts: list[Any] = [f"{FORMAT} {google_crc32c.value(header)}\n".encode(), header, b"\n", *bodies]
    with storage_errors(url):
        if is_local(url):
            _write_whole(local_path(url), parts, is_synced=is_synced)
        else:
            folder, _, key = url.rpartition("/")
            put(open_bucket(folder), key, b"".join(parts))


def read_array_file(
    url: str, check: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
    """What the file is about and its arrays; None where there is no file. Anything else is a StoreDamagedError.

    `check` sees what it is about before any array is read, and may refuse it.
    """
    with storage_errors(url):
        file = _opened(url)
        if file is None:
            return None
        with file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            about, described = _header(url, file)
            check(about)
            wanted = sum(dtype.itemsize * math.prod(shape) for _, dtype, shape, _, _ in described)
            if (n_bytes := size - file.tell()) != wanted:
                raise StoreDamagedError(f"it has {n_bytes:,} bytes of arrays instead of {wanted:,}", url)
            return about, {entry[0]: _array(url, file, *entry) for entry in described}


def array_file_exists(url: str) -> bool:
    with storage_errors(url):
        file = _opened(url)
        if file is not None:
            file.close()
        return file is not None


Described = tuple[str, "np.dtype[Any]", list[int], list[int], int]


def _header(url: str, file: io.BufferedIOBase) -> tuple[dict[str, Any], list[Described]]:
    name, _, checksum = file.readline(len(FORMAT) + 16).decode("latin-1").rstrip("\n").rpartition(" ")
    if name != FORMAT:
        raise StoreDamagedError("it does not begin as such a file does", url)
    line = file.readline(METADATA_BYTES).removesuffix(b"\n")
    if str(google_crc32c.value(line)) != checksum:
        raise StoreDamagedError("its header is not what was written", url)
    try:
        header = json.loads(line)
        described: list[Described] = []
        for array, dtype, shape, axes, crc in header["arrays"]:
            described.append((str(array), np.dtype(dtype), list(map(int, shape)), list(map(int, axes)), int(crc)))
            if (
                described[-1][1].kind not in NUMBERS
                or sorted(axes) != list(range(len(shape)))
                or min(shape, default=0) < 0
            ):
                raise ValueError(array)
        return dict(header["about"]), described
    except MALFORMED as error:
        raise StoreDamagedError(f"its header cannot be read ({type(error).__name__})", url) from None


def _array(
    url: str, file: io.BufferedIOBase, name: str, dtype: np.dtype[Any], shape: list[int], axes: list[int], crc: int
) -> NDArray[Any]:
    """The next array of the file, in memory of its own."""
    flat = np.empty(math.prod(shape), dtype)
    body = flat.view(np.uint8)
    n_read = 0
    while n_read < len(body):
        n_more = file.readinto(body.data[n_read:])
        if not n_more:
            raise StoreDamagedError(f"it ends inside of array {name!r}", url)
        n_read += n_more
    body.flags.writeable = False
    if google_crc32c.value(body) != crc:
        raise StoreDamagedError(f"array {name!r} is not what was written", url)
    return flat.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes).tolist())


def remove_array_file(url: str) -> None:
    """Remove it if it is there, and what killed writers left beside it."""
    with storage_errors(url):
        if is_local(url):
            local_path(url).unlink(missing_ok=True)
            sweep_partial_files(url)
        else:
            folder, _, key = url.rpartition("/")
            delete(open_bucket(folder), [key])


def sweep_partial_files(url: str) -> int:
    """Remove what killed writers of this file left beside it; how many. Of living ones it stays."""
    if not is_local(url):
        return 0
    path, n_removed = local_path(url), 0
    pattern = re.compile(rf"\.{re.escape(path.name)}\.(.+)\.(\d+)\.partial")
    for stray in path.parent.iterdir() if path.parent.is_dir() else ():
        if (parts := pattern.fullmatch(stray.name)) is None:
            continue
        with suppress(OSError):  # its writer may have finished just now
            is_ours = parts[1] == _host()
            if not _is_alive(int(parts[2])) if is_ours else stray.stat().st_mtime < time.time() - STRAY_SECONDS:
                stray.unlink()
                n_removed += 1
    return n_removed


def _write_whole(path: Path, parts: Iterable[Any], *, is_synced: bool) -> None:
    """The temporary file has the name of this process, so that nobody takes it for one that was left behind."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{_host()}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _opened(url: str) -> io.BufferedIOBase | None:
    if is_local(url):
        try:
            return local_path(url).open("rb")
        except FileNotFoundError:
            return None
    folder, _, key = url.rpartition("/")
    content = get(open_bucket(folder), key)
    return None if content is None else io.BytesIO(content)


def _host() -> str:
    return re.sub(r"[^\w-]", "-", socket.gethostname())


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True
