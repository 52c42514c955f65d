"""One kind of error for all that can fail in a ledger's files, each with what to do about it."""

import errno
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from client_sdk.commit_count import CountError
from client_sdk.errors import LedgerBusyError, LedgerError, LedgerUnavailableError

_BUSY = "another process or thread is using it: try again later"
_NO_ROOM = "check that the file and its folder are writable and that the disk has room"
_SHORT = "close files or free memory, and try again"
_DAMAGED = "keep the file and stop reporting: a new ledger would refill the budget"
_ADVICE = {  # by the words of the error: Python 3.10 does not pass on the codes of SQLite
    "locked": _BUSY,
    "does not keep a lock": "put the ledger on a local file system, where flock works",
    "lock file was": "keep backup agents and other programs away from the ledger's files, and try"
    " again",
    "dropped": "a process must not fork, or close files that are not its own, inside a call",
    "exists": "open it by Device.open or Ledger(path): a second ledger would be a second budget",
    "no such file": "Device.install (Ledger.create) makes one when the app is installed and never"
    " again: if this device has reported before, a new ledger would refill the budget",
    "readonly": _NO_ROOM,
    "read-only": _NO_ROOM,
    "permi": _NO_ROOM,
    "is full": _NO_ROOM,
    "no space": _NO_ROOM,
    "unable to open": (
        f"{_NO_ROOM}, that few files are open, and that its path has fewer than 500 bytes"
    ),
    "i/o error": _NO_ROOM,
}
CHANGED = "changed by other code during a call"
_VERIFIED_NEXT = "try again: the next call verifies all of it"
_OF_DAMAGED = {
    CHANGED: _VERIFIED_NEXT,
    "second name": "remove the hard link: the ledger must have one name",
    "ledger of version 1": "open it with Ledger(path), which brings it to this version",
}
_KINDS: dict[type, str] = {
    FileExistsError: "exists",
    FileNotFoundError: "no such file",
    TimeoutError: "locked",
}
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_LASTING = (
    _DAMAGED,
    *(advice for advice in _OF_DAMAGED.values() if advice != _VERIFIED_NEXT),
    *(_ADVICE[words] for words in ("does not keep a lock", "dropped", "exists", "no such file")),
)


class Damaged(sqlite3.DatabaseError):
    """The ledger is not as its last commit left it."""


@contextmanager
def explained(file: Path, passing: Sequence[BaseException] = ()) -> Iterator[None]:
    """Turn every error of SQLite and of the file system into a LedgerError that says what to do.

    Those in ``passing``, which may be added to meanwhile, are the app's own and stay as they are.
    """
    try:
        yield
    except LedgerError:  # an OSError that says what to do already
        raise
    except (sqlite3.Error, OSError, UnicodeError, CountError) as error:
        if any(error is each for each in passing):
            raise
        # UnicodeError: SQLite complains about a name that is itself damaged.
        told = getattr(error, "strerror", None) or str(error)
        # What is damaged is told in our own words, which may hold those of another advice.
        hints = _OF_DAMAGED if isinstance(error, (Damaged, CountError)) else _ADVICE
        advice = next((hints[words] for words in hints if words in told.lower()), None)
        if advice is None or type(error) in _KINDS:
            # The words of an OSError depend on the language of the system.
            advice = _NO_ROOM if isinstance(error, OSError) else _DAMAGED
            advice = _ADVICE.get(_KINDS.get(type(error), ""), advice)
        if isinstance(error, OSError) and error.errno in _SHORTAGES:
            advice = _SHORT
        kind = LedgerError if advice in _LASTING else LedgerUnavailableError
        if advice == _BUSY:
            kind = LedgerBusyError
        raise kind(f"ledger {file}: {told}; {advice}; no report was given") from error
