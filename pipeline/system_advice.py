"""What to do about what the operating system refuses: one table, for stores and for the command line."""

from __future__ import annotations

import errno

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
