"""Closes collections, counts what they hold, and releases them.

Closed: no report is taken any more, repeated ids were looked for, and the counts are final.
Released: the counts are all that is left; reports and their ids are deleted. Dropped: nothing is
left but how many reports there were. Of fewer reports than the minimum nobody is given anything.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection
from ldpspatial.collecting.records import (
    PARTS,
    OutputDomain,
    Records,
    distinct,
    hashes,
    parts,
    tally,
)
from ldpspatial.errors import InputError
from ldpspatial.service.database import (
    ChangedStoreError,
    DamagedStoreError,
    Statement,
    StoreError,
)
from ldpspatial.service.store import CLOSED, DROPPED, OPEN, RELEASED, Held, Store
from ldpspatial.service.tables import checked, opened
from ldpspatial.service.upkeep import forget, gather, join_part, key_of, put_in_order

_MISSING = "there are other reports than were received"


@dataclass(frozen=True)
class Counted:
    """What a closed collection counts.

    Attributes
    ----------
    counts : (d + 2b, d + 2b) int64 array
        As those of :class:`ldpspatial.ReportCounts`.
    received : int
        Reports that were acknowledged: those counted, those repeated and those conflicting.
    repeated : int
        Copies: reports with id and cell of another one.
    conflicting : int
        Different reports with the id of another one, all of which are left out.
    """

    counts: NDArray[np.int64]
    received: int
    repeated: int
    conflicting: int

    @property
    def n(self) -> int:
        """Number of reports that count."""
        return int(self.counts.sum())

    def facts(self) -> dict[str, int]:
        """Return what a summary says of the reports."""
        return {
            "received": self.received,
            "repeated": self.repeated,
            "conflicting": self.conflicting,
        }


async def close_collection(store: Store, digest: str) -> Counted:
    """Take no more reports and count; a collection that is closed stays as it is.

    Raises
    ------
    InputError
        The store has no such collection, or it was dropped.
    """
    held = await _not_dropped(store, digest)
    sql = "UPDATE collections SET state = $2 WHERE number = $1 AND state = $3"
    await store.database.run([Statement(sql, [(held.number, CLOSED, OPEN)])])
    held = await _not_dropped(store, digest)
    found = await _counted(store, held)
    if found is None:
        with suppress(ChangedStoreError):  # it was released or dropped: the next lines tell
            await _count(store, held)
        found = await _counted(store, held)
    if found is None:
        await _not_dropped(store, digest)  # its counts may have gone a moment ago
        raise DamagedStoreError(store.database.name, "counts are missing")
    return found


async def _not_dropped(store: Store, digest: str) -> Held:
    held = await store.held(digest)
    if held.state == DROPPED:
        raise InputError("collection must be open or closed, and is dropped")
    return held


async def counted(store: Store, digest: str) -> Counted:
    """Return what a closed collection counts.

    Raises
    ------
    InputError
        The store has no such collection, it is open, or it is being counted.
    """
    held = await store.held(digest)
    found = await counted_so_far(store, held)
    if found is None:
        state = "being counted" if held.state == CLOSED else held.state
        raise InputError(f"collection must be closed before its counts are final, and is {state}")
    return found


async def counted_so_far(store: Store, held: Held) -> Counted | None:
    """Return what a collection counts; None where it is open, or closed and still being counted."""
    return None if held.state in (OPEN, DROPPED) else await _counted(store, held)


async def released_counts(store: Store, digest: str) -> Counted:
    """Return what a released collection counts: what a map is made of.

    Raises
    ------
    InputError
        The store has no such collection, or it was not released.
    """
    held = await store.held(digest)
    if held.state != RELEASED:
        raise InputError(f"collection must be released before it is mapped, and is {held.state}")
    return await counted(store, digest)


async def release(store: Store, digest: str) -> Counted:
    """Release a closed collection, once and for all: reports and ids are deleted.

    A release that was interrupted is finished.

    Raises
    ------
    InputError
        The store has no such collection, it is open or was released, or fewer reports count than
        its minimum.
    """
    held = await store.held(digest)
    if held.state == RELEASED and await forget(store.database):
        return await counted(store, digest)
    if held.state != CLOSED:
        raise InputError(f"collection must be closed to be released, and is {held.state}")
    found = await close_collection(store, digest)
    check_minimum(held, found)
    sql = "UPDATE collections SET state = $2, hash_key = NULL WHERE number = $1 AND state = $3"
    await store.database.run([Statement(sql, [(held.number, RELEASED, CLOSED)])])
    await _not_dropped(store, digest)  # by another process, which was quicker
    await forget(store.database)
    return found


async def drop(store: Store, digest: str) -> None:
    """Delete all that a closed collection holds, reports and counts, once and for all.

    For one that is not to be released: too few reports, or a back-up of a store whose collection
    was released already. A drop that was interrupted is finished.

    Raises
    ------
    InputError
        The store has no such collection, or it is not closed.
    """
    held = await store.held(digest)
    if held.state == DROPPED and await forget(store.database):
        return
    _check_droppable(held.state, CLOSED)
    change = "UPDATE collections SET state = $2, hash_key = NULL WHERE number = $1 AND state = $3"
    delete = "DELETE FROM counts WHERE collection = $1"
    await store.database.run(
        [
            Statement(change, [(held.number, DROPPED, CLOSED)]),
            Statement(delete, [(held.number,)], follows=True),
        ]
    )
    _check_droppable((await store.held(digest)).state, DROPPED)  # another may have been quicker
    await forget(store.database)


def _check_droppable(state: str, expected: str) -> None:
    if state != expected:
        raise InputError(f"collection must be closed to be dropped, and is {state}")


def check_minimum(held: Held, found: Counted) -> None:
    """Refuse what tells of fewer reports than the minimum.

    Raises
    ------
    InputError
        Fewer count.
    """
    if found.n < held.minimum:
        raise InputError(
            f"collection must count at least {held.minimum} reports before anything of them is "
            f"given, counts {found.n}: drop it"
        )


async def stored_reports(store: Store, digest: str) -> AsyncIterator[Records]:
    """Yield the different reports of a closed collection, part by part.

    Those that conflict are among them, so that whoever counts them finds the same.

    Raises
    ------
    InputError
        The store has no such collection, or it is not closed, or counts fewer than its minimum.
    """
    held = await store.held(digest)
    if held.state != CLOSED:
        raise InputError(f"collection must be closed to give its reports, and is {held.state}")
    found = await close_collection(store, digest)  # where that was interrupted
    check_minimum(held, found)
    key = await key_of(store.database, held.number)
    total = 0
    for part in range(PARTS):
        records, _ = await _part(store, held.number, part, key)
        total += len(records)
        yield records
    if total != found.received - found.repeated:
        raise await _missing(store, held)


async def _count(store: Store, held: Held) -> None:
    """Count a closed collection, and write that down, unless it is not closed any more."""
    await _gather_all(store)
    held, counts, different, conflicting = await _checked_sums(store, held, joining=True)
    places = np.flatnonzero(counts)
    row = (
        held.number,
        zlib.compress(places.astype("<u4").tobytes()),
        zlib.compress(counts[places].astype("<i8").tobytes()),
        held.received - different,
        conflicting,
    )
    sql = (
        "INSERT INTO counts (collection, places, numbers, repeated, conflicting) "
        "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (collection) DO NOTHING"
    )
    still = "UPDATE collections SET state = state WHERE number = $1 AND state = $2"
    await store.database.run(
        [Statement(still, [(held.number, CLOSED)]), Statement(sql, [row], follows=True)]
    )
    await put_in_order(store.database)
    await store.database.tidy()


async def check_reports(store: Store, held: Held) -> None:
    """Read all reports of a collection that nobody adds to, or the counts of a released one.

    Raises
    ------
    DamagedStoreError
        They are not what was written, or not all of it.
    """
    if held.state == RELEASED:
        await _counted(store, held)
    elif held.state != DROPPED:
        await _checked_sums(store, held)


async def _checked_sums(
    store: Store, held: Held, joining: bool = False
) -> tuple[Held, NDArray[np.int64], int, int]:
    """Return counts, and how many reports are different and conflict.

    Every report that was received was found to be a copy, or is there: that tells whether the
    store has lost some. A server that merges meanwhile may find copies; then it is done again.
    What does not add up is damage where it does not at a second look either.

    Parameters
    ----------
    store : Store
    held : Held
    joining : bool
        Leave one chunk a part at the same time.

    Raises
    ------
    ChangedStoreError
        The collection was closed, released or dropped meanwhile.
    DamagedStoreError
        The store has lost reports.
    """
    key = await key_of(store.database, held.number)
    is_confirmed = False
    while True:
        before = held
        counts, different, there, conflicting = await _sums(store, held, key, joining)
        held = await store.held(held.digest)
        if held.state != before.state:
            raise ChangedStoreError(f"the collection was {held.state} meanwhile")
        if there + held.repeated == held.received:
            return held, counts, different, conflicting
        if held == before and is_confirmed:
            break
        is_confirmed = held == before
    raise DamagedStoreError(store.database.name, _MISSING)


async def _missing(store: Store, held: Held) -> StoreError:
    """Return why reports are not there: another process released them meanwhile, or damage."""
    state = (await store.held(held.digest)).state
    if state != held.state:
        return ChangedStoreError(f"the collection was {state} meanwhile")
    return DamagedStoreError(store.database.name, _MISSING)


async def finish_closing(store: Store) -> int:
    """Count the collections whose closing was interrupted; return how many there were."""
    rows = await store.database.read(
        "SELECT digest FROM collections WHERE state = $1 "
        "AND number NOT IN (SELECT collection FROM counts)",
        CLOSED,
    )
    for (digest,) in rows:
        await close_collection(store, digest)
    return len(rows)


async def _sums(
    store: Store, held: Held, key: bytes, joining: bool
) -> tuple[NDArray[np.int64], int, int, int]:
    """Return counts, and how many reports are different, are there at all, and conflict."""
    side = OutputDomain(Collection.from_json(held.document)).side
    counts = np.zeros(side * side, np.int64)
    numbers = np.zeros(3, np.int64)
    left = iter(range(PARTS))

    async def work() -> None:
        for part in left:
            if joining:
                await join_part(store.database, held.number, part)
            records, number = await _part(store, held.number, part, key)
            found = tally(records, key)
            np.add(counts, np.bincount(found.places, minlength=side * side), out=counts)
            np.add(numbers, (len(records), number, found.conflicting), out=numbers)

    # Two at a time: one is put in order while the other waits for the disk.
    for failure in await asyncio.gather(work(), work(), return_exceptions=True):
        if failure is not None:
            raise failure
    different, there, conflicting = map(int, numbers)
    return counts, different, there, conflicting


async def _counted(store: Store, held: Held) -> Counted | None:
    rows = await checked(
        store.database,
        (bytes, bytes, int, int),
        "SELECT places, numbers, repeated, conflicting FROM counts WHERE collection = $1",
        held.number,
    )
    if not rows:
        return None
    places, numbers, repeated, conflicting = rows[0]
    side = OutputDomain(Collection.from_json(held.document)).side
    counts = np.zeros(side * side, np.int64)
    try:
        at = np.frombuffer(zlib.decompress(places), "<u4")  # checked by zlib's own sum
        counts[at] = np.frombuffer(zlib.decompress(numbers), "<i8")
    except (zlib.error, ValueError, IndexError):
        raise DamagedStoreError(store.database.name, "counts are not what was written") from None
    if counts.sum() + repeated + conflicting != held.received:
        raise DamagedStoreError(store.database.name, "counts do not add up")
    return Counted(counts.reshape(side, side), held.received, repeated, conflicting)


async def _gather_all(store: Store) -> None:
    while await gather(store.database):
        pass


async def _part(store: Store, number: int, part: int, key: bytes) -> tuple[Records, int]:
    """Return the different records of a part, and how many there are with copies."""
    sql = "SELECT records FROM chunks WHERE collection = $1 AND part = $2"
    rows = await checked(store.database, (bytes,), sql, number, part)
    records = opened(store.database, (content for (content,) in rows))
    if (parts(hashes(records["id"], key)) != part).any():
        raise DamagedStoreError(store.database.name, "reports lie where they do not belong")
    different = distinct(records, key) if len(rows) > 1 else records
    return different, len(records)
