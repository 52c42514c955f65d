"""Gathers the reports that arrived, so that their order is gone and closing is quick.

A collection has 256 parts, by a keyed hash of the id, and each part some chunks of different
records, in the order of that hash. Gathering turns rows that arrived into one chunk of the lowest
level a part; eight or more chunks of a level are merged into one of the next, so that a report is
written a few times in all, however many there are. What a row said of its request is gone with the
row.

Each step is one short transaction, and reports are stored between two of them. A step that another
process was quicker with is undone and looked at again.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from ldpspatial.collecting.records import KEY_BYTES, PARTS, Records, distinct, hashes, parts
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Database,
    Row,
    Statement,
)
from ldpspatial.service.tables import checked, opened, sealed

GATHERED_AT_ONCE = 1 << 16  # reports: requests wait while they are gathered, some 50 ms
ROWS_AT_ONCE = 4096
CHUNKS_OF_A_LEVEL = 8
CHUNK = (int, int, bytes)  # of seq, level, records
SMALL = 4096  # reports, 80 kB
LARGEST_MERGED = 1 << 19  # reports, 10 MB: a larger chunk stays as it is

_INSERT = (
    "INSERT INTO chunks (collection, part, level, number, records) VALUES ($1, $2, $3, $4, $5)"
)


async def gather(database: Database) -> int:
    """Move the oldest rows that arrived into chunks; return how many reports they held."""
    sql = "SELECT seq, number FROM arrivals ORDER BY seq LIMIT $1"
    rows = await checked(database, (int, int), sql, ROWS_AT_ONCE)
    total = 0
    last = None
    for seq, number in rows:
        if last is not None and total + number > GATHERED_AT_ONCE:
            break
        total += number
        last = seq
    if last is None:
        return 0
    sql = "SELECT collection, records FROM arrivals WHERE seq <= $1"
    arrived = await checked(database, (int, bytes), sql, last)
    statements = [
        Statement("DELETE FROM arrivals WHERE seq <= $1", [(last,)], expected=len(arrived))
    ]
    for number in sorted({row[0] for row in arrived}):
        key = await key_of(database, number)
        contents = (content for collection, content in arrived if collection == number)
        records = opened(database, contents)
        different = distinct(records, key)
        statements += _chunks(number, different, key)
        statements.append(_repeats(number, len(records) - len(different)))
    await _run(database, statements)
    return total


async def merge(database: Database) -> bool:
    """Merge the chunks of one level of one part, eight or more; tell whether there were any."""
    # From a random part on: where reports arrive faster than chunks are merged, the first parts
    # would be merged again and again, and the last ones never.
    for start in (secrets.randbelow(PARTS), 0):
        found = await database.read(
            "SELECT collection, part, level FROM chunks WHERE number <= $1 AND part >= $3 "
            "AND collection NOT IN (SELECT number FROM collections "
            "WHERE state IN ('released', 'dropped')) "
            "GROUP BY collection, part, level HAVING count(*) >= $2 LIMIT 1",
            LARGEST_MERGED,
            CHUNKS_OF_A_LEVEL,
            start,
        )
        if found:
            break
    else:
        return False
    sql = (
        "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2 "
        "AND level = $3 AND number <= $4"
    )
    chunks = await checked(database, CHUNK, sql, *found[0], LARGEST_MERGED)
    await _replace(database, found[0][0], found[0][1], chunks)
    return True


async def join_small(database: Database) -> bool:
    """Join the small chunks of one part into one; tell whether there were any.

    Where few reports come, a chunk of a part would hold one report, and the chunks lie in the order
    in which these came. Merging by levels would leave hundreds of them for hours.
    """
    found = await database.read(
        "SELECT collection, part FROM chunks WHERE number <= $1 "
        "AND collection NOT IN (SELECT number FROM collections "
        "WHERE state IN ('released', 'dropped')) "
        "GROUP BY collection, part HAVING count(*) > 1 LIMIT 1",
        SMALL,
    )
    if not found:
        return False
    sql = (
        "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2 "
        "AND number <= $3"
    )
    chunks = await checked(database, CHUNK, sql, *found[0], SMALL)
    # At the level that it had: these are written again at most once a minute.
    await _replace(database, found[0][0], found[0][1], chunks, levels_up=0)
    return True


async def settle(database: Database, most: int) -> None:
    """Gather everything; of ``most`` reports in all, leave one chunk a part; tidy up.

    One chunk a part tells nothing of when a report came.
    """
    while await gather(database):
        pass
    if (await database.read("SELECT coalesce(sum(number), 0) FROM chunks"))[0][0] <= most:
        await _merge_all(database)
    await database.tidy()


async def _merge_all(database: Database) -> None:
    waiting = await database.read(
        "SELECT collection, part FROM chunks WHERE number <= $1 "
        "AND collection NOT IN (SELECT number FROM collections "
        "WHERE state IN ('released', 'dropped')) "
        "GROUP BY collection, part HAVING count(*) > 1",
        LARGEST_MERGED,
    )
    for collection, part in waiting:
        sql = (
            "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2 "
            "AND number <= $3"
        )
        chunks = await checked(database, CHUNK, sql, collection, part, LARGEST_MERGED)
        await _replace(database, collection, part, chunks)


async def forget(database: Database) -> None:
    """Delete what is left of the reports of collections that were released or dropped."""
    rows = await database.read(
        "SELECT DISTINCT chunks.collection, part FROM chunks JOIN collections "
        "ON collections.number = chunks.collection WHERE state IN ('released', 'dropped')"
    )
    for row in rows:  # one part a transaction: reports of other collections arrive in between
        sql = "DELETE FROM chunks WHERE collection = $1 AND part = $2"
        await database.run([Statement(sql, [row])])
    if rows:
        await database.tidy(everything=True)


async def key_of(database: Database, collection: int) -> bytes:
    """Return the key of a collection's hashes.

    Raises
    ------
    ChangedStoreError
        The collection was released or dropped.
    DamagedStoreError
        The store has no such collection, or no key of it.
    """
    sql = "SELECT hash_key, state FROM collections WHERE number = $1"
    rows = await checked(database, (object, str), sql, collection)
    key, state = rows[0] if rows else (None, "")
    if state in ("released", "dropped"):
        raise ChangedStoreError("another process deleted the collection's reports meanwhile")
    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise DamagedStoreError(database.name, "reports lie there of no collection")
    return key


async def _replace(
    database: Database, collection: int, part: int, chunks: Sequence[Row], levels_up: int = 1
) -> None:
    """Put one chunk in place of several of a part; a row is (seq, level, records)."""
    try:
        key = await key_of(database, collection)
    except ChangedStoreError:
        return  # whoever released the collection deletes its reports
    records = opened(database, (content for _, _, content in chunks))
    merged = distinct(records, key)
    level = levels_up + max(level for _, level, _ in chunks)
    row = (collection, part, level, len(merged), sealed(merged))
    statements = [
        Statement(
            "DELETE FROM chunks WHERE seq = $1", [(seq,) for seq, _, _ in chunks], len(chunks)
        ),
        Statement(_INSERT, [row]),
        _repeats(collection, len(records) - len(merged)),
    ]
    await _run(database, statements)


async def _run(database: Database, statements: Sequence[Statement]) -> None:
    with suppress(ChangedStoreError):  # another process did this step
        await database.run(statements)


def _chunks(collection: int, records: Records, key: bytes) -> list[Statement]:
    """Return what stores different records, in the order of their hash, as a chunk a part."""
    part = parts(hashes(records["id"], key))
    borders = [0, *(1 + (part[1:] != part[:-1]).nonzero()[0]).tolist(), len(records)]
    rows = [
        (collection, int(part[low]), 0, high - low, sealed(records[low:high]))
        for low, high in pairwise(borders)
        if high > low
    ]
    return [Statement(_INSERT, rows)]


def _repeats(collection: int, number: int) -> Statement:
    sql = "UPDATE collections SET repeated = repeated + $2 WHERE number = $1"
    return Statement(sql, [(collection, number)])
