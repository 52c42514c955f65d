"""Ledgers of the first version, which had SQLite's lock alone, brought to this one.

The spending and what waits stay; the ledger gets its lock and its count, and a key for events.
"""

import hashlib
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from client_sdk import commit_count, file_lock, ledger_file
from client_sdk.errors import CollectionError
from client_sdk.file_lock import HeldLock
from client_sdk.ledger_errors import Damaged, explained
from client_sdk.ledger_file import FIRST_VERSION, Transaction
from client_sdk.report import Report

BEGUN, DONE = 1, 2  # of the count


def upgrade(file: Path) -> None:
    """Bring a ledger of the first version to this one; leave any other file alone.

    A process killed in here leaves a ledger of the first version, or one of this version. The
    count says 1 once this is begun, and 2 once it is done: a ledger of the first version which is
    put back later does not pass for one that was never brought here.
    """
    with explained(file), ledger_file.entered(file):
        lock = ledger_file.lock_of(file)
        # Where there is a lock the file is read under it: reading it drops SQLite's own locks.
        if lock.exists():
            with file_lock.locked(lock):
                ledger_file.roll_back(file)
                is_first = ledger_file.is_first(file)
        else:
            is_first = ledger_file.is_first(file)
        if not is_first:
            return
        with suppress(FileExistsError):  # another process is doing this, or died doing it
            file_lock.make(lock)
        with file_lock.locked(lock) as held:
            ledger_file.roll_back(file)
            if not ledger_file.is_first(file):  # the other process was quicker
                return
            _begin_count(file)
            ledger_file.leave_wal(file)
            with (
                file_lock.holding_off_sqlite(file, ledger_file.BUSY_SECONDS) as holds_off,
                closing(ledger_file.connect(file, holds_off)) as connection,
            ):
                ledger_file.make_durable(connection)
                connection.execute("BEGIN EXCLUSIVE")
                _convert(file, held, connection)
                held.check()
                connection.execute("COMMIT")
            commit_count.write(ledger_file.count_of(file), BEGUN, DONE)


def _begin_count(file: Path) -> None:
    """Let the count say that this is begun, or refuse: a larger one is of a later state."""
    count = ledger_file.count_of(file)
    if not commit_count.is_begun(count):
        commit_count.make(count, BEGUN)
    elif commit_count.read(count) > BEGUN:
        raise Damaged("an older copy of this ledger was put in its place")


def _convert(file: Path, held: HeldLock, connection: sqlite3.Connection) -> None:
    """Verify the old rows, and write them as new ones in the same transaction."""
    caps, spending, pending = _old_rows(connection)
    for table in ("caps", "spending", "pending"):
        connection.execute(f"DROP TABLE {table}")
    head = ledger_file.new_head(caps, held.identity, file, file)._replace(
        commits=DONE,
        spent=sum(micro for _, micro in spending),
        drawn=len(pending),
        waiting=len(pending),
    )
    ledger_file.make_tables(connection, head)
    books = Transaction(connection, head, file, held, holds_off=True)
    for row in spending:
        books.put("spending", *row)
    for number, (report_id, report) in enumerate(pending):
        books.put("pending", report_id, number, _padded(report), None)
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


def _padded(report: str) -> str:
    """Return a report as it is sent; the first version stored it without the spaces."""
    with suppress(CollectionError):
        return Report.from_json(report).to_body()
    return report
