"""Series: the service opens and closes the collection of each window by its own clock.

Documents and reports hold no time, so the clock of the server alone decides. A window takes reports
for some leeway before it begins and after it ends: the clocks of devices differ, and a report may
wait on its device. What was closed stays closed, whichever way the clock is turned then. A window
that was over, leeway included, before the service came to look is never opened.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from client_sdk import ClientError, Series
from ldpspatial.errors import InputError, LdpSpatialError
from ldpspatial.service.closing import close_collection, finish_closing
from ldpspatial.service.database import Statement, StoreError
from ldpspatial.service.store import LARGEST_MINIMUM, OPEN, Store
from ldpspatial.validate import instance, shown, whole_number

LOG = logging.getLogger(__name__)
DAY_S = 86_400
LONGEST_LEEWAY_S = 366 * DAY_S
MOST_OPEN = 1000  # windows of one series that take reports at the same time
LOOK_S = 20.0  # at most between two looks at the clock: series are added, clocks are set
SHORTEST_S = 0.1  # at least: what fails is tried again, and not at once

_HELD = "SELECT number, digest, document, minimum, leeway FROM series"


@dataclass(frozen=True)
class HeldSeries:
    """A series as the store holds it.

    Attributes
    ----------
    number : int
        Its number in this store.
    digest, document : str
    minimum : int
        Reports that must count before a window is released.
    leeway_s : int
        For how long a window takes reports before it begins and after it ends.
    """

    number: int
    digest: str
    document: str
    minimum: int
    leeway_s: int

    def times(self, series: Series, window: int) -> tuple[int, int]:
        """Return when a window begins to take reports and when it ends, in seconds since 1970."""
        start = series.start(window)
        return start - self.leeway_s, start + series.window_seconds + self.leeway_s

    def taking(self, series: Series, now: float) -> range:
        """Return the windows that take reports at a time in seconds since 1970."""
        length = series.window_seconds
        passed = int(now // 1) - series.first_start
        first = max(1, (passed - self.leeway_s) // length + 1)
        last = min(series.windows, (passed + self.leeway_s) // length + 1)
        return range(first, last + 1)

    def due(self, series: Series, now: float) -> float:
        """Return when the next window is opened or closed; infinity if none ever is."""
        taking = self.taking(series, now)
        times = []
        following = max(1, taking.stop)  # long before the series, none takes reports
        if following <= series.windows:
            times.append(self.times(series, following)[0])
        if taking:
            times.append(self.times(series, taking.start)[1])
        return min(times, default=math.inf)


async def add_series(
    store: Store, series: Series, minimum: int, leeway_s: int = DAY_S
) -> HeldSeries:
    """Take up a series; its windows open when their time comes.

    Raises
    ------
    InputError
        The store has it already, a number is out of its range, or so much leeway would keep more
        than 1,000 windows open at the same time.
    """
    instance("series", series, Series)
    least = whole_number("minimum", minimum, 1, LARGEST_MINIMUM)
    leeway = whole_number("leeway_s", leeway_s, 0, LONGEST_LEEWAY_S)
    if 2 * leeway >= MOST_OPEN * series.window_seconds:
        raise InputError(
            f"leeway_s must be below {MOST_OPEN // 2} windows of {series.window_seconds} s, "
            f"got {leeway}"
        )
    if await find_series(store, series.digest):
        raise InputError(f"series must be new, but the store has {series.digest}")
    row = (series.digest, series.to_json(), least, leeway)
    sql = "INSERT INTO series (digest, document, minimum, leeway) VALUES ($1, $2, $3, $4)"
    await store.database.run([Statement(sql, [row])])
    held = await find_series(store, series.digest)
    if held is None:
        raise StoreError(f"the series {shown(series.digest)} was not stored")
    return held


async def all_series(store: Store) -> list[HeldSeries]:
    """Return all series, in the order in which they were added."""
    return [HeldSeries(*row) for row in await store.database.read(f"{_HELD} ORDER BY number")]


async def find_series(store: Store, digest: str) -> HeldSeries | None:
    """Return the series of a digest, or None."""
    rows = await store.database.read(f"{_HELD} WHERE digest = $1", digest)
    return HeldSeries(*rows[0]) if rows else None


async def turn(store: Store, now: float) -> int:
    """Open the windows whose time has come and close those whose time is over.

    Parameters
    ----------
    store : Store
    now : float
        Seconds since 1970, by the clock of the server.

    Returns
    -------
    int
        Windows that were opened or closed.
    """
    changed = 0
    for held in await all_series(store):
        try:
            series = Series.from_json(held.document, held.digest)
        except ClientError:
            LOG.error("the series %s is not what was added: restore a back-up", held.digest[:12])
            continue  # the others go on
        rows = await store.database.read(
            "SELECT place, state, windows.digest FROM windows "
            "LEFT JOIN collections ON collections.digest = windows.digest WHERE series = $1",
            held.number,
        )
        states = {window: (state, digest) for window, state, digest in rows}
        for window in held.taking(series, now):
            if states.get(window, (None, ""))[0] is None:
                await _open(store, held, series, window)
                changed += 1
        for window, (state, digest) in states.items():
            if state == OPEN and held.times(series, window)[1] <= now:
                await close_collection(store, digest)
                changed += 1
    return changed


async def _open(store: Store, held: HeldSeries, series: Series, window: int) -> None:
    """Open a window; taken up again where a crash, or another service, came in between."""
    collection = series.collection(window)
    sql = (
        "INSERT INTO windows (series, place, digest) VALUES ($1, $2, $3) "
        "ON CONFLICT (digest) DO NOTHING"
    )
    row = (held.number, window, collection.digest)
    await store.database.run([Statement(sql, [row])])
    if await store.find(collection.digest) is None:
        await store.add(collection, held.minimum)


class Clock:
    """Looks at the time, and turns all series, while the service runs.

    Parameters
    ----------
    store : Store
    changed : callable
        Awaited after windows were opened or closed.
    now : callable
        The time in seconds since 1970.
    """

    def __init__(
        self,
        store: Store,
        changed: Callable[[], Awaitable[None]],
        now: Callable[[], float] = time.time,
    ):
        self._store = store
        self._changed = changed
        self._now = now
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look; needs a running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; a window that is being closed is taken up at the next start."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def look(self) -> None:
        """Turn all series once; what fails is tried again at the next look."""
        try:
            if await turn(self._store, self._now()):
                await self._changed()
        except Exception as error:
            # Whatever it is: the next look may fare better, and a clock that stands loses windows.
            LOG.error("a window was not opened or closed, and will be: %s", _told(error))

    async def _run(self) -> None:
        try:
            await finish_closing(self._store)  # what an earlier process did not come to the end of
        except Exception as error:
            LOG.error("a collection was not counted to the end: %s", _told(error))
        while True:
            await self.look()
            await asyncio.sleep(await self.pause())

    async def pause(self) -> float:
        """Return the seconds until the next look: until a window is due, and no more than 20."""
        now = self._now()
        try:
            held = await all_series(self._store)
            due = [each.due(Series.from_json(each.document), now) - now for each in held]
        except (StoreError, ClientError):  # the look has said so
            return LOOK_S
        return min(LOOK_S, max(SHORTEST_S, min(due, default=LOOK_S)))


def _told(error: Exception) -> str:
    """Return what may be logged: texts of our own, and of others the kind alone."""
    return str(error) if isinstance(error, LdpSpatialError | StoreError) else type(error).__name__
