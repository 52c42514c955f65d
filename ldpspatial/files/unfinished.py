"""Folders in which a command works until its result is whole, and what killed commands left.

The process that makes such a folder holds a lock on it (:mod:`.folder_lock`), which ends with the
process. So the next command in the same place knows which ones nobody works in any more, and
removes them. Other machines may not see such a lock on a file system that they share, so the
folder's name says on which machine, since which start of it, it was made, and those of others are
left alone. Where a folder cannot be locked (Windows, most network file systems), none is removed.
"""

import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ldpspatial.files.folder_lock import locked

UNFINISHED = re.compile(r"\.ldpspatial-([0-9a-f]{8})-[0-9a-f]{16}\.part")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # one for all containers of a machine, as locks


@contextmanager
def unfinished_folder(place: Path) -> Iterator[Path]:
    """Yield a new hidden folder in ``place``, which is removed in the end unless it was renamed.

    Raises
    ------
    OSError
        It cannot be made there.
    """
    remove_left(place)
    while True:
        folder = place / f".ldpspatial-{_machine()}-{secrets.token_hex(8)}.part"
        folder.mkdir()
        lock = _locked(folder, wait=True)
        if folder.exists() if lock is None else _is(lock, folder):
            break
        if lock is not None:  # another command has taken it for left, before it was locked
            os.close(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def remove_left(place: Path) -> None:
    """Remove what killed commands left in a folder, as far as that can be told and done."""
    with suppress(OSError):
        for name in os.listdir(place):
            made = UNFINISHED.fullmatch(name)
            if made is None or made[1] != _machine():
                continue
            lock = _locked(place / name, wait=False)
            if lock is not None:
                shutil.rmtree(place / name, ignore_errors=True)
                os.close(lock)


def _machine() -> str:
    """Return what tells this machine, since it was started, from others."""
    try:
        known = BOOT_ID.read_bytes()
    except OSError:  # not Linux
        known = platform.node().encode()
    return hashlib.sha256(known).hexdigest()[:8]


def _locked(folder: Path, wait: bool) -> int | None:
    """Return a descriptor that locks a folder, or None where somebody has it or nobody can."""
    with suppress(BlockingIOError):
        return locked(folder, wait)
    return None


def _is(descriptor: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False
