"""A lock on a folder, which ends with the process that holds it, however that ends (flock)."""

import os
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def locked(folder: Path, wait: bool) -> int | None:
    """Return a descriptor that locks a folder until it is closed.

    None where nobody can lock it: on Windows and most network file systems, or where it is gone.

    Raises
    ------
    BlockingIOError
        Somebody holds the lock, and ``wait`` is false.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BaseException as error:
        os.close(descriptor)
        if isinstance(error, OSError) and not isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor
