"""How long closing a collection takes: every repeated and conflicting id found, reports counted."""

import asyncio
import tempfile
import time
from pathlib import Path

import numpy as np

from client_sdk import Collection, Grid
from experiments.benchmarks.timing import Table, in_process
from ldpspatial.collecting.records import OutputDomain, Records, records_of
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.store import make_store

REPORTS = 100_000_000
REQUEST = 1000  # reports
CONNECTIONS = 8  # requests at a time, which share a commit
AGAIN = 10  # of these in each request the next one holds a copy, and so many conflict

COLLECTION = Collection.create("bench", Grid.from_center(52.52, 13.405, 20_000, 15), 3.5)


def closing(reports: int = REPORTS) -> Table:
    """Fill a store as the service does; close it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store.db")
        began = time.perf_counter()
        repeated, conflicting = asyncio.run(_filled(path, reports))
        filled = time.perf_counter() - began
        size = path.stat().st_size
        found = in_process(_closed(path))
    expected = (reports, repeated, conflicting, reports - repeated - conflicting)
    told = (found["received"], found["repeated"], found["conflicting"], found["n"])
    if told != expected:
        raise RuntimeError(f"received, repeated, conflicting, counted: {told}, not {expected}")
    what = f"close {reports:,} reports, ids checked"
    measured = f"{found['seconds']:.1f} s, {found['peak_mb']:.0f} MB peak"
    planted = f"{repeated:,} repeated and {conflicting:,} conflicting ones found, as many as sent"
    kept = f"{size / reports:.1f} bytes a report; stored in {filled:.0f} s"
    return ["what", "closed in", "what came out", "the store"], [[what, measured, planted, kept]]


def _closed(path: Path) -> str:
    return (
        "import asyncio\n"
        "from ldpspatial.service.closing import close_collection\n"
        "from ldpspatial.service.store import open_store\n"
        "async def close():\n"
        f"    store = await open_store({str(path)!r})\n"
        f"    found = await close_collection(store, {COLLECTION.digest!r})\n"
        "    await store.close()\n"
        "    return found\n"
        "began = time.perf_counter()\n"
        "found = asyncio.run(close())\n"
        "result['seconds'] = time.perf_counter() - began\n"
        "result.update(found.facts(), n=found.n)"
    )


async def _filled(path: Path, reports: int) -> tuple[int, int]:
    """Store reports by group commits, with upkeep between them; return what repeats, and conflicts.

    Of the first reports of a request the next one holds copies, and reports with the ids of the
    following ones and another cell.
    """
    store = await make_store(path)
    number = (await store.add(COLLECTION, 1)).number
    commits = GroupCommit(store)
    commits.start()
    share = reports // CONNECTIONS
    await asyncio.gather(*(_sent(commits, number, share, k) for k in range(CONNECTIONS)))
    await commits.stop()
    await store.close()
    followed = CONNECTIONS * (share // REQUEST - 1)
    return followed * AGAIN, followed * 2 * AGAIN


async def _sent(commits: GroupCommit, number: int, reports: int, seed: int) -> None:
    rng = np.random.default_rng([seed, reports])
    domain = OutputDomain(COLLECTION)
    places = domain.places(*np.array(COLLECTION.table.output_cells()).T)
    before: Records | None = None
    for _ in range(reports // REQUEST):
        drawn = places[rng.integers(len(places), size=REQUEST)]
        request = records_of(rng.bytes(16 * REQUEST), drawn)
        if before is not None:
            request[-2 * AGAIN : -AGAIN] = before[:AGAIN]
            request["id"][-AGAIN:] = before["id"][AGAIN : 2 * AGAIN]
            was = before["place"][AGAIN : 2 * AGAIN]
            request["place"][-AGAIN:] = np.where(was == places[0], places[1], places[0])
        if await commits.add({number: request}):
            raise RuntimeError("the store took no more reports")
        before = request
