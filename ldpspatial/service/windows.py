"""Series: the service opens and closes the collection of each window by its own clock.

Documents and reports hold no time, so the clock of the server alone decides. A window takes reports
for some leeway before it begins and after it ends: the clocks of devices differ, and a report may
wait on its device. What was closed stays closed, whichever way the clock is turned then. A window
that was over, leeway included, before the service came to look is never opened.

A device drops a report that is refused for good. So reports of a window that is late to open (a
full disk, a locked store), or that opens soon, are told to come again. One series that is damaged
keeps no other from its turn, and no window waits to open until closed ones are counted.
"""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from client_sdk import ClientError, Series
from ldpspatial.errors import InputError, LdpSpatialError
from ldpspatial.service.closing import close_collection, finish_closing
from ldpspatial.service.database import DamagedStoreError, Statement, StoreError
from ldpspatial.service.failure_log import FailureLog
from ldpspatial.service.store import CLOSED, LARGEST_MINIMUM, OPEN, Store
from ldpspatial.validate import instance, shown, whole_number

Result = TypeVar("Result")

DAY_S = 86_400
LONGEST_LEEWAY_S = 366 * DAY_S
MOST_OPEN = 1000  # windows of one series that take reports at the same time
LOOK_S = 20.0  # at most between two looks at the clock: series are added, clocks are set
LATE_S = 3 * LOOK_S  # a look that is older does not tell which windows are due
SOON_S = 2 * LATE_S  # so long before it opens a window is not refused for good, but told to wait
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

    def series(self) -> Series:
        """Return what was added.

        Raises
        ------
        StoreError
            The row is damaged.
        """
        numbers = (self.number, self.minimum, self.leeway_s)
        try:
            series = Series.from_json(self.document, self.digest)
        except ClientError:
            series = None
        if series is None or not all(isinstance(number, int) for number in numbers):
            raise StoreError(
                f"the series {str(self.digest)[:12]} is not what was added: restore a back-up"
            )
        return series

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


@dataclass(frozen=True)
class Due:
    """What is to be done for a series, and which of its windows take reports now or soon.

    Attributes
    ----------
    held : HeldSeries
    series : Series
    opens : list of int
        Windows.
    closes : list of str
        Digests.
    near : set of bytes
        Digests, as ASCII, of the windows that take reports or soon will.
    """

    held: HeldSeries
    series: Series
    opens: list[int]
    closes: list[str]
    near: set[bytes]


async def _due(store: Store, held: HeldSeries, now: float) -> Due:
    """Look what is to be done for a series; this writes nothing."""
    series = held.series()
    rows = await store.database.read(
        "SELECT place, state, windows.digest FROM windows "
        "LEFT JOIN collections ON collections.digest = windows.digest WHERE series = $1",
        held.number,
    )
    states = {window: (state, digest) for window, state, digest in rows}
    taking = held.taking(series, now)
    near = range(taking.start, held.taking(series, now + SOON_S).stop)
    return Due(
        held,
        series,
        opens=[window for window in taking if states.get(window, (None, ""))[0] is None],
        closes=[
            digest
            for window, (state, digest) in states.items()
            if state == OPEN and held.times(series, window)[1] <= now
        ],
        near={
            (states[k][1] if k in states else series.collection(k).digest).encode() for k in near
        },
    )


async def _open(store: Store, held: HeldSeries, series: Series, window: int) -> str:
    """Open a window and return its digest.

    It is taken up again where a crash, or another service, came in between.
    """
    collection = series.collection(window)
    sql = (
        "INSERT INTO windows (series, place, digest) VALUES ($1, $2, $3) "
        "ON CONFLICT (digest) DO NOTHING"
    )
    row = (held.number, window, collection.digest)
    await store.database.run([Statement(sql, [row])])
    if await store.find(collection.digest) is None:
        await store.add(collection, held.minimum)
    return collection.digest


async def _take_no_more(store: Store, digest: str) -> str:
    """Close a window that is over, without counting it; return its digest."""
    sql = "UPDATE collections SET state = $2 WHERE digest = $1 AND state = $3"
    await store.database.run([Statement(sql, [(digest, CLOSED, OPEN)])])
    return digest


class Clock:
    """Looks at the time, and opens and closes the windows of all series, while the service runs.

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
        self._tasks: list[asyncio.Task[None]] = []
        self._failures: defaultdict[str, FailureLog] = defaultdict(FailureLog)
        self._uncounted: asyncio.Queue[str] = asyncio.Queue()
        self._looked_at = -math.inf  # when all series were read without a failure
        self._series = 0
        self._near: set[bytes] = set()

    def start(self) -> None:
        """Begin to look; needs a running event loop."""
        self._tasks = [asyncio.create_task(self._run()), asyncio.create_task(self._count_all())]

    async def stop(self) -> None:
        """End; a window that is being counted is taken up at the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def may_open(self, digests: set[bytes], series: int) -> bool:
        """Tell whether collections that the store has not may be windows that open now or soon.

        Whoever says "no collection of mine" says it for good: so not of a window that is late,
        nor while this clock does not know what is due.

        Parameters
        ----------
        digests : set of bytes
            As ASCII.
        series : int
            How many series the store has.
        """
        is_late = not 0 <= self._now() - self._looked_at <= LATE_S
        return is_late or series != self._series or not self._near.isdisjoint(digests)

    async def look(self) -> None:
        """Open and close what is due; what fails is tried again at the next look.

        Closed windows are counted by another task: the next ones open meanwhile.
        """
        due = await self._look_what_is_due(self._now())
        opened = [
            await self._tried(_open(self._store, each.held, each.series, window))
            for each in due
            for window in each.opens
        ]
        if any(opened):
            await self._tried(self._changed())
        closed = [
            await self._tried(_take_no_more(self._store, digest))
            for each in due
            for digest in each.closes
        ]
        if any(closed):
            await self._tried(self._changed())
        for digest in filter(None, closed):
            self._uncounted.put_nowait(digest)

    async def _look_what_is_due(self, now: float) -> list[Due]:
        """Read all series; those that can be read go on without the others."""
        found = await self._tried(all_series(self._store))
        tried = [await self._tried(_due(self._store, held, now)) for held in found or ()]
        due = [each for each in tried if each]
        # Set at once: who asks meanwhile gets the answer of one look.
        self._looked_at = -math.inf if found is None or None in tried else now
        self._series = len(tried)
        self._near = {digest for each in due for digest in each.near}
        return due

    @property
    def uncounted(self) -> int:
        """Windows that were closed here and are not counted yet."""
        return self._uncounted.qsize()

    async def _count_all(self) -> None:
        """Count what is closed, one after the other."""
        # First what an earlier process did not come to the end of.
        await self._tried(finish_closing(self._store))
        while True:
            await self.count_next()

    async def count_next(self) -> None:
        """Wait until a window is closed, and count it; what fails is tried again later."""
        digest = await self._uncounted.get()
        try:
            await close_collection(self._store, digest)
        except DamagedStoreError as error:
            self._tell(error)
        except Exception as error:
            self._tell(error)
            self._uncounted.put_nowait(digest)
            await asyncio.sleep(LOOK_S)

    async def _tried(self, step: Awaitable[Result]) -> Result | None:
        """Take a step; where it fails, say so, and the others go on."""
        try:
            return await step
        except Exception as error:
            # Whatever it is: the next look may fare better, and a clock that stands loses windows.
            self._tell(error)
            return None

    def _tell(self, error: Exception) -> None:
        """Log a failure once a minute: texts of our own, and of others the kind alone."""
        is_ours = isinstance(error, LdpSpatialError | StoreError)
        failure = str(error) if is_ours else type(error).__name__
        self._failures[failure].tell(f"a window was not opened, closed or counted: {failure}")

    async def _run(self) -> None:
        while True:
            await self.look()
            pause = await self._tried(self.pause())
            await asyncio.sleep(LOOK_S if pause is None else pause)

    async def pause(self) -> float:
        """Return the seconds until the next look: until a window is due, and no more than 20."""
        now = self._now()
        times = [now + LOOK_S]
        with suppress(StoreError):  # the look says so
            for each in await all_series(self._store):
                with suppress(StoreError):
                    times.append(each.due(each.series(), now))
        return max(SHORTEST_S, min(times) - now)
