"""Maps of released collections, made in a process of their own and kept while the service runs."""

import asyncio
import logging
import os
import sys
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ldpspatial.errors import InputError
from ldpspatial.service.closing import Counted
from ldpspatial.service.problems import Problem

LOG = logging.getLogger(__name__)
WAIT_S = 20.0  # so long does a request wait for a map; a proxy waits longer
MOST_KEPT = 32
MOST_WAITING = 4
REFUSED = 3  # exit status of that process: what went wrong is on standard error, in one line


@dataclass(frozen=True)
class Wanted:
    """A map: of which collection, and how it is estimated."""

    digest: str
    rule: str
    smoothing: str | None
    intervals: str


class Order(msgspec.Struct, forbid_unknown_fields=True):
    """What a process of its own is told.

    Attributes
    ----------
    document : str
        Of the collection.
    counts : list of list of int
        As :attr:`ldpspatial.service.closing.Counted.counts`.
    received, repeated, conflicting : int
    rule : str
    smoothing : str or None
    intervals : str
    """

    document: str
    counts: list[list[int]]
    received: int
    repeated: int
    conflicting: int
    rule: str
    smoothing: str | None
    intervals: str


class Maps:
    """Makes maps, one at a time, and keeps those asked for last."""

    def __init__(self) -> None:
        # The path is this user's alone. Counts of released collections are not secret to operators.
        self._place = tempfile.TemporaryDirectory(prefix="ldpspatial-maps-")
        self._made: OrderedDict[Wanted, asyncio.Task[Path]] = OrderedDict()
        self._one_at_a_time = asyncio.Semaphore(1)
        self._number = 0

    async def close(self) -> None:
        """End what is being made, and delete everything."""
        for task in self._made.values():
            task.cancel()
        await asyncio.gather(*self._made.values(), return_exceptions=True)
        self._place.cleanup()

    async def folder(self, wanted: Wanted, document: str, counted: Counted) -> Path | None:
        """Return the folder of a map, or None while it is being made.

        Raises
        ------
        InputError
            The map cannot be made so.
        Problem
            Too many maps wait, or making it failed.
        """
        task = self._made.get(wanted)
        if task is None:
            if sum(not each.done() for each in self._made.values()) >= MOST_WAITING:
                raise Problem(503, "Maps are being made; ask again.", headers={"Retry-After": "10"})
            task = asyncio.create_task(self._make(_order(wanted, document, counted)))
            task.add_done_callback(_look)  # asked for again or not, nothing is left unread
            self._made[wanted] = task
            self._forget_oldest()
        self._made.move_to_end(wanted)
        done, _ = await asyncio.wait([task], timeout=WAIT_S)
        if not done:
            return None
        if task.cancelled() or task.exception() is not None:
            self._made.pop(wanted, None)  # whoever asks again lets it be tried again
        return task.result()

    def _forget_oldest(self) -> None:
        for wanted in [each for each, task in self._made.items() if task.done()]:
            if len(self._made) <= MOST_KEPT:
                return
            task = self._made.pop(wanted)
            if not task.cancelled() and task.exception() is None:
                _delete(task.result())

    async def _make(self, order: Order) -> Path:
        self._number += 1
        folder = Path(self._place.name) / str(self._number)
        folder.mkdir()
        try:
            async with self._one_at_a_time:
                await _run(folder, order)
        except BaseException:
            _delete(folder)
            raise
        return folder


async def _run(folder: Path, order: Order) -> None:
    """Run the process that makes a map."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ldpspatial.service.map_making", str(folder)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        # No module of the folder in which the service was started is taken for one of Python's.
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    )
    try:
        _, told = await process.communicate(msgspec.json.encode(order))
    except BaseException:
        process.kill()
        await process.wait()
        raise
    text = told.decode("utf-8", "replace").strip()
    if process.returncode == REFUSED:
        raise InputError(text)
    if process.returncode != 0:
        LOG.error("a map was not made, exit status %s: %s", process.returncode, text[-2000:])
        raise Problem(500, "The map was not made; the log says why.")


def _order(wanted: Wanted, document: str, counted: Counted) -> Order:
    return Order(
        document=document,
        counts=counted.counts.tolist(),
        received=counted.received,
        repeated=counted.repeated,
        conflicting=counted.conflicting,
        rule=wanted.rule,
        smoothing=wanted.smoothing,
        intervals=wanted.intervals,
    )


def _delete(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _look(task: "asyncio.Task[Path]") -> None:
    if not task.cancelled():
        task.exception()
