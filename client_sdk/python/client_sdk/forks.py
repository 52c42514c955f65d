"""What a forked child must not take along: a call at work, and descriptors that keep a lock.

The child has a copy of what the other threads of its parent held, the locks of SQLite within the
process among them, and nobody to give them back. So threads read and write the ledger's files
under a lock of this process, and whoever forks takes that lock, too. It is given back while a
thread waits or lets the app's code run.

Python runs the handlers of signals between any two steps of a function that is written in Python,
one that it calls for a fork included, and swallows there what they raise. So it is told to call
methods of the lock, which are one step each: interrupted or not, a thread gives back what it took.
"""

import _thread
import errno
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 20.0  # two threads that wait for each other must not do so for ever
READ_AND_WRITE = os.O_RDWR | getattr(os, "O_BINARY", 0)  # which Windows has

_files = _thread.RLock()
# What threading.Condition asks of it, too: whether this thread has taken it.
_is_owned: Callable[[], bool] = _files._is_owned  # type: ignore[attr-defined]


class _Taken:
    """How often the thread that has the lock took it, other than by forking, and where."""

    times = 0
    process = 0


_taken = _Taken()


@contextmanager
def held_off() -> Iterator[None]:
    """Let no other thread fork, or read and write files of a ledger.

    Raises
    ------
    TimeoutError
        Another thread did so for twenty seconds.
    OSError
        Another thread did so when this process was forked, and the fork could not wait for it.
    """
    _take()
    try:
        yield
    finally:
        _give_back()


def allow() -> int:
    """Let other threads fork, and work; return how often :func:`forbid` has to take the lock."""
    times = 0
    while _give_back():
        times += 1
    return times


def end() -> None:
    """Give back whatever this thread has, which ends: nobody else can, and it may have failed."""
    while _is_owned():
        _taken.times = 0
        _files.release()


def forbid(times: int) -> None:
    """Take back what :func:`allow` gave; raises what :func:`held_off` raises."""
    for _ in range(times):
        _take()


def is_forking() -> bool:
    """Tell whether this thread is about to fork: then it gets a signal in the middle of that."""
    return _is_owned()


def _take() -> None:
    # By a thread that was not forked. It is not enough to wait in vain for what it has: a new
    # thread may get its identifier, and so pass for the one that has taken the lock.
    if _taken.times and _taken.process != os.getpid():
        raise OSError(errno.ENOLCK, "dropped by a fork while a thread was in a call")
    process = os.getpid()  # which needs memory, and so may fail
    if not _files.acquire(timeout=SECONDS):
        raise TimeoutError(errno.ETIMEDOUT, "locked")
    _taken.process = process
    _taken.times += 1


def _give_back() -> bool:
    """Give the lock back once, if this thread has taken it."""
    if not (_is_owned() and _taken.times):
        return False
    _taken.times -= 1
    _files.release()
    return True


class Opened:
    """A file that was opened to lock it: a forked child that shared it would keep the lock alive.

    A descriptor is a number, and when other code has closed it, that of another file soon.
    """

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> "Opened":
        _forget()  # as a child does at once, unless a signal ended that
        self._process = os.getpid()
        self.descriptor = os.open(self._path, READ_AND_WRITE)
        try:
            status = os.fstat(self.descriptor)
            self._file = status.st_dev, status.st_ino
            _opened[self.descriptor] = self
        except BaseException:
            os.close(self.descriptor)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_ours(self) -> bool:
        """Tell whether this process, and no parent of it, has the file open here.

        A child may have its parent's descriptors: C code forks without telling Python, and a
        handler of a signal may end what a child does first.
        """
        return self._is_open() and not self.is_of_parent()

    def _is_open(self) -> bool:
        """Tell whether the number still stands for the file that was opened here."""
        if _opened.get(self.descriptor) is not self:
            return False
        try:
            status = os.fstat(self.descriptor)
        except OSError:  # closed by other code
            return False
        return self._file == (status.st_dev, status.st_ino)

    def is_of_parent(self) -> bool:
        """Tell whether the process that opened it has forked this one."""
        return self._process != os.getpid()

    def close(self) -> None:
        """Close it, unless it is not ours any more."""
        if self._is_open():
            os.close(self.descriptor)
        if _opened.get(self.descriptor) is self:
            del _opened[self.descriptor]


_opened: dict[int, Opened] = {}


def _forget() -> None:
    """Close in a child what its parent had opened."""
    for opened in list(_opened.values()):
        if opened.is_of_parent():
            opened.close()


def _begin_child() -> None:
    """Let go of what threads of the parent had, as far as they were not at work with it."""
    if not _taken.times:
        if _files.acquire(blocking=False):
            _files.release()
        else:  # a thread that was not forked had just got the lock, or was giving it back
            _files._at_fork_reinit()  # type: ignore[attr-defined]
    _forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=functools.partial(_files.acquire, timeout=SECONDS),
        after_in_parent=_files.release,
        after_in_child=_files.release,
    )
    os.register_at_fork(after_in_child=_begin_child)
