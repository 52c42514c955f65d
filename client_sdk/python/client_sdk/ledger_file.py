"""The ledger's SQLite file: locked, verified and written durably, with one kind of error.

Every access opens the file anew, takes its write lock, verifies all of it and closes it again.
SQLite's rollback journal makes a commit atomic; application id, version, size, quick_check and a
SHA-256 over the rows tell a whole ledger from an empty, cut, foreign or damaged file.
"""

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from client_sdk.errors import LedgerError

APPLICATION_ID = 0x6C647073  # "ldps", in the file's header
VERSION = 1
LOCK_SECONDS = 5.0

_SCHEMA = (
    "CREATE TABLE caps (device INTEGER NOT NULL, collection INTEGER NOT NULL, checksum TEXT)",
    "CREATE TABLE spending (collection TEXT PRIMARY KEY, micro_epsilon INTEGER NOT NULL)"
    " WITHOUT ROWID",
    # Keyed by random ids, so that pending() does not tell the order of drawing. (The bytes of the
    # file do; it stays on the device.)
    "CREATE TABLE pending (report_id TEXT PRIMARY KEY, report TEXT NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)
_NO_ROOM = "check that the file and its folder are writable and that the disk has room"
_DAMAGED = "keep the file and stop reporting: a new ledger would refill the budget"
_ADVICE = {  # by the words of the error: Python 3.10 does not pass on the codes of SQLite
    "locked": "another process or thread is using it: try again later",
    "exists": "open it with Ledger(path): a second ledger would be a second budget",
    "no such file": "Ledger.create makes one when the app is installed and never again: if this"
    " device has reported before, a new ledger would refill the budget",
    "readonly": _NO_ROOM,
    "read-only": _NO_ROOM,
    "permi": _NO_ROOM,
    "is full": _NO_ROOM,
    "no space": _NO_ROOM,
    "unable to open": _NO_ROOM,
    "i/o error": _NO_ROOM,
}
_KINDS: dict[type, str] = {FileExistsError: "exists", FileNotFoundError: "no such file"}


class State(NamedTuple):
    """Everything a ledger file says, in micro-epsilons."""

    cap: int
    collection_cap: int
    spending: dict[str, int]  # collection -> spent
    pending: dict[str, str]  # report id -> report text

    def spent(self, collection: str | None = None) -> int:
        """Return what one collection, or all of them together, cost."""
        if collection is None:
            return sum(self.spending.values())
        return self.spending.get(collection, 0)

    def checksum(self) -> str:
        """Return the SHA-256 of all of it, in hexadecimal."""
        # ascii() writes any type that a damaged column may turn out to have.
        rows = [*map(ascii, self.spending.items()), *map(ascii, self.pending.items())]
        text = "\n".join([f"{VERSION} {self.cap!a} {self.collection_cap!a}", *sorted(rows)])
        return hashlib.sha256(text.encode()).hexdigest()


def create(file: Path, state: State) -> None:
    """Write a new ledger where no file is, or leave nothing behind."""
    with _explained(file):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        with _explained(file), closing(_connect(file)) as connection:
            _make_durable(connection)
            connection.execute("BEGIN EXCLUSIVE")
            for statement in _SCHEMA:
                connection.execute(statement)
            values = (state.cap, state.collection_cap, state.checksum())
            connection.execute("INSERT INTO caps VALUES (?, ?, ?)", values)
            connection.execute("COMMIT")
    except LedgerError:
        file.unlink(missing_ok=True)  # ours and unused: O_EXCL made it above
        raise


@contextmanager
def transaction(file: Path) -> Iterator[tuple[sqlite3.Connection, State]]:
    """Lock and verify the file; leaving without :func:`commit` rolls everything back."""
    with _explained(file):
        connection = _connect(file)
    with closing(connection):
        with _explained(file):
            state = _begin(connection, file)
        yield connection, state


def commit(
    file: Path,
    connection: sqlite3.Connection,
    state: State,
    *changes: tuple[str, tuple[object, ...]],
) -> None:
    """Write the changes that lead to ``state`` and return once they are on the disk."""
    with _explained(file):
        for statement, values in changes:
            connection.execute(statement, values)
        # Of the state in memory, not read back: if SQLite wrote something else (onto a page that
        # it holds to be free, say), the next access sees it.
        connection.execute("UPDATE caps SET checksum = ?", (state.checksum(),))
        connection.execute("COMMIT")


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Turn every error of SQLite and of the file system into a LedgerError that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        # UnicodeDecodeError: SQLite complains about a name that is itself damaged.
        told = getattr(error, "strerror", None) or str(error)
        advice = next((_ADVICE[words] for words in _ADVICE if words in told.lower()), _DAMAGED)
        if isinstance(error, OSError):  # whose words depend on the language of the system
            advice = _ADVICE.get(_KINDS.get(type(error), ""), _NO_ROOM)
        raise LedgerError(f"ledger {file}: {told}; {advice}; no report was given") from error


def _connect(file: Path) -> sqlite3.Connection:
    """Open a file that exists; mode=rw keeps SQLite from making one."""
    if not file.is_file():  # SQLite would wait on a named pipe
        raise FileNotFoundError("no such file")
    uri = f"{file.as_uri()}?mode=rw"
    connection = sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
    # Damaged text reaches the checksum; by default an error message would quote the report.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return connection


def _make_durable(connection: sqlite3.Connection) -> None:
    """Let COMMIT return only when file, journal and folder are on the disk."""
    if _value(connection, "PRAGMA journal_mode = DELETE") != "delete":
        raise sqlite3.DatabaseError("journal_mode is not DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA secure_delete = ON")  # an acknowledged report is overwritten
    connection.execute("PRAGMA fullfsync = ON")  # Apple's fsync stops at the drive's cache


def _begin(connection: sqlite3.Connection, file: Path) -> State:
    """Check whose file it is, take the write lock, verify the content and return it."""
    identity = [_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")]
    if identity != [APPLICATION_ID, VERSION]:  # an empty file has 0, 0
        raise sqlite3.DatabaseError(f"empty, cut off or not a ledger of version {VERSION}")
    _make_durable(connection)
    connection.execute("BEGIN IMMEDIATE")
    size = _value(connection, "PRAGMA page_count") * _value(connection, "PRAGMA page_size")
    if file.stat().st_size != size or _value(connection, "PRAGMA quick_check(1)") != "ok":
        raise sqlite3.DatabaseError("cut off or damaged")
    caps = connection.execute("SELECT device, collection, checksum FROM caps").fetchall()
    spending = connection.execute("SELECT collection, micro_epsilon FROM spending").fetchall()
    pending = connection.execute("SELECT report_id, report FROM pending").fetchall()
    if len(caps) == 1:
        cap, collection_cap, checksum = caps[0]
        state = State(cap, collection_cap, dict(spending), dict(pending))
        if checksum == state.checksum():
            return state
    raise sqlite3.DatabaseError("damaged: the content does not match its checksum")


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
