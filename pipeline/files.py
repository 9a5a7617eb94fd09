"""Files of this machine: asked for, written whole or not at all, locked, and what to do when the system refuses."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO
from uuid import uuid4

from gramline.pipeline.errors import InputError

LONGEST = 200  # letters of a path that is told because it is too long
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


def is_same_file(file: IO[str], path: Path) -> bool:
    """False when somebody removed or replaced the file after it was opened here; then its lock means nothing."""
    try:
        here = path.stat()
    except FileNotFoundError:
        return False
    opened = os.fstat(file.fileno())
    return (here.st_dev, here.st_ino) == (opened.st_dev, opened.st_ino)


def write_whole(target: Path, text: str) -> None:
    """Into a file of another name first: who looks at `target` sees the old page or the new one."""
    partial = target.with_name(f".{target.name}.{uuid4().hex}.partial")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _mode(path: str | Path) -> int:
    """What the system says is there, 0 for nothing; a path that it cannot look for, one too long, say, is refused."""
    try:
        return Path(path).stat().st_mode
    except ValueError:  # no system has a name with a zero byte in it
        return 0
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return 0
        why = (error.strerror or str(error)).lower()
        raise InputError(f"{str(path)[:LONGEST]} cannot be looked for: {why}; give another path") from None


def require_file(path: str, what: str) -> None:
    """Refuse a path where no file is; `what` names the file that is wanted."""
    if stat.S_ISDIR(require_path(path, what)):
        raise InputError(f"{path} is not {what} but a folder; give the path of a file")


def require_path(path: str, what: str) -> int:
    """The mode of what is there; `what` names what is wanted where nothing is. Other places are asked when opened."""
    if "://" in path:
        return 0
    mode = _mode(path)
    if not mode:
        raise InputError(f"{path} does not exist; give the path of {what}")
    return mode


def require_no_folder(path: str) -> None:
    """Refuse a path that cannot be a file."""
    _require_local(path)
    if stat.S_ISDIR(_mode(path)):
        raise InputError(f"{path} is a folder; give the path of a file")


def require_new_file(path: str) -> None:
    """Refuse a path that no file can be written to, before the work that would fill it."""
    require_no_folder(path)
    above = Path(path).parent
    if not stat.S_ISDIR(_mode(above)):
        raise InputError(f"{path} cannot be written: there is no folder {above}; make it, or write elsewhere")


def require_folder_or_nothing(path: str) -> None:
    """Refuse a path that cannot be a folder."""
    _require_local(path)
    mode = _mode(path)
    if mode and not stat.S_ISDIR(mode):
        raise InputError(f"{path} is a file; give the path of a folder")


def _require_local(path: str) -> None:
    if "://" in path:
        raise InputError(f"{path} is a url, but this is kept on this machine; give a path without ://")
