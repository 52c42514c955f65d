"""The tables of a store, and reading rows so that damage shows.

A database notices that a page of its file has lost its form, and not that a number in it is another
one. So reports have checksums, documents their digests, and numbers must add up
(:mod:`ldpspatial.service.closing`).
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ldpspatial.collecting.records import RECORD, Records, from_bytes
from ldpspatial.errors import InputError
from ldpspatial.service.database import DamagedStoreError, Database, Row, Statement

VERSION = 1

# {serial}, {bytes} and {whole} stand for the database's own types.
TABLES = (
    "CREATE TABLE store (version {whole} NOT NULL)",
    # state is open, closed, released or dropped; hash_key is that of collecting.records.
    "CREATE TABLE collections (number {serial}, digest TEXT NOT NULL UNIQUE, "
    "document TEXT NOT NULL, state TEXT NOT NULL, minimum {whole} NOT NULL, "
    "received {whole} NOT NULL, repeated {whole} NOT NULL, hash_key {bytes})",
    # Each window of a series is a collection; leeway in seconds.
    "CREATE TABLE series (number {serial}, digest TEXT NOT NULL UNIQUE, document TEXT NOT NULL, "
    "minimum {whole} NOT NULL, leeway {whole} NOT NULL)",
    "CREATE TABLE windows (series {whole} NOT NULL, place {whole} NOT NULL, "
    "digest TEXT NOT NULL UNIQUE)",
    # What one transaction stored for one collection.
    "CREATE TABLE arrivals (seq {serial}, collection {whole} NOT NULL, "
    "number {whole} NOT NULL, records {bytes} NOT NULL)",
    # The same reports, gathered: each row holds different records of one part.
    "CREATE TABLE chunks (seq {serial}, collection {whole} NOT NULL, part {whole} NOT NULL, "
    "level {whole} NOT NULL, number {whole} NOT NULL, records {bytes} NOT NULL)",
    "CREATE INDEX chunks_by_part ON chunks (collection, part, level)",
    # places and numbers: flat indices into the array of counts, and the counts above 0.
    "CREATE TABLE counts (collection {whole} NOT NULL UNIQUE, places {bytes} NOT NULL, "
    "numbers {bytes} NOT NULL, repeated {whole} NOT NULL, conflicting {whole} NOT NULL)",
    "CREATE TABLE refusals (collection {whole} NOT NULL, reason TEXT NOT NULL, "
    "number {whole} NOT NULL, UNIQUE (collection, reason))",
    "CREATE TABLE tokens (name TEXT NOT NULL UNIQUE, hash {bytes} NOT NULL)",
)


async def make_tables(database: Database) -> None:
    """Make the tables in an empty database."""
    statements = [Statement(sql.format(**database.types)) for sql in TABLES]
    version = Statement("INSERT INTO store (version) VALUES ($1)", [(VERSION,)])
    await database.run([*statements, version])


async def check_version(database: Database) -> None:
    """Refuse tables of another version.

    Raises
    ------
    InputError
        A later version of this package has written them.
    """
    rows = await checked(database, (int,), "SELECT version FROM store")
    if rows != [(VERSION,)]:
        found = rows[0][0] if rows else "none"
        raise InputError(
            f"store must be of version {VERSION}, got {found}: "
            "open it with the ldpspatial that made it"
        )


async def checked(database: Database, types: Sequence[type], sql: str, *values: Any) -> list[Row]:
    """Return the rows that a query finds, whose values must have these types.

    Raises
    ------
    DamagedStoreError
        One has another type.
    """
    rows = await database.read(sql, *values)
    for row in rows:
        if not all(map(isinstance, row, types)):
            raise DamagedStoreError(database.name, "a row holds what was never written")
    return rows


def sealed(records: Records) -> bytes:
    """Return the bytes of records after a checksum: a disk can change what it holds."""
    content = records.tobytes()
    return zlib.crc32(content).to_bytes(4, "little") + content


def opened(database: Database, contents: Iterable[bytes]) -> Records:
    """Return the records of several rows, checked.

    Raises
    ------
    DamagedStoreError
        The bytes of a row are not those that were written.
    """
    found = [np.empty(0, RECORD)]
    for content in contents:
        written, records = int.from_bytes(content[:4], "little"), content[4:]
        if zlib.crc32(records) != written:
            raise DamagedStoreError(database.name, "the checksum of a row of reports does not fit")
        found.append(from_bytes(records))
    return np.concatenate(found)
