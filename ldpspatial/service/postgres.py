"""A store's database in PostgreSQL (the extra ``postgres``).

A transaction that returned is in the server's log on disk, because synchronous_commit and fsync
are on; a server without fsync is refused.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from types import MappingProxyType
from typing import Any

import asyncpg

from ldpspatial.errors import InputError
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Row,
    Statement,
    StoreError,
)

CONNECTIONS = 4
CONNECT_SECONDS = 5.0  # a server that died may leave a connection that never answers
SECONDS = 60.0
LOCK_MILLISECONDS = 200
DAMAGE = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)
FAILURES = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncio.TimeoutError,
    OSError,
)


class PostgresDatabase:
    """A few connections to one PostgreSQL database; made by :func:`open_postgres`."""

    types: Mapping[str, str] = MappingProxyType(
        {
            "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "bytes": "BYTEA",
            "whole": "BIGINT",
        }
    )

    name = "the store's database"

    def __init__(self, pool: Any):
        self._pool = pool
        self._untidy = False  # the table of chunks

    async def run(self, statements: Sequence[Statement]) -> list[int]:
        """Carry out one transaction."""
        changed: list[int] = []
        async with self._connection() as connection, connection.transaction():
            for statement in statements:
                left_out = statement.follows and not changed[-1]
                changed.append(0 if left_out else await _changed(connection, statement))
        return changed

    async def read(self, sql: str, *values: Any) -> list[Row]:
        """Return the rows that a query finds."""
        async with self._connection() as connection:
            return [tuple(row) for row in await connection.fetch(sql, *values)]

    async def has_table(self, name: str) -> bool:
        """Tell whether there is a table of this name."""
        return await self.read("SELECT to_regclass($1) IS NOT NULL", name) == [(True,)]

    async def tidy(self, everything: bool = False) -> bool:
        """Write the tables anew without what was deleted: that of arrivals, or all reports.

        A table that is read, by pg_dump for one, is not waited for: reports that arrive would wait
        as long. What was asked for once is done at the next call.
        """
        self._untidy = self._untidy or everything
        async with self._connection() as connection:
            await connection.execute(
                f"SET lock_timeout = {LOCK_MILLISECONDS}"
            )  # until it is given back
            try:
                if await connection.fetchval("SELECT pg_relation_size('arrivals')"):
                    await connection.execute("VACUUM FULL arrivals", timeout=None)
                if self._untidy:
                    await connection.execute("VACUUM FULL chunks", timeout=None)
            except asyncpg.LockNotAvailableError:
                return False
        self._untidy = False
        return True

    async def close(self) -> None:
        """End all connections."""
        with _store_errors():
            await self._pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        with _store_errors():
            async with self._pool.acquire(timeout=CONNECT_SECONDS) as connection:
                yield connection


async def open_postgres(address: str) -> PostgresDatabase:
    """Connect to a database.

    Parameters
    ----------
    address : str
        postgresql://user:password@host:port/database

    Raises
    ------
    InputError
        The server does not sync its log to the disk.
    StoreError
        It does not answer.
    """
    with _store_errors():
        pool = await asyncpg.create_pool(
            address,
            min_size=0,  # connect when asked: a server that is away must not fill the log
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            command_timeout=SECONDS,
            server_settings={"application_name": "ldpspatial", "synchronous_commit": "on"},
        )
    database = PostgresDatabase(pool)
    if await database.read("SELECT current_setting('fsync')") != [("on",)]:
        await database.close()
        raise InputError("store must be on a PostgreSQL server with fsync = on, and it is off")
    return database


async def _changed(connection: Any, statement: Statement) -> int:
    """Carry out one statement; return how many rows it changed."""
    if len(statement.rows) > 1 and statement.expected is None:
        await connection.executemany(statement.sql, statement.rows)
        return len(statement.rows)
    changed = 0
    for row in statement.rows:
        status = await connection.execute(statement.sql, *row)  # as in "UPDATE 1"
        number = status.rpartition(" ")[2]
        changed += int(number) if number.isdigit() else 0
    if statement.expected not in (None, changed):
        raise ChangedStoreError("another process changed the store meanwhile")
    return changed


@contextmanager
def _store_errors() -> Iterator[None]:
    """Raise what the server refuses as StoreError, with what to do.

    Where the connection broke while a transaction was committed, nobody knows whether it was: what
    was sent counts as not stored, is sent again, and counts once.
    """
    try:
        yield
    except DAMAGE as error:
        raise DamagedStoreError(PostgresDatabase.name, _line(error)) from None
    except FAILURES as error:
        raise StoreError(
            f"{PostgresDatabase.name} did not do it ({_line(error)}): check that the server runs, "
            "has room and takes writes; nothing that was acknowledged is lost"
        ) from None


def _line(error: BaseException) -> str:
    """Return the first line of an error: the next ones may quote values."""
    return str(error).partition("\n")[0] or type(error).__name__
