"""Ledgers of the first version, which had SQLite's lock alone, brought to this one.

The spending and what waits stay; the ledger gets its lock and its count, and a key for events.
"""

import hashlib
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from client_sdk import commit_count, file_lock, ledger_file
from client_sdk.file_lock import HeldLock
from client_sdk.ledger_file import FIRST_VERSION, Damaged, Transaction


def upgrade(file: Path) -> None:
    """Bring a ledger of the first version to this one; leave any other file alone.

    A process killed in here leaves a ledger of the first version, or one of this version. The
    count says 1 before the ledger does, so that a ledger of the first version which is put back
    later does not pass for one that was never brought here.
    """
    with ledger_file.explained(file):
        # Where there is a lock the file is read under it: reading it drops SQLite's own locks.
        if ledger_file.lock_of(file).exists() and _is_counted(file):
            if not _was_left(file):
                return
        elif not ledger_file.is_first(file):
            return
        lock = ledger_file.lock_of(file)
        with suppress(FileExistsError):  # another process is at it, or died at it
            file_lock.make(lock)
        with (
            file_lock.locked(lock) as held,
            file_lock.holding_off_sqlite(file, ledger_file.BUSY_SECONDS) as holds_off,
            closing(ledger_file.connect(file, holds_off)) as connection,
        ):
            if not ledger_file.is_first(file):  # the other process was quicker
                return
            _count(file)
            ledger_file.make_durable(connection)
            connection.execute("BEGIN EXCLUSIVE")
            _convert(file, held, connection)
            held.check()
            connection.execute("COMMIT")


def _is_counted(file: Path) -> bool:
    return commit_count.is_begun(ledger_file.count_of(file))


def _was_left(file: Path) -> bool:
    """Tell whether a process died while it brought this ledger here: the count says 1 at most."""
    if commit_count.read(ledger_file.count_of(file)) > 1:
        return False
    with file_lock.locked(ledger_file.lock_of(file)):
        return ledger_file.is_first(file)


def _count(file: Path) -> None:
    """Let the count say 1, or refuse: a larger one is of a later state of this ledger."""
    count = ledger_file.count_of(file)
    if not _is_counted(file):
        commit_count.make(count, 1)
    elif commit_count.read(count) > 1:
        raise Damaged("an older copy of this ledger was put in its place")


def _convert(file: Path, held: HeldLock, connection: sqlite3.Connection) -> None:
    """Verify the old rows, and write them as new ones in the same transaction."""
    caps, spending, pending = _old_rows(connection)
    for table in ("caps", "spending", "pending"):
        connection.execute(f"DROP TABLE {table}")
    head = ledger_file.new_head(caps, held.identity, file, file)._replace(
        commits=1,
        spent=sum(micro for _, micro in spending),
        drawn=len(pending),
        waiting=len(pending),
    )
    ledger_file.make_tables(connection, head)
    books = Transaction(connection, head, file, held, holds_off=True)
    for row in spending:
        books.put("spending", *row)
    for number, (report_id, report) in enumerate(pending):
        books.put("pending", report_id, number, report, None)
    books.write_head()


def _old_rows(
    connection: sqlite3.Connection,
) -> tuple[tuple[int, int], list[tuple[str, int]], list[tuple[str, str]]]:
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise Damaged("cut off or damaged")
    caps = connection.execute("SELECT device, collection, checksum FROM caps").fetchall()
    spending = connection.execute("SELECT collection, micro_epsilon FROM spending").fetchall()
    pending = connection.execute("SELECT report_id, report FROM pending").fetchall()
    if len(caps) == 1:
        device, collection, checksum = caps[0]
        rows = sorted([*map(ascii, spending), *map(ascii, pending)])
        text = "\n".join([f"{FIRST_VERSION} {device!a} {collection!a}", *rows])
        if checksum == hashlib.sha256(text.encode()).hexdigest():
            return (device, collection), spending, pending
    raise Damaged("damaged: the content does not match its checksum")
