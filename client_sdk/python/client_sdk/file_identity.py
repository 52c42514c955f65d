"""What tells a file from a copy of it."""

import io
import os
import sys
from pathlib import Path
from typing import NamedTuple

if sys.platform == "linux":
    import fcntl

# _IOR('v', 1, long) of linux/fs.h. Where it is another number, it is one that nothing answers.
_GET_VERSION = 0x80087601 if sys.maxsize > 2**32 else 0x80047601


class Mark(NamedTuple):
    """Inode and generation of a file: they stay when it is written or renamed."""

    inode: int
    generation: int


def mark_of(path: Path) -> Mark:
    """Return the mark of a file.

    An inode alone is not enough: ext4 and XFS give that of a deleted file to the next one. They
    then increment its generation, which Linux reports. It is 0 where there is none: on
    other systems, whose inodes are not reused, and on layers in between (overlayfs).
    """
    with io.FileIO(path, "r") as file:
        return Mark(os.fstat(file.fileno()).st_ino, _generation(file.fileno()))


def _generation(descriptor: int) -> int:
    if sys.platform != "linux":
        return 0
    try:
        told = fcntl.ioctl(descriptor, _GET_VERSION, bytes(8))
    except OSError:
        return 0
    return int.from_bytes(told[:4], sys.byteorder)
