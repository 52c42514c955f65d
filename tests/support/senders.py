"""Clients that send reports until they are acknowledged, and what must be in the store then."""

import asyncio
import http.client
import random
import threading
import time
from collections import Counter
from contextlib import closing

from client_sdk import Report
from ldpspatial.collecting.records import OutputDomain
from ldpspatial.service.closing import Counted, close_collection, stored_reports
from ldpspatial.service.store import make_store, open_store
from tests.support.service import CELLS, COLLECTION, NDJSON, Server, lines, report


class Sender(threading.Thread):
    """Sends new reports, alone and in batches, each again until it is acknowledged."""

    def __init__(self, server: Server, seed: int):
        super().__init__(daemon=True)
        self._server = server
        self._random = random.Random(seed)  # noqa: S311
        self.stopping = threading.Event()
        self.sent: dict[str, Report] = {}
        self.acknowledged: set[str] = set()
        self.half_answered = 0

    def run(self) -> None:
        while not self.stopping.is_set():
            size = self._random.choice([1, 1, 1, 20, 200])
            batch = [report(self._random.choice(CELLS)) for _ in range(size)]
            self.sent.update((each.id, each) for each in batch)
            while not self._is_stored(lines(batch)):
                time.sleep(0.002)
            self.acknowledged.update(each.id for each in batch)

    def _is_stored(self, body: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=20)
        try:
            with closing(connection):
                connection.request("POST", "/reports", body, {"Content-Type": NDJSON})
                response = connection.getresponse()
                response.read()
                status = response.status
        except OSError:
            return False  # no answer
        except http.client.HTTPException:
            self.half_answered += 1
            return False
        assert status in (204, 503)
        return status == 204


async def found(location: str) -> tuple[Counted, Counter[bytes]]:
    """Close the collection; return what counts, and how often each id is in the store."""
    store = await open_store(location)
    counted = await close_collection(store, COLLECTION.digest)
    ids: Counter[bytes] = Counter()
    if counted.received:  # what counts nothing gives no reports
        async for records in stored_reports(store, COLLECTION.digest):
            ids.update(row.tobytes() for row in records["id"])
    await store.close()
    return counted, ids


async def new_store(location: str) -> None:
    store = await make_store(location)
    await store.add(COLLECTION, 1)
    await store.close()


def check(location: str, senders: list[Sender]) -> None:
    """Compare what the store counts with what was sent and acknowledged."""
    sent = {name: each for sender in senders for name, each in sender.sent.items()}
    acknowledged = {name for sender in senders for name in sender.acknowledged}
    counted, ids = asyncio.run(found(location))
    stored = {name.hex() for name in ids}
    assert acknowledged <= stored  # nothing lost
    assert stored <= sent.keys()  # nothing invented
    assert counted.conflicting == 0
    assert counted.n == len(stored) == ids.total()  # nothing twice
    domain = OutputDomain(COLLECTION)
    expected = Counter((sent[name].row, sent[name].col) for name in stored)
    radius = COLLECTION.table.radius
    assert counted.counts.shape == (domain.side, domain.side)
    assert all(counted.counts[r + radius, c + radius] == n for (r, c), n in expected.items())
    assert len(acknowledged) > 100  # there was something to lose
