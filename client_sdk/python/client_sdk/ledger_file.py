"""The ledger's SQLite file: locked, verified and written durably, with one kind of error.

Beside the ledger lie a file, ``.lock``, and a folder, ``.count``.

- **.lock** is what is locked (:mod:`client_sdk.file_lock`). It is made with the ledger and never
  written again. The ledger remembers its identity, so that a ledger which was copied or restored
  together with it is noticed: no copy has the inode and the time of change of the original.
  Nor has a copy the inodes of the ledger and its count, which it remembers, too, with their
  generations (:mod:`client_sdk.file_identity`).
- **.count** holds the number of commits (:mod:`client_sdk.commit_count`). It is written after each
  of them, so a ledger that states a smaller number is an older copy of itself. One commit more is
  a process that died in between.

Every access opens the file anew under the lock. What it costs does not depend on how much is
stored: each row carries its own checksum, and the head row a checksum of all rows that is updated
with every change, a sum of their SHA-256 modulo 2^256 (Bellare and Micciancio 1997). All of it is
verified when a ledger is opened, and whenever somebody else has written to the file. To know
that, a commit *seals* the file: it sets its time of modification to a time in the past that
stands for the number of commits, and whoever writes to it breaks the seal. In a browser the time
lies in the future: Pyodide saves to OPFS (``syncfs``) what was modified after it was last saved,
and nothing else.
"""

import errno
import hashlib
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from client_sdk import commit_count, file_lock, forks
from client_sdk.file_identity import mark_of
from client_sdk.file_lock import HeldLock, Identity
from client_sdk.ledger_errors import CHANGED, Damaged, explained
from client_sdk.uninterrupted import in_thread_of_caller, is_answering

APPLICATION_ID = 0x6C647073  # "ldps", in the file's header
VERSION = 2
FIRST_VERSION = 1  # had no lock of its own; client_sdk.ledger_upgrade reads it
BUSY_SECONDS = 5.0  # for readers that know SQLite's lock alone

Answer = TypeVar("Answer")
Row = tuple[Any, ...]
Marks = tuple[int, int, int, int]  # inode and generation of the ledger, and of its count

# Reports are keyed by random ids, so that their order is not that of drawing. (Their numbers tell
# it, and so would the bytes of the file; they stay on the device.)
TABLES = {
    "spending": "account TEXT PRIMARY KEY, micro_epsilon INTEGER NOT NULL",
    "pending": "report_id TEXT PRIMARY KEY, number INTEGER NOT NULL, report TEXT NOT NULL, "
    "event BLOB",
    "events": "event BLOB PRIMARY KEY, report_id TEXT",
    "joined": "digest TEXT PRIMARY KEY, document TEXT NOT NULL, windows TEXT",
    "rounds": "name TEXT PRIMARY KEY, state TEXT NOT NULL",
}
_LATE = ("rounds",)  # made when it is first needed: most devices take part in none
_KEYS = {table: columns.partition(" ")[0] for table, columns in TABLES.items()}


class Head(NamedTuple):
    """The one row that speaks for all others; amounts in micro-epsilons."""

    device_cap: int
    collection_cap: int
    key: bytes  # of the hashes of events
    lock_inode: int
    lock_changed_ns: int
    file_inode: int
    file_generation: int
    count_inode: int
    count_generation: int
    commits: int
    spent: int
    drawn: int  # reports so far
    waiting: int  # reports in pending
    discarded: int  # reports that were dropped and never acknowledged
    content: bytes  # checksum of the rows of all tables

    def checksum(self) -> bytes:
        """Return the SHA-256 of all of it."""
        return _digest("head", self)


class Transaction:
    """A locked and verified ledger; what is not committed is rolled back."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        head: Head,
        file: Path,
        lock: HeldLock,
        holds_off: bool,
    ):
        self._connection = connection
        self._holds_off = holds_off
        self.head = head
        self._content = int.from_bytes(head.content, "big")
        self._file = file
        self._lock = lock
        self._found = os.stat(file)
        self._rows: dict[tuple[str, object], tuple[Row, bytes] | None] = {}  # read or written

    def get(self, table: str, key: object) -> Row | None:
        """Return the row of a key, verified, or None."""
        found = self._read(table, key)
        return None if found is None else found[0]

    def pending(self, limit: int | None) -> list[Row]:
        """Return that many rows of reports, or all, by ascending id."""
        query = "SELECT * FROM pending ORDER BY report_id LIMIT ?"
        found = self._connection.execute(query, (-1 if limit is None else limit,))
        return [_verified("pending", row) for row in found]

    def newest(self, number: int) -> list[str]:
        """Return the ids of the reports that were drawn last."""
        query = "SELECT report_id FROM pending ORDER BY number DESC LIMIT ?"
        return [row[0] for row in self._connection.execute(query, (number,))]

    def put(self, table: str, *row: Any) -> None:
        """Write a row in place of what its key has."""
        before = self._read(table, row[0])
        if before is None and table in _LATE:
            _make_table(self._connection, table)
        digest = _digest(table, row)
        self._content += int.from_bytes(digest, "big")
        self._content -= 0 if before is None else int.from_bytes(before[1], "big")
        marks = ", ".join("?" * (len(row) + 1))
        statement = f"INSERT OR REPLACE INTO {table} VALUES ({marks})"  # noqa: S608
        self._connection.execute(statement, (*row, digest))
        self._rows[table, row[0]] = row, digest

    def remove(self, table: str, key: object) -> Row | None:
        """Delete the row of a key and return it, or None."""
        before = self._read(table, key)
        if before is None:
            return None
        self._content -= int.from_bytes(before[1], "big")
        self._connection.execute(f"DELETE FROM {table} WHERE {_KEYS[table]} = ?", (key,))  # noqa: S608
        self._rows[table, key] = None
        return before[0]

    def _read(self, table: str, key: object) -> tuple[Row, bytes] | None:
        """Return the row of a key, verified, and its checksum; read once.

        Nobody else writes meanwhile: :meth:`commit` checks that, and a changed head ends the call.
        """
        if (table, key) not in self._rows:
            self._rows[table, key] = self._found_row(table, key)
        return self._rows[table, key]

    def _found_row(self, table: str, key: object) -> tuple[Row, bytes] | None:
        if not _has_table(self._connection, table):
            return None
        query = f"SELECT * FROM {table} WHERE {_KEYS[table]} = ?"  # noqa: S608
        found = self._connection.execute(query, (key,)).fetchone()
        return None if found is None else (_verified(table, found), found[-1])

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Call a function of the app, whose own errors pass through.

        It runs in the thread that made the call, before anything is put. Should it fork, or
        another thread do so meanwhile, the child must not go on: SQLite would write into the
        journal of its parent, and delete it.
        """
        if not self._holds_off:  # a child would find the lock that SQLite notes in its memory
            with explained(self._file):
                self._connection.execute("ROLLBACK")
        times = forks.allow()
        try:
            return in_thread_of_caller(question, self._file)
        finally:
            with explained(self._file):
                forks.forbid(times)
                self._lock.check_process()
                if not self._holds_off:
                    self._connection.execute("BEGIN IMMEDIATE")
                    if _read_head(self._connection) != self.head:
                        raise Damaged(CHANGED)

    def commit(self) -> None:
        """Write everything down; return once it is on the disk and counted."""
        with explained(self._file):
            self._look_again()
            commits = self.head.commits + 1
            self.head = self.head._replace(commits=commits)
            self.write_head()
            self._connection.execute("COMMIT")
            if not self._holds_off:
                self._read_back()
            seal(self._file, commits)
            commit_count.write(count_of(self._file), commits - 1, commits)

    def write_head(self) -> None:
        """Write the head that stands for what was put and removed.

        Its checksum is that of the numbers in memory and is not read back: if SQLite wrote
        something else (onto a page that it holds to be free, say), the next verification sees it.
        """
        self.head = self.head._replace(content=_folded(self._content))
        _write_head(self._connection, self.head)

    def _read_back(self) -> None:
        """Check that the commit is there: another user of SQLite may have taken it back.

        That is so where SQLite's own lock is the only one that such a user sees, and other code
        of this process dropped it.
        """
        with closing(connect(self._file, self._holds_off)) as again:
            if _read_head(again) != self.head:
                raise Damaged(CHANGED)

    def _look_again(self) -> None:
        """Check, before anything is written, that nobody was here while a report was drawn."""
        self._lock.check()
        now = os.stat(self._file)
        before = self._found
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (
            before.st_ino, before.st_size, before.st_mtime_ns
        ):  # fmt: skip
            raise Damaged(CHANGED)  # the next call reads all of it, and so tells what it is


def new_head(caps: tuple[int, int], lock: Identity, file: Path, named: Path) -> Head:
    """Return the head of an empty ledger.

    ``file`` is where the ledger lies now, ``named`` the name that it will have.
    """
    marks = marks_of(file, named)
    return Head(*caps, os.urandom(32), *identity_of(lock), *marks, 0, 0, 0, 0, 0, bytes(32))


def make_tables(connection: sqlite3.Connection, head: Head) -> None:
    """Write tables and head within an open transaction."""
    connection.execute(f"CREATE TABLE head ({', '.join(Head._fields)}, checksum)")
    for table in TABLES:
        if table not in _LATE:
            _make_table(connection, table)
    connection.execute("CREATE INDEX newest ON pending (number)")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    _write_head(connection, head)


def _make_table(connection: sqlite3.Connection, table: str) -> None:
    columns = f"{TABLES[table]}, checksum BLOB"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns}) WITHOUT ROWID")


def _has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Tell whether a table is there, of those that are made late."""
    query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
    return table not in _LATE or connection.execute(query, (table,)).fetchone() is not None


@contextmanager
def transaction(file: Path, verify: bool = False) -> Iterator[Transaction]:
    """Lock and verify the file; leaving without :meth:`Transaction.commit` rolls back.

    All of its rows are read if ``verify`` asks for it, or if the file is not as the last commit
    left it.
    """
    own: list[BaseException] = []  # errors of those who use the transaction
    try:
        with explained(file, own), entered(file):
            check_place(file)
            # Nested, not by an ExitStack: that needs memory after a lock is taken and before it is
            # sure to be given back.
            with file_lock.locked(lock_of(file)) as held:
                leave_wal(file)
                with file_lock.holding_off_sqlite(file, BUSY_SECONDS) as holds_off:
                    # Before SQLite opens the file: to close another descriptor of it drops its own
                    # lock, where that is the only one.
                    marks = marks_of(file, file)
                    with closing(connect(file, holds_off)) as connection:
                        head = _begin(file, held, connection, marks, verify)
                        begun = Transaction(connection, head, file, held, holds_off)
                        try:
                            yield begun
                        except BaseException as error:
                            own.append(error)
                            raise
    finally:
        own.clear()  # or an error and this list would keep each other


class _Inside(threading.local):
    """The ledgers that calls of this thread are in the middle of."""

    def __init__(self) -> None:
        self.files: list[Path] = []


_inside = _Inside()


@contextmanager
def entered(file: Path) -> Iterator[None]:
    """Refuse a call that waits for a call which waits for it: one within a draw, or a finaliser."""
    if file in _inside.files or is_answering(file):
        raise TimeoutError(errno.EDEADLK, "locked by the call that this one came in between")
    _inside.files.append(file)
    try:
        yield
    finally:
        _inside.files.remove(file)


def leave_wal(file: Path) -> None:
    """Bring a file back to the journal that it is made with, if another tool changed that.

    SQLite opens no file with a write-ahead log where its own locks are off.
    """
    if _header(file)[18:20] == b"\2\2":
        with closing(connect(file, holds_off=False)) as connection:
            if _value(connection, "PRAGMA application_id") != APPLICATION_ID:
                raise Damaged(f"empty, cut off or not a ledger of version {VERSION}")
            make_durable(connection)


def check_place(file: Path) -> None:
    """Check that a ledger with its lock is there, under this name alone."""
    if not _is_file(file):  # SQLite would wait on a named pipe
        raise FileNotFoundError("no such file")
    if file.stat().st_nlink > 1:  # SQLite looks for its journal beside one name only
        raise Damaged("the file has a second name")
    if not _is_file(lock_of(file)):
        if is_first(file):
            raise Damaged(f"a ledger of version {FIRST_VERSION}")
        raise Damaged("copied or moved: its lock file is missing")


def _is_file(path: Path) -> bool:
    """Tell whether there is a regular file; raises PermissionError where nobody may look.

    ``Path.is_file`` answers no there, in some versions of Python.
    """
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def is_first(file: Path) -> bool:
    """Tell whether a file is a ledger of the first version, without the lock.

    So without SQLite: its mere opening could roll back what another process is writing.
    """
    if not _is_file(file):
        return False
    header = _header(file)
    version = header[60:64]
    application = header[68:72]
    return (int.from_bytes(application, "big"), int.from_bytes(version, "big")) == (
        APPLICATION_ID, FIRST_VERSION
    )  # fmt: skip


def roll_back(file: Path) -> None:
    """Take back what a process that was killed has half written, under the lock.

    Until then the first bytes of the file may be of a version that was never committed.
    """
    if _is_file(file) and file.with_name(f"{file.name}-journal").exists():
        with (
            file_lock.holding_off_sqlite(file, BUSY_SECONDS) as holds_off,
            closing(connect(file, holds_off)) as connection,
        ):
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


def _header(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(100)


def check_version(connection: sqlite3.Connection, file: Path) -> None:
    """Check that the file is a ledger of this version."""
    found = [_value(connection, f"PRAGMA {name}") for name in ("application_id", "user_version")]
    if found == [APPLICATION_ID, FIRST_VERSION]:
        if commit_count.read(count_of(file)) > 1:
            raise Damaged("an older copy of this ledger was put in its place")
        raise Damaged(f"a ledger of version {FIRST_VERSION}")
    if found != [APPLICATION_ID, VERSION]:  # an empty file has 0, 0
        raise Damaged(f"empty, cut off or not a ledger of version {VERSION}")


def lock_of(file: Path) -> Path:
    """Return the path of the file that is locked."""
    return file.with_name(f"{file.name}.lock")


def count_of(file: Path) -> Path:
    """Return the path of the folder with the number of commits."""
    return file.with_name(f"{file.name}.count")


def connect(file: Path, holds_off: bool) -> sqlite3.Connection:
    """Open a file that exists; mode=rw keeps SQLite from making one.

    Where others are held off by locks of ours, SQLite's own are off: they would meet ours.
    """
    uri = f"{file.as_uri()}?mode=rw{'&nolock=1' if holds_off else ''}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)
    # Damaged text reaches the checksum; by default an error message would quote the report.
    connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")
    return connection


def make_durable(connection: sqlite3.Connection) -> None:
    """Let COMMIT return only when file, journal and folder are on the disk."""
    if _value(connection, "PRAGMA journal_mode = DELETE") != "delete":
        raise sqlite3.DatabaseError("journal_mode is not DELETE")
    connection.execute("PRAGMA synchronous = EXTRA")
    connection.execute("PRAGMA secure_delete = ON")  # an acknowledged report is overwritten
    connection.execute("PRAGMA fullfsync = ON")  # Apple's fsync stops at the drive's cache
    connection.execute("PRAGMA cache_spill = OFF")  # the file is written by COMMIT alone


def _begin(
    file: Path, held: HeldLock, connection: sqlite3.Connection, marks: Marks, verify: bool
) -> Head:
    """Check whose file it is, take SQLite's lock as well, and verify what has to be."""
    check_version(connection, file)
    make_durable(connection)
    connection.execute("BEGIN IMMEDIATE")
    size = _value(connection, "PRAGMA page_count") * _value(connection, "PRAGMA page_size")
    if file.stat().st_size != size:
        raise Damaged("cut off or damaged")
    head = _read_head(connection)
    if identity_of(held.identity) != (head.lock_inode, head.lock_changed_ns):
        raise Damaged(
            "copied, moved or restored, or somebody changed owner, permissions, times or links of "
            "its lock file, which is then not the one it was made with"
        )
    remembered = (
        head.file_inode, head.file_generation, head.count_inode, head.count_generation
    )  # fmt: skip
    if marks != remembered:
        raise Damaged("copied, moved or restored: its files are not those it was made with")
    count = commit_count.read(count_of(file))
    if count > head.commits:
        raise Damaged("an older copy of this ledger was put in its place")
    if count < head.commits - 1:
        raise Damaged("an older copy of its count was put in place")
    if verify or file.stat().st_mtime_ns != _seal_of(head.commits):
        _verify(connection, head)
        seal(file, head.commits)
    if count < head.commits:  # a process died after its commit
        commit_count.write(count_of(file), count, head.commits)
    return head


def _verify(connection: sqlite3.Connection, head: Head) -> None:
    """Read everything and compare it with the checksums."""
    if _value(connection, "PRAGMA quick_check(1)") != "ok":
        raise Damaged("cut off or damaged")
    content = 0
    sums = dict.fromkeys(TABLES, 0)
    for table in TABLES:
        if not _has_table(connection, table):
            continue
        for row in connection.execute(f"SELECT * FROM {table}"):  # noqa: S608
            values = _verified(table, row)
            content += int.from_bytes(row[-1], "big")
            sums[table] += values[1] if table == "spending" else 1
    told = head.content, head.spent, head.waiting
    if told != (_folded(content), sums["spending"], sums["pending"]):
        raise Damaged("damaged: the content does not match its checksum")


def _read_head(connection: sqlite3.Connection) -> Head:
    rows = connection.execute("SELECT * FROM head").fetchall()
    if len(rows) == 1 and len(rows[0]) == len(Head._fields) + 1:
        head = Head(*rows[0][:-1])
        if rows[0][-1] == head.checksum():
            return head
    raise Damaged("damaged: the content does not match its checksum")


def _write_head(connection: sqlite3.Connection, head: Head) -> None:
    """Write the head row with its checksum."""
    marks = ", ".join("?" * (len(head) + 1))
    connection.execute("DELETE FROM head")
    connection.execute(f"INSERT INTO head VALUES ({marks})", (*head, head.checksum()))  # noqa: S608


def seal(file: Path, commits: int) -> None:
    """Give the file a time of modification that a later write replaces."""
    time = _seal_of(commits)
    with suppress(PermissionError):  # not the owner's process: everything is verified each time
        os.utime(file, ns=(time, time))


def _seal_of(commits: int) -> int:
    # Even seconds of 2001, or 2096, and later: every file system holds them.
    first = 4 * 10**9 if _is_in_browser() else 10**9
    return (first + 2 * (commits % (5 * 10**8))) * 10**9


def _is_in_browser() -> bool:
    return sys.platform == "emscripten"


def identity_of(lock: Identity) -> tuple[int, int]:
    """Return what the ledger remembers of its lock file: inode and time of change."""
    # In the memory of a page files are made anew with every load.
    return (0, 0) if _is_in_browser() else (lock.inode, lock.changed_ns)


def marks_of(file: Path, named: Path) -> Marks:
    """Return the marks of ledger and count, which another file in their place does not have."""
    if _is_in_browser():
        return 0, 0, 0, 0
    return (*mark_of(file), *commit_count.mark(count_of(named)))


def _verified(table: str, row: Row) -> Row:
    *values, checksum = row
    if checksum != _digest(table, values):
        raise Damaged("damaged: the content does not match its checksum")
    return tuple(values)


def _digest(table: str, values: Iterable[Any]) -> bytes:
    # ascii() writes any type that a damaged column may turn out to have.
    return hashlib.sha256(f"{VERSION} {table} {tuple(values)!a}".encode()).digest()


def _folded(content: int) -> bytes:
    return (content % (1 << 256)).to_bytes(32, "big")


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
