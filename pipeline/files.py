"""This machine: files written whole or not at all, what to do when the system refuses, how many cores it has."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

from gramline.pipeline.errors import InputError

LONGEST = 200  # letters of a path that is shown where it is too long
# What the user chose, a full disk or a path out of reach; whatever is not in the table is a failure, not their input.
ADVICE = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT),
        "free some space and run it again, or choose another path; finished work is kept",
    ),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "check the permissions, or choose another path"),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "a part of the path is a file, choose another path"),
    errno.EROFS: "choose another path",
    errno.ENOENT: "check the path",
    errno.EISDIR: "give the path of a file",
    errno.EFBIG: "allow larger files, or use smaller blocks",
}


def available_cores() -> int:
    """Cores that this process may use; where the system does not say (macOS, Windows), all there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def write_then_rename(target: Path, *, synced: bool = False) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it once the block has ended well, and is removed otherwise.

    Who reads `target` meanwhile sees the old file or the new one, never half of one. When `synced`, the content is on
    the disk before the name is: a power cut leaves no empty file.
    """
    partial = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        yield partial
        if synced:
            with partial.open("rb") as written:
                os.fsync(written.fileno())
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(target: Path, text: str) -> None:
    """Replace the text of a file at once."""
    with write_then_rename(target) as partial:
        partial.write_text(text, "utf-8")


def system_reason(error: OSError) -> str:
    """Why the system refused, as a sentence goes on: "permission denied"."""
    return (error.strerror or str(error)).lower()


def path_text(path: str | os.PathLike[str]) -> str:
    """A path or url as text; what is none, and what no system can look for, is refused."""
    text = path if isinstance(path, str) else path.__fspath__() if isinstance(path, os.PathLike) else None
    if not isinstance(text, str):
        raise InputError(f"expected a path, got {type(path).__name__}", advice="give a string or a pathlib.Path")
    if not text:
        raise InputError("the path is empty", advice="give the path of a file or a folder")
    if "\0" in text:
        raise InputError(f"{text[:LONGEST]!r} is no path: it has a zero byte in it", advice="give another path")
    try:
        os.stat(text)  # noqa: PTH116 - a url is no Path
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"the path {text[:LONGEST]}... is too long", advice="give another path") from None
    return text


def _mode(path: str | Path) -> int:
    """What the system says is there, 0 for nothing; a path that it cannot look for, one too long, say, is refused."""
    try:
        return Path(path).stat().st_mode
    except ValueError:  # no system has a name with a zero byte in it
        return 0
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return 0
        why = system_reason(error)
        raise InputError(f"{str(path)[:LONGEST]} cannot be looked for: {why}", advice="give another path") from None


def require_file(path: str, what: str) -> None:
    """Refuse a path where no file is; `what` names the file that is wanted."""
    if stat.S_ISDIR(require_path(path, what)):
        raise InputError(f"{path} is not {what} but a folder", advice="give the path of a file")


def require_path(path: str, what: str) -> int:
    """The mode of what is there; `what` names what is wanted where nothing is. Other places are asked when opened."""
    if "://" in path:
        return 0
    mode = _mode(path)
    if not mode:
        raise InputError(f"{path} does not exist", advice=f"give the path of {what}")
    return mode


def require_no_folder(path: str) -> None:
    """Refuse a path that cannot be a file."""
    _require_local(path)
    if stat.S_ISDIR(_mode(path)):
        raise InputError(f"{path} is a folder", advice="give the path of a file")


def require_new_file(path: str) -> None:
    """Refuse a path that no file can be written to, before the work that would fill it."""
    require_no_folder(path)
    above = Path(path).parent
    if not stat.S_ISDIR(_mode(above)):
        raise InputError(f"{path} cannot be written: there is no folder {above}", advice="make it, or write elsewhere")
    _try_to_write(path, above)


def require_folder_or_nothing(path: str) -> int:
    """Refuse a path that cannot be a folder; the mode of the folder that is there, 0 for nothing."""
    _require_local(path)
    mode = _mode(path)
    if mode and not stat.S_ISDIR(mode):
        raise InputError(f"{path} is a file", advice="give the path of a folder")
    return mode


def require_writable_folder(path: str) -> None:
    """Refuse a path that cannot be a folder to write to, before the work that would fill it."""
    mode, above = require_folder_or_nothing(path), Path(path).absolute()
    while not mode and above != above.parent:
        above = above.parent
        mode = _mode(above)
    if not stat.S_ISDIR(mode):
        raise InputError(f"{path} cannot be a folder: {above} is a file", advice="choose another path")
    _try_to_write(path, above)


def _try_to_write(path: str, folder: Path) -> None:
    """A file without a name in `folder`: what a system says of permissions is not all that it thinks of them."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = ADVICE.get(error.errno or 0, "choose another path")
        raise InputError(f"{path} cannot be written: {system_reason(error)}", advice=advice) from None


def _require_local(path: str) -> None:
    if "://" in path:
        raise InputError(f"{path} is a url, but this is kept on this machine", advice="give a path without ://")
