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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from client_sdk.uninterrupted import is_abandoned

LOCK_SECONDS = 20.0  # waiting is not in turn, so somebody may wait for many others
_READ_AND_WRITE = os.O_RDWR | getattr(os, "O_BINARY", 0)  # which Windows has
POLL_SECONDS = 0.001  # short, or a process that spends all the time would starve the others

# Descriptors of this process and the file that each stands for. A forked child must not keep them;
# and a number that other code has closed may be that of another file by now.
_held: dict[int, tuple[int, int]] = {}


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

    def __init__(self, path: Path, descriptor: int):
        self._path = path
        self._descriptor = descriptor
        self.identity = Identity.of(os.fstat(descriptor))

    def check(self) -> None:
        """Raise OSError unless this process still holds the lock, on the file that is there."""
        if not self._is_own():
            raise OSError(errno.ENOLCK, "the lock was dropped by a fork or by a foreign close")
        if Identity.of(os.stat(self._path)) != self.identity:
            raise OSError(errno.ESTALE, "the lock file was replaced")
        if sys.platform == "emscripten":  # keeps no lock; Device.install asks for the app's word
            return
        for _ in range(2):  # the second time, the first opening has been closed
            other = os.open(self._path, _READ_AND_WRITE)
            try:
                if _take(other):
                    _release(other)
                    raise OSError(errno.ENOLCK, "the file system does not keep a lock")
            finally:
                os.close(other)

    def release(self) -> None:
        """Give the lock back, unless other code has closed it or it is the parent process's."""
        if _is_ours(self._descriptor):
            _release(self._descriptor)

    def _is_own(self) -> bool:
        """Tell whether the number still stands for the file that this process opened."""
        if not _is_ours(self._descriptor):
            return False
        return Identity.of(os.fstat(self._descriptor)) == self.identity


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
    descriptor = _open(path)
    try:
        _wait_for(lambda: _take(descriptor), LOCK_SECONDS)
        with _gate.inside():
            held = HeldLock(path, descriptor)
            try:
                held.check()
                yield held
            finally:
                held.release()
    finally:
        _close(descriptor)


def _open(path: Path) -> int:
    """Open a file that a forked child closes: one that it shared would keep its locks alive."""
    with _gate.lock:  # no fork comes between its opening and its place among those held
        descriptor = os.open(path, _READ_AND_WRITE)
        status = os.fstat(descriptor)
        _held[descriptor] = status.st_dev, status.st_ino
    return descriptor


def _is_ours(descriptor: int) -> bool:
    """Tell whether a number stands for what was opened under it, in this process."""
    try:
        status = os.fstat(descriptor)
    except OSError:  # closed by other code
        return False
    return _held.get(descriptor) == (status.st_dev, status.st_ino)


def _close(descriptor: int) -> None:
    with _gate.lock:
        if _is_ours(descriptor):
            os.close(descriptor)
            del _held[descriptor]


def _wait_for(attempt: Callable[[], bool], seconds: float) -> None:
    """Try until an attempt succeeds; TimeoutError after some seconds, or when nobody waits."""
    began = time.monotonic()
    while not attempt():
        if is_abandoned() or time.monotonic() - began > seconds:
            raise TimeoutError(errno.ETIMEDOUT, "locked")
        with _gate.outside():
            time.sleep(POLL_SECONDS)


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
    descriptor = _open(path)
    try:

        def change(kind: int) -> None:
            # Type, whence, start, length and process, as C lays them out on 64-bit machines.
            wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, *_SQLITE_BYTES, 0)
            fcntl.fcntl(descriptor, _OFD_SETLK, wanted)

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
            if _is_ours(descriptor):
                change(fcntl.F_UNLCK)
    finally:
        _close(descriptor)


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


class _Gate:
    """Lets no process fork while another of its threads holds a lock.

    The child would have a copy of that thread's locks, SQLite's own within the process among them,
    and nobody to give them back. So a fork waits for such calls to end, and calls wait for the
    fork; not for longer than for a lock, lest two threads wait for each other for ever.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._changed = threading.Condition(self.lock)
        self._inside: dict[int, int] = {}  # calls by thread
        self._forks = 0

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Keep other threads from forking."""
        thread = threading.get_ident()
        with self.lock:
            if not self._inside.get(thread):
                self._changed.wait_for(lambda: not self._forks, LOCK_SECONDS)
            self._inside[thread] = self._inside.get(thread, 0) + 1
        try:
            yield
        finally:
            with self.lock:
                self._inside[thread] = self._inside.get(thread, 1) - 1  # a child has forgotten it
                if not self._inside[thread]:
                    del self._inside[thread]
                self._changed.notify_all()

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Let other threads fork while this one does nothing but wait."""
        thread = threading.get_ident()
        with self.lock:
            calls = self._inside.pop(thread, 0)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self.lock:
                if calls:
                    self._changed.wait_for(lambda: not self._forks, LOCK_SECONDS)
                    self._inside[thread] = calls

    def before_fork(self) -> None:
        self.lock.acquire()
        self._forks += 1
        own = {threading.get_ident()}
        self._changed.wait_for(lambda: self._inside.keys() <= own, LOCK_SECONDS)

    def after_in_parent(self) -> None:
        self._forks -= 1
        self._changed.notify_all()
        self.lock.release()

    def after_in_child(self) -> None:
        for descriptor in _held:
            if _is_ours(descriptor):
                os.close(descriptor)
        _held.clear()
        self.__init__()  # type: ignore[misc]


_gate = _Gate()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_gate.before_fork,
        after_in_parent=_gate.after_in_parent,
        after_in_child=_gate.after_in_child,
    )

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
