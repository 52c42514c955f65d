"""Simulated devices, in all processes that the machine has room for.

Each is a device of its own: it is installed, joins by the digest, reports one reading of its
position, and its uploader sends that in a connection of its own. Simulated is the clock of its
uploader, which is put forward by what it has to wait; and the disk of all but the first
``with_files`` devices, whose ledger is in memory.
"""

import multiprocessing
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, Device, Uploader, https_sender
from experiments.end_to_end.memory_ledger import MemoryLedger
from experiments.progress import tracked

Array = NDArray[np.float64]

RAM_DISK = Path("/dev/shm")  # noqa: S108  (ledgers are synced to the disk many times a report)
THREADS = 8  # of a process: most of them wait for an answer
CHUNK = 250  # devices that a process plays before it tells how far it is
MOST_PASSES = 20
ARRIVED, WAITS = "arrived", "waits"


@dataclass(frozen=True)
class Errand:
    """What a process needs to play devices: the app's part, and where the service is."""

    document: str
    digest: str
    epsilon: float
    url: str
    folder: Path


@dataclass
class Skipping:
    """A clock that what has to wait puts forward."""

    skipped: float = 0.0

    def now(self) -> float:
        """Return seconds since 1970."""
        return time.time() + self.skipped

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.skipped += seconds


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a new folder for ledgers, in memory where there is such a place."""
    place = RAM_DISK if os.access(RAM_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="ldpspatial-", dir=place) as folder:
        yield Path(folder)


def send(device: Device, url: str) -> Counter[str]:
    """Send what waits in a device; return what became of it."""
    clock = Skipping()
    uploader = Uploader(device, https_sender(url), wait=clock.wait, now=clock.now)
    found: Counter[str] = Counter()
    for _ in range(MOST_PASSES):
        done = uploader.run_once()
        found.update({ARRIVED: done.delivered, **done.refused})
        if not device.waiting():
            break
        clock.wait(done.wait_s)
    found[WAITS] += device.waiting()
    return found


def report_all(
    collection: Collection, positions: Array, with_files: int, url: str, label: str
) -> Counter[str]:
    """Let a device report from each of (n, 2) positions; return what became of the reports."""
    found: Counter[str] = Counter()
    starts = range(0, len(positions), CHUNK)
    context = multiprocessing.get_context("spawn")
    with scratch() as folder, ProcessPoolExecutor(mp_context=context) as pool:
        errand = Errand(collection.to_json(), collection.digest, collection.epsilon, url, folder)
        chunks = [
            pool.submit(_play, errand, start, positions[start : start + CHUNK], with_files)
            for start in starts
        ]
        for chunk in tracked(as_completed(chunks), label, total=len(chunks)):
            found += chunk.result()
    return found


def _play(errand: Errand, first: int, positions: Array, with_files: int) -> Counter[str]:
    """Play some devices; the ledger wants no thread of its own where the caller is not the main."""

    def play(number: int) -> Counter[str]:
        lat, lon = positions[number - first].tolist()
        return _take_part(errand, errand.folder / str(number), lat, lon, number < with_files)

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(play, range(first, first + len(positions))), Counter())


def _take_part(
    errand: Errand, folder: Path, lat: float, lon: float, has_files: bool
) -> Counter[str]:
    if has_files:
        device = Device.install(folder, cap_epsilon=errand.epsilon)
    else:
        folder.mkdir()
        device = Device(MemoryLedger(folder, round(errand.epsilon * 1e6)))
    device.join(errand.document, digest=errand.digest, max_epsilon=errand.epsilon)
    device.report(errand.digest, lat, lon, event="visit 1")
    found = send(device, errand.url)
    shutil.rmtree(folder)  # 50,000 ledgers would take gigabytes
    return found
