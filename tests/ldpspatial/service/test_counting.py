"""A store as a part of a count: what count_reports says of its Parquet export."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from ldpspatial import ReportCounts, count_reports
from ldpspatial.collecting.counting import CONFLICTING
from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.errors import InputError
from ldpspatial.service.closing import close_collection, release
from ldpspatial.service.counting import count_stored
from ldpspatial.service.database import Statement
from ldpspatial.service.exporting import write_parquet
from ldpspatial.service.store import Store, make_store
from tests.support.service import CELLS, COLLECTION, OTHER

Result = TypeVar("Result")


def on_new(location: str, act: Callable[[Store], Awaitable[Result]]) -> Result:
    """Act on a new store."""

    async def run() -> Result:
        store = await make_store(location)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def planted() -> Records:
    """Return 400 reports, 30 of them again, and 20 with the id of one of these and another cell."""
    rng = np.random.default_rng(7)
    cells = np.array(CELLS)[rng.integers(len(CELLS), size=400)]
    places = OutputDomain(COLLECTION).places(cells[:, 0], cells[:, 1])
    once = records_of(rng.bytes(16 * 400), places)
    other = once[100:120].copy()
    free = np.setdiff1d(places, other["place"])
    other["place"] = free[: len(other)]
    return np.concatenate([once, once[50:80], other])


def test_a_closed_store_counts_what_its_export_counts(location: str, tmp_path: Path) -> None:
    async def act(store: Store) -> tuple[ReportCounts, ReportCounts]:
        held = await store.add(COLLECTION, 10)
        for part in np.array_split(planted(), 7):
            await store.append({held.number: part})
        with pytest.raises(InputError, match="must be closed before its counts are final"):
            await count_stored(store, COLLECTION)
        await close_collection(store, COLLECTION.digest)
        await write_parquet(store, COLLECTION.digest, tmp_path / "r.parquet")
        with pytest.raises(InputError, match="40 share an id with a different report"):
            await count_stored(store, COLLECTION)
        closed = await count_stored(store, COLLECTION, "drop")
        await release(store, COLLECTION.digest)
        return closed, await count_stored(store, COLLECTION, "drop")

    closed, released = on_new(location, act)
    exported = count_reports(tmp_path / "r.parquet", COLLECTION, "drop")
    for found in (closed, released):
        np.testing.assert_array_equal(found.counts, exported.counts)
        assert found.counts.dtype == exported.counts.dtype
        assert found.rejected == exported.rejected == {CONFLICTING: 40}
        assert (found.n, found.repeated, found.ids_checked) == (380, 30, True)
    assert exported.repeated == 0  # the store has left them out


def test_counts_that_a_crash_kept_from_being_written_are_made_up_for(location: str) -> None:
    async def act(store: Store) -> ReportCounts:
        held = await store.add(COLLECTION, 10)
        await store.append({held.number: planted()[:400]})
        await close_collection(store, COLLECTION.digest)
        await store.database.run([Statement("DELETE FROM counts")])
        return await count_stored(store, COLLECTION)

    assert on_new(location, act).n == 400


def test_a_collection_that_the_store_lacks_or_has_nothing_of_is_refused(tmp_path: Path) -> None:
    async def act(store: Store) -> None:
        await store.add(COLLECTION, 10)
        await close_collection(store, COLLECTION.digest)
        with pytest.raises(InputError, match="at least 10 reports before"):
            await count_stored(store, COLLECTION)
        with pytest.raises(InputError, match="collection must be one that the store has"):
            await count_stored(store, OTHER)

    on_new(str(tmp_path / "store.db"), act)
