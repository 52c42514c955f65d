"""What lies on the disk after a run: nothing that tells whose a report is, or what came with it."""

import asyncio
import random
from pathlib import Path

import numpy as np

from ldpspatial.service.store import make_store
from tests.support.service import COLLECTION, Server, lines, report, serving

AGENT = "planted-agent-7f3a"
FORWARDED = "203.0.113.77"
BATCHES, SIZE = 60, 20


async def _new(path: Path) -> None:
    store = await make_store(path)
    await store.add(COLLECTION, 1)
    await store.close()


def send(server: Server, chance: random.Random) -> list[list[bytes]]:
    """Send batches with planted headers; return the ids of each."""
    batches = []
    for _ in range(BATCHES):
        batch = [report() for _ in range(SIZE)]
        chance.shuffle(batch)
        status, headers, _ = server.post(
            lines(batch), User_Agent=AGENT, X_Forwarded_For=FORWARDED, Cookie=f"who={AGENT}",
            Referer=f"https://{AGENT}.example", Date="Tue, 03 Mar 2026 05:06:07 GMT",
        )  # fmt: skip
        assert status == 204
        assert "set-cookie" not in headers
        batches.append([bytes.fromhex(each.id) for each in batch])
    return batches


def places(held: bytes, names: list[bytes]) -> np.ndarray:
    found = np.array([held.find(name) for name in names])
    assert (found >= 0).all()
    return found


def test_no_byte_of_the_store_tells_sender_time_or_neighbours(tmp_path: Path) -> None:
    """Neighbours in a batch against the store's order, over all batches.

    If the order tells nothing, the ranks of a batch are a random choice: the sum of the gaps
    between consecutive ranks of a batch has a known mean, and a z-score below -5 has a probability
    under 3e-7. Unsorted, every gap would be 1.
    """
    path = tmp_path / "store.db"
    asyncio.run(_new(path))
    with serving(path) as server:
        batches = send(server, random.Random(4))  # noqa: S311
        server.stop()
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    everything = b"".join(files.values())
    for planted in (AGENT, FORWARDED, "127.0.0.1", "2026", "Mozilla"):
        assert planted.encode() not in everything, planted
    assert not any(bytes([203, 0, 113, 77]) in content for content in files.values())
    flat = [name for batch in batches for name in batch]
    assert all(everything.count(name) == 1 for name in flat)  # no second copy, in no order
    rank = places(files["store.db"], flat).argsort().argsort().reshape(BATCHES, SIZE)
    gaps = np.abs(np.diff(rank, axis=1)).ravel()
    n = BATCHES * SIZE
    rng = np.random.default_rng(1)
    shuffled = [
        np.abs(np.diff(rng.permutation(n).reshape(BATCHES, SIZE), axis=1)).sum()
        for _ in range(2000)
    ]
    z = (gaps.sum() - np.mean(shuffled)) / np.std(shuffled)
    assert z > -5
    in_order = np.abs(np.diff(np.arange(n).reshape(BATCHES, SIZE), axis=1)).sum()
    assert (in_order - np.mean(shuffled)) / np.std(shuffled) < -50  # what this would catch
