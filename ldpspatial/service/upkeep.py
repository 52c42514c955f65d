"""Gathers the reports that arrived, so that their order is gone and closing is quick.

A collection has 256 parts, by a keyed hash of the id, and each part some chunks of different
records, in the order of that hash. Gathering turns rows that arrived into one chunk of the lowest
level a part; eight or more chunks of a level are merged into one of the next, so that a report is
written a few times in all, however many there are. What a row said of its request is gone with the
row.

Each step is one short transaction, and reports are stored between two of them. A step that another
process was quicker with is undone and looked at again.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import accumulate, pairwise

from ldpspatial.collecting.records import KEY_BYTES, PARTS, Records, distinct, hashes, parts
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Database,
    Row,
    Statement,
)
from ldpspatial.service.tables import checked, opened, sealed

LOG = logging.getLogger(__name__)
GATHERED_AT_ONCE = 1 << 16  # reports: requests wait while they are gathered, some 50 ms
ROWS_AT_ONCE = 4096
CHUNKS_OF_A_LEVEL = 8
CHUNK = (int, int, bytes)  # of seq, level, records
SMALL = 4096  # reports, 80 kB
LARGEST_MERGED = 1 << 19  # reports, 10 MB: a larger chunk stays as it is
PUT_IN_ORDER = 1 << 20  # reports, 20 MB: of more, each part gets some all the time
WORTH_JOINING = 8
ATTEMPTS = 5  # of a step, before what is found and cannot be done is damage
PATIENCE_S = 5.0
LOOK_AGAIN_S = 0.1
STILL_READ = (
    "the reports are deleted, but the files of %s hold their bytes until whoever is reading them "
    "has ended: end that, and the service overwrites them within a minute"
)

_GIVEN_UP = "SELECT number FROM collections WHERE state IN ('released', 'dropped')"
_INSERT = (
    "INSERT INTO chunks (collection, part, level, number, records) VALUES ($1, $2, $3, $4, $5)"
)


async def ungathered(database: Database) -> int:
    """Return how many reports lie as they arrived."""
    sql = "SELECT CAST(coalesce(sum(number), 0) AS BIGINT) FROM arrivals"
    found: int = (await checked(database, (int,), sql))[0][0]
    return found


async def gather(database: Database) -> int:
    """Move the oldest rows that arrived into chunks; return how many reports they held."""

    async def oldest() -> list[Row]:
        sql = "SELECT seq, number FROM arrivals ORDER BY seq LIMIT $1"
        rows = await checked(database, (int, int), sql, ROWS_AT_ONCE)
        totals = list(accumulate(number for _, number in rows))
        return [row for row, so_far in zip(rows, totals, strict=True)
                if row is rows[0] or so_far <= GATHERED_AT_ONCE]  # fmt: skip

    found = await _step(database, oldest, lambda rows: _move(database, rows[-1][0]))
    return sum(number for _, number in found)


async def _move(database: Database, last: int) -> bool:
    """Move the rows that arrived up to one into chunks; tell whether that was done."""
    sql = "SELECT collection, records FROM arrivals WHERE seq <= $1"
    arrived = await checked(database, (int, bytes), sql, last)
    statements = [
        Statement("DELETE FROM arrivals WHERE seq <= $1", [(last,)], expected=len(arrived))
    ]
    for number in sorted({row[0] for row in arrived}):
        try:
            key = await key_of(database, number)
        except ChangedStoreError:
            continue  # it was released or dropped: its rows go, and nothing is kept of them
        contents = (content for collection, content in arrived if collection == number)
        records = opened(database, contents)
        different = distinct(records, key)
        statements += _chunks(number, different, key)
        statements.append(_repeats(number, len(records) - len(different)))
    return bool(arrived) and await _run(database, statements)


async def merge(database: Database) -> bool:
    """Merge the chunks of one level of one part, eight or more; tell whether there were any."""
    # From a random part on: where reports arrive faster than chunks are merged, the first parts
    # would be merged again and again, and the last ones never.
    for start in (secrets.randbelow(PARTS), 0):

        def crowded(start: int = start) -> Awaitable[list[Row]]:
            return database.read(
                "SELECT collection, part, level FROM chunks WHERE number <= $1 AND part >= $3 "
                "AND collection NOT IN (SELECT number FROM collections "
                "WHERE state IN ('released', 'dropped')) "
                "GROUP BY collection, part, level HAVING count(*) >= $2 LIMIT 1",
                LARGEST_MERGED,
                CHUNKS_OF_A_LEVEL,
                start,
            )

        if await _step(database, crowded, lambda rows: _merge_level(database, rows[0])):
            return True
    return False


async def _merge_level(database: Database, level: Row) -> bool:
    sql = (
        "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2 "
        "AND level = $3 AND number <= $4"
    )
    chunks = await checked(database, CHUNK, sql, *level, LARGEST_MERGED)
    return await _replace(database, level[0], level[1], chunks)


async def join(database: Database, times: int = WORTH_JOINING) -> bool:
    """Join the smaller chunks of one part into one; tell whether there were any.

    The chunks of a part lie in the order in which their reports came. Merging by levels would leave
    up to seven of a level for as long as nothing comes.

    Parameters
    ----------
    database : Database
    times : int
        A chunk is joined with the smaller ones where it is small itself, or holds so many times
        their reports at most: each joining lets it grow, so that a report is not written again for
        every few that come. ``LARGEST_MERGED`` joins them all.
    """

    def joinable() -> Awaitable[list[Row]]:
        return database.read(
            "SELECT collection, part, number FROM (SELECT collection, part, number, sum(number) "
            "OVER (PARTITION BY collection, part ORDER BY number, seq "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS smaller FROM chunks "
            "WHERE number <= $1 AND collection NOT IN "
            "(SELECT number FROM collections WHERE state IN ('released', 'dropped'))) AS sizes "
            "WHERE smaller > 0 AND (number <= $2 OR number <= CAST($3 AS BIGINT) * smaller) "
            "ORDER BY number DESC LIMIT 1",
            LARGEST_MERGED,
            SMALL,
            times,
        )

    async def joined(rows: Sequence[Row]) -> bool:
        sql = (
            "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2 "
            "AND number <= $3"
        )
        chunks = await checked(database, CHUNK, sql, *rows[0])
        # At the level that it had: these are written again at most once a minute.
        return await _replace(database, rows[0][0], rows[0][1], chunks, levels_up=0)

    return bool(await _step(database, joinable, joined))


async def join_part(database: Database, collection: int, part: int) -> None:
    """Leave one chunk of a part of a closed collection, however large.

    Raises
    ------
    ChangedStoreError
        The collection was released or dropped meanwhile.
    """

    async def several() -> list[Row]:
        sql = "SELECT count(*) FROM chunks WHERE collection = $1 AND part = $2"
        found = await database.read(sql, collection, part)
        return found if found[0][0] > 1 else []

    async def joined(_: Sequence[Row]) -> bool:
        await key_of(database, collection)  # what is released meanwhile is not looked for again
        sql = "SELECT seq, level, records FROM chunks WHERE collection = $1 AND part = $2"
        chunks = await checked(database, CHUNK, sql, collection, part)
        return await _replace(database, collection, part, chunks)

    while await _step(database, several, joined):
        pass


async def _step(
    database: Database,
    look: Callable[[], Awaitable[list[Row]]],
    act: Callable[[list[Row]], Awaitable[bool]],
) -> list[Row]:
    """Do what there is to do; return what it was, nothing where there was nothing.

    What another process was quicker with is looked for again.

    Raises
    ------
    DamagedStoreError
        The same is found over and over and never done: rows are there for one index and not for
        another.
    """
    first: list[Row] = []
    for _ in range(ATTEMPTS):
        found = await look()
        if not found or (first and found[0] != first[0]):
            return first  # another process did it
        first = first or found
        if await act(found):
            return first
    raise DamagedStoreError(database.name, "some of its rows can be found and not read")


async def settle(database: Database, most: int) -> None:
    """Gather everything; of ``most`` reports in all, leave one chunk a part; tidy up.

    One chunk a part tells nothing of when a report came.
    """
    while await gather(database):
        pass
    is_small = await holds_at_most(database, most)
    while is_small and await join(database, LARGEST_MERGED):
        pass
    await put_in_order(database)
    await database.tidy(everything=is_small)


async def put_in_order(database: Database) -> None:
    """Write the chunks of small collections anew, part by part, where they lie in another order.

    The chunk that was written last is of the part to which the latest report came.
    """
    found = await database.read(
        "SELECT collection FROM chunks WHERE collection NOT IN (SELECT number FROM collections "
        "WHERE state IN ('released', 'dropped')) GROUP BY collection HAVING sum(number) <= $1",
        PUT_IN_ORDER,
    )
    for (collection,) in found:
        written = await database.read(
            "SELECT part FROM chunks WHERE collection = $1 ORDER BY seq", collection
        )
        if written == sorted(written):
            continue
        sql = (
            "SELECT seq, part, level, number, records FROM chunks WHERE collection = $1 "
            "ORDER BY part, seq"
        )
        rows = await checked(database, (int, int, int, int, bytes), sql, collection)
        delete = Statement(
            "DELETE FROM chunks WHERE seq = $1", [row[:1] for row in rows], len(rows)
        )
        await _run(database, [delete, Statement(_INSERT, [(collection, *row[1:]) for row in rows])])


async def holds_at_most(database: Database, most: int) -> bool:
    """Tell whether chunks hold so many reports or fewer."""
    found = await database.read("SELECT coalesce(sum(number), 0) FROM chunks")
    return bool(found[0][0] <= most)


async def forget(database: Database) -> bool:
    """Delete what is left of released and dropped collections; tell whether there was anything."""
    # What arrived first: what another process gathers of it until then is found among the chunks.
    sql = f"DELETE FROM arrivals WHERE collection IN ({_GIVEN_UP})"  # noqa: S608
    arrived = await database.run([Statement(sql)])
    rows = await database.read(
        f"SELECT DISTINCT collection, part FROM chunks WHERE collection IN ({_GIVEN_UP})"  # noqa: S608
    )
    for row in rows:  # one part a transaction: reports of other collections arrive in between
        sql = "DELETE FROM chunks WHERE collection = $1 AND part = $2"
        await database.run([Statement(sql, [row])])
    if not rows and not arrived[0]:
        return False
    if not await _tidied(database):
        LOG.warning(STILL_READ, database.name)
    return True


async def _tidied(database: Database) -> bool:
    """Give up what was deleted; wait a little for who reads it, and tell whether that sufficed."""
    until = time.monotonic() + PATIENCE_S
    while not await database.tidy(everything=True):
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(LOOK_AGAIN_S)
    return True


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
) -> bool:
    """Put one chunk in place of several of a part; a row is (seq, level, records).

    Tell whether that was done.
    """
    try:
        key = await key_of(database, collection)
    except ChangedStoreError:
        return False  # whoever released the collection deletes its reports
    if len(chunks) < 2:
        return False
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
    return await _run(database, statements)


async def _run(database: Database, statements: Sequence[Statement]) -> bool:
    """Run; tell whether that was done, or another process changed the rows."""
    try:
        await database.run(statements)
    except ChangedStoreError:
        return False
    return True


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
