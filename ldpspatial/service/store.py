"""What the service keeps: collections, and the reports that arrived.

Reports are stored first and looked through later. A transaction adds its reports as one row, in
ascending order of id, without looking for repeated ids: an index on random ids is the slowest part
of such a store, and gets slower as it grows. :mod:`ldpspatial.service.upkeep` gathers the rows, and
:mod:`ldpspatial.service.closing` counts them.

A collection is open, then closed, then released or dropped, and never goes back. Every change is
one transaction, repeated or taken up again after a crash: no state lies in memory alone.
"""

import hashlib
import logging
import os
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from client_sdk import Collection
from ldpspatial.collecting.records import Records, in_order_of_id, new_key
from ldpspatial.errors import InputError
from ldpspatial.service.database import (
    DamagedStoreError,
    Database,
    Row,
    Statement,
    StoreError,
)
from ldpspatial.service.sqlite import SqliteDatabase
from ldpspatial.service.tables import check_version, checked, make_tables, sealed
from ldpspatial.service.upkeep import forget
from ldpspatial.validate import file_path, instance, shown, whole_number

LOG = logging.getLogger(__name__)
OPEN, CLOSED, RELEASED, DROPPED = "open", "closed", "released", "dropped"
LARGEST_MINIMUM = 10**12

_HELD = "SELECT number, digest, document, state, minimum, received, repeated FROM collections"
_HELD_TYPES = (int, str, str, str, int, int, int)


@dataclass(frozen=True)
class Held:
    """A collection as the store holds it.

    Attributes
    ----------
    number : int
        Its number in this store.
    digest, document : str
    state : str
        "open", "closed", "released" or "dropped".
    minimum : int
        Reports that must count before it is released.
    received : int
        Reports that were acknowledged, copies among them.
    repeated : int
        Copies that were found so far.
    """

    number: int
    digest: str
    document: str
    state: str
    minimum: int
    received: int
    repeated: int


class Store:
    """Collections and their reports in a database; open one with :func:`open_store`."""

    def __init__(self, database: Database):
        self.database = database

    async def add(self, collection: Collection, minimum: int) -> Held:
        """Take up a collection, which is open from now on.

        Raises
        ------
        InputError
            The store has it already, or the minimum is not a whole number from 1 on.
        """
        instance("collection", collection, Collection)
        least = whole_number("minimum", minimum, 1, LARGEST_MINIMUM)
        if await self.find(collection.digest):
            raise InputError(f"collection must be new, but the store has {collection.digest}")
        row = (collection.digest, collection.to_json(), OPEN, least, new_key())
        sql = (
            "INSERT INTO collections "
            "(digest, document, state, minimum, received, repeated, hash_key) "
            "VALUES ($1, $2, $3, $4, 0, 0, $5)"
        )
        await self.database.run([Statement(sql, [row])])
        return await self.held(collection.digest)

    async def collections(self) -> list[Held]:
        """Return all collections, in the order in which they were added."""
        rows = await checked(self.database, _HELD_TYPES, f"{_HELD} ORDER BY number")
        return [self._held(row) for row in rows]

    async def find(self, digest: str) -> Held | None:
        """Return the collection of a digest, or None."""
        rows = await checked(self.database, _HELD_TYPES, f"{_HELD} WHERE digest = $1", digest)
        return self._held(rows[0]) if rows else None

    def _held(self, row: Row) -> Held:
        held = Held(*row)
        digest = hashlib.sha256(held.document.encode()).hexdigest()
        if held.digest != digest or held.state not in (OPEN, CLOSED, RELEASED, DROPPED):
            raise DamagedStoreError(self.database.name, "a collection is not what was added")
        return held

    async def held(self, digest: str) -> Held:
        """Return the collection of a digest.

        Raises
        ------
        InputError
            The store has no such collection.
        """
        found = await self.find(digest)
        if found is None:
            raise InputError(f"collection must be one that the store has, got {shown(digest)}")
        return found

    async def append(self, arrived: Mapping[int, Records]) -> set[int]:
        """Store reports durably, by the numbers of their collections, all in one transaction.

        Returns
        -------
        set of int
            The collections that are not open, of whose reports none was stored.
        """
        statements = []
        in_order = sorted(arrived.items())  # or two servers of one database wait for each other
        for number, records in in_order:
            # The first statement locks the collection's row: it stays open until the commit.
            count = (
                "UPDATE collections SET received = received + $3 WHERE number = $1 AND state = $2"
            )
            insert = "INSERT INTO arrivals (collection, number, records) VALUES ($1, $2, $3)"
            content = sealed(in_order_of_id(records))
            statements += [
                Statement(count, [(number, OPEN, len(records))]),
                Statement(insert, [(number, len(records), content)], follows=True),
            ]
        changed = await self.database.run(statements)
        return {number for (number, _), n in zip(in_order, changed[::2], strict=True) if not n}

    async def refuse(self, refused: Mapping[tuple[int, str], int]) -> None:
        """Count reports that were refused, by collection (0: none that is known) and reason."""
        sql = (
            "INSERT INTO refusals (collection, reason, number) VALUES ($1, $2, $3) "
            "ON CONFLICT (collection, reason) DO UPDATE SET number = refusals.number + $3"
        )
        rows = sorted((number, reason, n) for (number, reason), n in refused.items())
        await self.database.run([Statement(sql, [row]) for row in rows])

    async def refused(self) -> dict[tuple[int, str], int]:
        """Return how many reports were refused, by collection and reason."""
        sql = "SELECT collection, reason, number FROM refusals"
        rows = await checked(self.database, (int, str, int), sql)
        return {(number, reason): n for number, reason, n in rows}

    async def check_writable(self) -> None:
        """Write something that changes nothing.

        Raises
        ------
        StoreError
            The store cannot be written: a full disk, a file system that is read-only.
        """
        await self.database.run([Statement("UPDATE store SET version = version")])

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()


async def make_store(location: str | os.PathLike[str]) -> Store:
    """Make a store: in a new SQLite file, or in an empty PostgreSQL database.

    Parameters
    ----------
    location : path or str
        A path, or an address that starts with postgresql://.

    Raises
    ------
    InputError
        The file exists, or the database holds a store.
    StoreError
        It cannot be written.
    """
    store = Store(await _database(location, is_new=True))
    return await _after(make_tables(store.database), store)


async def open_store(location: str | os.PathLike[str]) -> Store:
    """Open the store in a SQLite file, or in a PostgreSQL database.

    Raises
    ------
    InputError
        There is none, another program made it, or another version of this one.
    StoreError
        It cannot be read.
    """
    store = Store(await _database(location, is_new=False))
    return await _after(_looked_through(store.database), store)


async def _looked_through(database: Database) -> None:
    """Check the version; delete what a release left that was interrupted."""
    await check_version(database)
    try:
        await forget(database)
    except DamagedStoreError:
        raise
    except StoreError as error:  # a full disk: what the store holds can be read
        LOG.warning("reports of a released collection are not deleted yet: %s", error)


async def _after(step: Awaitable[None], store: Store) -> Store:
    """Return the store after a step, or close it where that fails."""
    try:
        await step
    except BaseException:
        await store.close()
        raise
    return store


async def _database(location: str | os.PathLike[str], is_new: bool) -> Database:
    if isinstance(location, str) and location.startswith(("postgresql://", "postgres://")):
        from ldpspatial.service.postgres import open_postgres  # noqa: PLC0415  (an extra)

        return await open_postgres(location)
    return SqliteDatabase(file_path("store", location), is_new)
