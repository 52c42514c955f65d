"""A lock that no other code of the process can drop.

POSIX record locks (fcntl), and so SQLite's own, belong to the process: they fall as soon as any
code in it closes any descriptor of the locked file, be it a backup agent, a hash or telemetry.
A lock by flock belongs to the open file that took it. It is held on a file of its own, beside
what it protects, and every holder opens that file anew, so threads exclude each other as
processes do. On Windows a locked range belongs to the handle, which comes to the same.

Some network file systems take a lock and do not keep it, or imitate it by record locks. So the
lock is put to the test each time that it is taken: a second opening of the file must find it
held, and a third one too, after the second was closed.
"""

import errno
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from client_sdk import forks
from client_sdk.forks import Opened
from client_sdk.uninterrupted import is_abandoned

LOCK_SECONDS = 20.0  # waiting is not in turn, so somebody may wait for many others
POLL_SECONDS = 0.001  # short, or a process that spends all the time would starve the others


class Identity(NamedTuple):
    """What tells a file from a copy of it: a copy has another inode or another time of change."""

    device: int
    inode: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        """Return the identity in the result of a stat call."""
        return cls(status.st_dev, status.st_ino, status.st_ctime_ns)


class HeldLock:
    """A lock that is held; :meth:`check` tells whether it still is."""

    def __init__(self, path: Path, opened: Opened):
        self._path = path
        self._opened = opened
        self.identity = Identity.of(os.fstat(opened.descriptor))

    def check(self) -> None:
        """Raise OSError unless this process still holds the lock, on the file that is there."""
        self.check_process()
        if Identity.of(os.stat(self._path)) != self.identity:
            raise OSError(errno.ESTALE, "the lock file was replaced")
        if sys.platform == "emscripten":  # keeps no lock; Device.install asks for the app's word
            return
        for _ in range(2):  # the second time, the first opening has been closed
            other = os.open(self._path, forks.READ_AND_WRITE)
            try:
                if _take(other):
                    _release(other)
                    raise OSError(errno.ENOLCK, "the file system does not keep a lock")
            finally:
                os.close(other)

    def release(self) -> None:
        """Give the lock back, unless other code has closed it or it is the parent process's."""
        if self._opened.is_ours():
            _release(self._opened.descriptor)

    def check_process(self) -> None:
        """Raise OSError unless this process, and no parent of it, still has the file open."""
        if not self._opened.is_ours():
            raise OSError(errno.ENOLCK, "the lock was dropped by a fork or by a foreign close")
        if Identity.of(os.fstat(self._opened.descriptor)) != self.identity:
            raise OSError(errno.ESTALE, "the lock file was changed")


@contextmanager
def locked(path: Path) -> Iterator[HeldLock]:
    """Hold the lock on a file that exists.

    Raises
    ------
    FileNotFoundError
        There is no such file: it is never made here.
    TimeoutError
        Others held the lock for twenty seconds.
    OSError
        The lock cannot be taken, or the file system does not keep it.
    """
    with forks.held_off(), Opened(path) as opened:
        _wait_for(lambda: _take(opened.descriptor), LOCK_SECONDS)
        held = HeldLock(path, opened)
        try:
            held.check()
            yield held
        finally:
            held.release()


def _wait_for(attempt: Callable[[], bool], seconds: float) -> None:
    """Try until an attempt succeeds; TimeoutError after some seconds, or when nobody waits."""
    began = time.monotonic()
    while not attempt():
        if is_abandoned() or time.monotonic() - began > seconds:
            raise TimeoutError(errno.ETIMEDOUT, "locked")
        times = forks.allow()
        time.sleep(POLL_SECONDS)
        forks.forbid(times)


def synchronise_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where folders can be opened."""
    if sys.platform in ("win32", "emscripten"):
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        synchronise(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def holding_off_sqlite(path: Path, seconds: float) -> Iterator[bool]:
    """Keep other users of an SQLite file out, by the bytes that SQLite itself would lock.

    SQLite's own lock falls like any record lock. A process that merely reads the file with SQLite
    would then take our journal for that of a dead process, and roll back what is being written.
    Locks of an open file description (Linux) are seen by such a process and do not fall.

    Yields
    ------
    bool
        Whether there are such locks. If so, SQLite's own have to be off (``nolock=1``).
    """
    if _OFD_SETLK is None:
        yield False
        return
    with Opened(path) as opened:

        def change(kind: int) -> None:
            # Type, whence, start, length and process, as C lays them out on 64-bit machines.
            wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, *_SQLITE_BYTES, 0)
            fcntl.fcntl(opened.descriptor, _OFD_SETLK, wanted)

        def take() -> bool:
            try:
                change(fcntl.F_WRLCK)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                return False
            return True

        _wait_for(take, seconds)
        try:
            yield True
        finally:
            if opened.is_ours():
                change(fcntl.F_UNLCK)


def make(path: Path) -> None:
    """Make the file to lock, where none is, durably.

    It stays empty, and nothing touches it once it has its name: another process may lock it
    at that very moment, and a write would change the identity that this process has seen. (On
    Windows, too, a range may be locked beyond the end of a file.)
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        synchronise(descriptor)
    finally:
        os.close(descriptor)


def synchronise(descriptor: int) -> None:
    """Wait until what was written to a file is on the disk."""
    os.fsync(descriptor)
    if _FULLFSYNC is not None:  # Apple's fsync stops at the drive's cache
        fcntl.fcntl(descriptor, _FULLFSYNC)


# First and number of the bytes of SQLite's shared locks, without which nobody reads or rolls back.
# Not the reserved byte before them: SQLite itself, asked for the journal of a process that died,
# would take our lock on it for that of a process which lives.
_SQLITE_BYTES = (0x40000002, 510)

if sys.platform == "win32":
    import msvcrt

    _OFD_SETLK = None
    _FULLFSYNC = None

    def _take(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
        return True

    def _release(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    _FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)
    _OFD_SETLK = None
    if sys.platform == "linux" and sys.maxsize > 2**32:
        _OFD_SETLK = getattr(fcntl, "F_OFD_SETLK", None)

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(descriptor: int) -> None:
        # Unlocked explicitly, not merely closed: a process forked in between shares the open file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
