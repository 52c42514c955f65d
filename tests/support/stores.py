"""Stores filled with random reports, for the tests of what becomes of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import numpy as np

from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.service import upkeep
from ldpspatial.service.store import Store, make_store, open_store
from tests.support.service import CELLS, COLLECTION

Result = TypeVar("Result")
RNG = np.random.default_rng(5)
DOMAIN = OutputDomain(COLLECTION)


def on(location: str, act: Callable[[Store], Awaitable[Result]], make: bool = False) -> Result:
    """Act on a store that is opened for it."""

    async def run() -> Result:
        store = await (make_store if make else open_store)(location)
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def random_records(n: int, names: np.ndarray | None = None) -> Records:
    """Return reports of random cells, with new ids or with some of those given."""
    cells = np.array(CELLS)[RNG.integers(len(CELLS), size=n)]
    ids = RNG.bytes(16 * n) if names is None else names[RNG.integers(len(names), size=n)].tobytes()
    return records_of(ids, DOMAIN.places(cells[:, 0], cells[:, 1]))


async def fill(store: Store) -> int:
    """Store reports with repeats and conflicts, some gathered and merged; return how many."""
    number = (await store.add(COLLECTION, 10)).number
    few = np.frombuffer(RNG.bytes(16 * 300), "V16")
    stored = 0
    for k in range(60):
        fresh = random_records(50)
        again = random_records(20, few)  # of few ids, so that they repeat and conflict
        batch = np.concatenate([fresh, again, fresh[:5]])
        assert await store.append({number: batch}) == set()
        stored += len(batch)
        if k % 5 == 4:
            await upkeep.gather(store.database)
            while await upkeep.merge(store.database):
                pass
    return stored
