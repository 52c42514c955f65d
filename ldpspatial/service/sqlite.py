"""A store's database in one SQLite file.

WAL mode with synchronous = FULL: a transaction that returned has been synced to the disk. Deleted
content is overwritten with zeros (secure_delete), and the log is cut when it was copied into the
file.

No code of this process may open the file by other means: on POSIX systems SQLite's locks fall when
any descriptor of the file is closed.
"""

import asyncio
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ldpspatial.errors import InputError
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Row,
    Statement,
    StoreError,
)

Result = TypeVar("Result")

APPLICATION = 0x4C445053  # "LDPS", in the header of the file
BUSY_SECONDS = 30.0
PAGE_BYTES = 16_384  # reports are written in rows of many kilobytes: large pages are quicker
WRITTEN_ANEW_BYTES = 64 << 20  # some 3 million reports: half a second, and as much memory
SETTINGS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",  # no copy of reports in a folder of temporary files
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",  # notices more of the pages that were overwritten
    "PRAGMA cache_size = -8192",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA journal_size_limit = 0",
)
# By the words of the error: Python 3.10 does not pass on the codes of SQLite. Tables that are gone,
# texts that are none and rows longer than any come of pages that were overwritten.
DAMAGE = (
    "malformed", "not a database", "corrupt", "no such", "unsupported file format",
    "could not decode", "too big",
)  # fmt: skip
ADVICE = {
    "locked": "another process has been using it for long: try again later",
    "full": "the disk is full: make room; nothing that was acknowledged is lost",
    "readonly": "file and folder must be writable, and the file system not mounted read-only",
    "unable to open": "file and folder must be there and writable",
    "i/o error": "check that the disk has room, may be written and is sound; where it is, "
    "restore a back-up",
}


class SqliteDatabase:
    """One SQLite file; its transactions run one after the other in a thread of their own.

    Parameters
    ----------
    path : Path
    is_new : bool
        Make the file, which must not exist.
    """

    types: Mapping[str, str] = MappingProxyType(
        {"serial": "INTEGER PRIMARY KEY", "bytes": "BLOB", "whole": "INTEGER"}
    )

    def __init__(self, path: Path, is_new: bool = False):
        if is_new:
            new_file(path)
        elif not path.is_file():
            raise InputError(f"store must be a file, found none at {path}")
        self.name = f"the store at {path}"
        self._log = path.with_name(f"{path.name}-wal")
        self._writer = ThreadPoolExecutor(1, "store-writer")
        self._reader = ThreadPoolExecutor(1, "store-reader")
        with self._store_errors(), _removed_on_failure(path if is_new else None):
            self._writing = _connect(path, is_new)
            try:
                self._reading = _connect(path, is_new=False)
                if not is_new:
                    self._check_collections()
            except BaseException:
                self._writing.close()
                raise

    async def run(self, statements: Sequence[Statement]) -> list[int]:
        """Carry out one transaction."""
        return await self._call(self._writer, self._run, statements)

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows that a query finds, in a snapshot of its own."""
        return await self._call(self._reader, self._read, sql, values)

    async def has_table(self, name: str) -> bool:
        """Tell whether there is a table of this name."""
        sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1"
        return bool(await self.read(sql, name))

    async def tidy(self, everything: bool = False) -> bool:
        """Copy the log into the file and cut it: the log, too, holds what was deleted.

        What overwrites it in the file itself lies in the log until then. Whoever reads an earlier
        state, another process or a back-up, needs the log. Of small rows copies may be left in
        pages whose rows were moved: ``everything`` writes a file anew that is not large.
        """
        return await self._call(self._writer, self._tidy, everything)

    async def copy_to(self, path: Path) -> None:
        """Copy what is stored at one moment, and nothing that was deleted, to an empty file."""
        try:
            await self._call(self._reader, self._reading.execute, "VACUUM INTO ?", (str(path),))
        except asyncio.CancelledError:  # the thread goes on, and closing would wait for it
            self._reading.interrupt()
            raise

    async def close(self) -> None:
        """Close the file; the last connection to it removes the log."""
        await self._call(self._reader, self._reading.close)
        await self._call(self._writer, self._writing.close)
        self._reader.shutdown()
        self._writer.shutdown()

    def _check_collections(self) -> None:
        """Refuse a store whose index of collections does not fit: it would deny that it has one.

        This reads that table alone; what lies in the others is checked when it is counted.
        """
        found = self._reading.execute("PRAGMA integrity_check(collections)").fetchall()
        if found != [("ok",)]:
            raise DamagedStoreError(self.name, "its index of collections does not fit")

    async def _call(
        self, thread: ThreadPoolExecutor, function: Callable[..., Result], *arguments: Any
    ) -> Result:
        with self._store_errors():
            return await asyncio.get_running_loop().run_in_executor(thread, function, *arguments)

    def _run(self, statements: Sequence[Statement]) -> list[int]:
        self._writing.execute("BEGIN IMMEDIATE")
        try:
            changed: list[int] = []
            for statement in statements:
                left_out = statement.follows and not changed[-1]
                changed.append(0 if left_out else self._changed(statement))
            self._writing.execute("COMMIT")
        except BaseException:
            if self._writing.in_transaction:  # some errors have ended it already
                self._writing.execute("ROLLBACK")
            raise
        return changed

    def _changed(self, statement: Statement) -> int:
        sql = _with_question_marks(statement.sql)
        # Closed in this thread: one that an error takes along is freed by another, which resets a
        # statement of SQLite that the next transaction may be using.
        with closing(self._writing.cursor()) as cursor:
            if len(statement.rows) == 1:
                cursor.execute(sql, statement.rows[0])
            else:
                cursor.executemany(sql, statement.rows)
            changed = max(cursor.rowcount, 0)
        if statement.expected not in (None, changed):
            raise ChangedStoreError("another process changed the store meanwhile")
        return changed

    def _tidy(self, everything: bool) -> bool:
        if everything:
            used = (
                "SELECT page_count - freelist_count FROM pragma_page_count, pragma_freelist_count"
            )
            if self._writing.execute(used).fetchone()[0] * PAGE_BYTES <= WRITTEN_ANEW_BYTES:
                self._writing.execute("VACUUM")
        return self._checkpoint()

    def _checkpoint(self) -> bool:
        if not self._log.exists() or not self._log.stat().st_size:
            return True
        # Fetched to the last row: a statement that has not ended would keep the next transaction
        # from its commit. Without waiting for readers: requests wait for this thread.
        self._writing.execute("PRAGMA busy_timeout = 0").fetchall()
        try:
            found = self._writing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            waiting = f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000:.0f}"
            self._writing.execute(waiting).fetchall()
        is_busy = bool(found[0][0])
        return not is_busy

    def _read(self, sql: str, values: Row) -> list[Row]:
        return self._reading.execute(_with_question_marks(sql), values).fetchall()

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise what SQLite refuses as StoreError, with what to do."""
        try:
            yield
        except UnicodeDecodeError:  # of the text of an error, which quotes what it found
            raise DamagedStoreError(self.name, "a text is not UTF-8") from None
        except sqlite3.Error as error:
            told = str(error)
            if any(word in told.lower() for word in DAMAGE):
                # What follows are the bytes that are no text: anything can stand there.
                raise DamagedStoreError(self.name, told.partition(" with text")[0]) from None
            advice = (text for word, text in ADVICE.items() if word in told.lower())
            raise StoreError(
                f"{self.name} did not do it ({told}): {next(advice, 'try again')}"
            ) from None


def new_file(path: Path) -> None:
    """Make an empty file that its owner alone may read: what SQLite puts beside it is like it.

    Raises
    ------
    InputError
        There is one, or the folder cannot be written.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InputError(f"store must be a new file, but {path} is there") from None
    except OSError as error:
        raise InputError(
            f"store must lie in a folder that can be written, got {path}: {error.strerror}"
        ) from None


@contextmanager
def _removed_on_failure(path: Path | None) -> Iterator[None]:
    """Remove a file that an error left unfinished."""
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise


def _connect(path: Path, is_new: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        if is_new:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
        elif connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise InputError(f"store must be a file that ldpspatial made, and {path} is not")
        for setting in SETTINGS:
            connection.execute(setting)
    except sqlite3.DatabaseError as error:
        connection.close()
        if "not a database" not in str(error):
            raise
        raise InputError(
            f"store must be a file that ldpspatial made, and {path} is no file of SQLite: "
            "where it was one, it is damaged, so restore a back-up"
        ) from None
    except BaseException:
        connection.close()
        raise
    return connection


@lru_cache(maxsize=256)
def _with_question_marks(sql: str) -> str:
    """Write the parameters as SQLite does: $1 as ?1."""
    return re.sub(r"\$(\d+)", r"?\1", sql)
