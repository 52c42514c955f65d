"""What a collection of a store counts, as a part that can be added to others."""

import numpy as np

from client_sdk import Collection
from ldpspatial.collecting.counting import CONFLICTING, ReportCounts, Tally
from ldpspatial.collecting.records import OutputDomain
from ldpspatial.errors import InputError
from ldpspatial.service.closing import check_minimum, close_collection
from ldpspatial.service.store import OPEN, Store


async def count_stored(
    store: Store, collection: Collection, on_invalid: str = "error"
) -> ReportCounts:
    """Return the counts of a closed or released collection.

    They equal what ``count_reports`` finds in the file that ``ldpspatial store export`` writes,
    but for the copies: the store has left those out, and tells how many they were.

    Parameters
    ----------
    store : Store
    collection : Collection
    on_invalid : {"error", "drop"}
        As of ``count_reports``; in a store, bad are the reports that share an id and differ.

    Raises
    ------
    InputError
        The store has no such collection, or it is open or dropped, or counts fewer reports than
        its minimum; or, with "error", reports of it share an id and differ.
    """
    held = await store.held(collection.digest)
    if held.state == OPEN:
        raise InputError("collection must be closed before its counts are final, and is open")
    found = await close_collection(store, collection.digest)  # a closed one stays as it is
    check_minimum(held, found)
    places = np.flatnonzero(found.counts).astype(np.uint32)
    rows, cols = OutputDomain(collection).cells(places)
    tally = Tally(collection)
    tally.add(
        rows.astype(np.int64),
        cols.astype(np.int64),
        np.zeros(len(places), bool),
        found.counts.ravel()[places],
    )
    tally.rejected[CONFLICTING] = found.conflicting
    tally.repeated = found.repeated
    return tally.result(on_invalid, ids_checked=True)
