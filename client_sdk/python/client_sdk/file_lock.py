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
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LOCK_SECONDS = 5.0
POLL_SECONDS = 0.001  # short, or a process that spends all the time would starve the others


class Identity(NamedTuple):
    """What tells a file from a copy of it: a copy has another inode or another time of change."""

    device: int
    inode: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> "Identity":
        """Return the identity that a status tells."""
        return cls(status.st_dev, status.st_ino, status.st_ctime_ns)


class HeldLock:
    """A lock that is held; :meth:`check` tells whether it still is."""

    def __init__(self, file: Path, descriptor: int):
        self._file = file
        self._descriptor = descriptor
        self._process = os.getpid()
        self.identity = Identity.of(os.fstat(descriptor))

    def check(self) -> None:
        """Raise OSError unless this process still holds the lock, on the file that is there."""
        if not self._is_own():
            raise OSError(errno.ENOLCK, "the lock was dropped by a fork or by a foreign close")
        if Identity.of(os.stat(self._file)) != self.identity:
            raise OSError(errno.ESTALE, "the lock file was replaced")
        if sys.platform == "emscripten":  # keeps no lock; Device.install asks for the app's word
            return
        for _ in range(2):  # the second time, the first opening has been closed
            other = _open(self._file)
            try:
                if _take(other):
                    _release(other)
                    raise OSError(errno.ENOLCK, "the file system does not keep a lock")
            finally:
                os.close(other)

    def release(self) -> None:
        """Give the lock back, unless other code has closed it or it is the parent process's."""
        if self._is_own():
            _release(self._descriptor)
            os.close(self._descriptor)

    def _is_own(self) -> bool:
        """Tell whether the number still stands for the file that this process opened."""
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return False
        return os.getpid() == self._process and Identity.of(status) == self.identity


@contextmanager
def locked(file: Path) -> Iterator[HeldLock]:
    """Hold the lock on a file that exists.

    Raises
    ------
    FileNotFoundError
        There is no such file: it is never made here.
    TimeoutError
        Another thread or process held the lock for five seconds.
    OSError
        The lock cannot be taken, or the file system does not keep it.
    """
    held = _wait_for(file)
    try:
        held.check()
        yield held
    finally:
        held.release()


def _wait_for(file: Path) -> HeldLock:
    deadline = time.monotonic() + LOCK_SECONDS
    descriptor = _open(file)
    try:
        while not _take(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "locked")
            time.sleep(POLL_SECONDS)
        return HeldLock(file, descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def make(file: Path) -> Identity:
    """Make the file to lock, where none is, durably; return its identity."""
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | _PLAIN, 0o600)
    try:
        os.write(descriptor, b"\n")  # a range of bytes to lock, for Windows
        synchronise(descriptor)
        return Identity.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    return os.open(file, os.O_RDWR | _PLAIN)


if sys.platform == "win32":
    import msvcrt

    _PLAIN = os.O_BINARY | os.O_NOINHERIT

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

    def synchronise(descriptor: int) -> None:
        """Wait until what was written to a file is on the disk."""
        os.fsync(descriptor)

else:
    import fcntl

    _PLAIN = os.O_CLOEXEC | os.O_NONBLOCK  # a named pipe must not make the call wait

    def _take(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _release(descriptor: int) -> None:
        # Said, and not left to closing: a process forked in between shares the open file.
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def synchronise(descriptor: int) -> None:
        """Wait until what was written to a file is on the disk."""
        os.fsync(descriptor)
        if full := getattr(fcntl, "F_FULLFSYNC", None):  # Apple's fsync stops at the drive's cache
            fcntl.fcntl(descriptor, full)
