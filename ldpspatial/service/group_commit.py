"""Stores the reports of many requests in one transaction.

While one transaction waits for the disk, requests gather for the next: the more there are, the
more share a sync. One task does all the writing, so that upkeep falls between two transactions and
never holds one up for longer than a step takes.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from ldpspatial.collecting.records import Records
from ldpspatial.service.database import DamagedStoreError, StoreError
from ldpspatial.service.failure_log import FailureLog
from ldpspatial.service.store import Store
from ldpspatial.service.upkeep import (
    GATHERED_AT_ONCE,
    LARGEST_MERGED,
    SMALL,
    WORTH_JOINING,
    gather,
    holds_at_most,
    join,
    merge,
    put_in_order,
    settle,
    ungathered,
)

MOST_WAITING = 1 << 20  # reports, 20 MB: beyond this, requests are told to come back
LONGEST_UNGATHERED_S = 60.0  # so long at most do reports lie as they arrived
STILL_MINUTES = 10  # so long nothing arrived: then no two chunks of a part are left apart
SETTLED_ON_STOP = 5_000_000  # reports: more take longer than who stops a service waits


class BusyError(StoreError):
    """More reports wait to be stored than the service holds."""


@dataclass
class _Group:
    """What the next transaction stores."""

    arrived: dict[int, list[Records]] = field(default_factory=dict)
    waiting: list["asyncio.Future[set[int]]"] = field(default_factory=list)
    number: int = 0


@dataclass
class CommitNumbers:
    """What was done since the service started.

    Attributes
    ----------
    stored : int
        Reports.
    commits, failures : int
        Transactions that stored reports, and that did not.
    seconds : float
        Of all commits together.
    is_failing : bool
        Whether the last transaction failed.
    refused : Counter of str
        Reports by reason.
    """

    stored: int = 0
    commits: int = 0
    failures: int = 0
    seconds: float = 0.0
    is_failing: bool = False
    refused: Counter[str] = field(default_factory=Counter)


class GroupCommit:
    """Takes reports from requests and stores them together.

    Parameters
    ----------
    store : Store

    Attributes
    ----------
    failures : FailureLog
    refused : dict
        How many reports were refused, by collection and reason, that are not in the store yet.
    """

    def __init__(self, store: Store):
        self._store = store
        self.failures = FailureLog()
        self._damage: DamagedStoreError | None = None
        self._group = _Group()
        self._wake = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self._ungathered = 0  # reports
        self._minute_ends = time.monotonic()  # at once: an earlier process may have left some
        self._merging = True
        self._is_untidy = True
        self._gathered = 0  # in this minute
        self._quiet_minutes = 0  # in which few reports arrived, one after the other
        self._still_minutes = 0  # in which none did
        self.refused: dict[tuple[int, str], int] = {}
        self.numbers = CommitNumbers()

    def start(self) -> None:
        """Begin to store; needs a running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Store what waits, gather all that arrived, and end."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task

    async def add(self, arrived: Mapping[int, Records]) -> set[int]:
        """Store reports; return the collections that are not open any more, durably or not at all.

        Raises
        ------
        BusyError
            Too many reports wait already.
        DamagedStoreError
            The store was found damaged: what it took now would be lost with it.
        StoreError
            Nothing of it was stored.
        """
        if self._damage is not None:
            raise self._damage
        group = self._group
        number = sum(map(len, arrived.values()))
        if self._stopping or group.number + number > MOST_WAITING:
            raise BusyError("more reports wait to be stored than the service holds")
        for collection, records in arrived.items():
            group.arrived.setdefault(collection, []).append(records)
        group.number += number
        stored: asyncio.Future[set[int]] = asyncio.get_running_loop().create_future()
        group.waiting.append(stored)
        self._wake.set()
        return await stored

    def note(self, failure: StoreError) -> None:
        """Log a failure of the store; take no more reports where it is damaged."""
        self.failures.tell(str(failure))
        if isinstance(failure, DamagedStoreError):
            self._damage = failure

    def refuse(self, collection: int, reason: str) -> None:
        """Count a report that was refused; it is written with the next transaction of upkeep."""
        key = (collection, reason)
        self.refused[key] = self.refused.get(key, 0) + 1
        self.numbers.refused[reason] += 1

    @property
    def works(self) -> bool:
        """Whether the last transaction succeeded, and no damage was found."""
        return self._damage is None and not self.numbers.is_failing

    @property
    def waiting(self) -> int:
        """Reports that wait for the next transaction."""
        return self._group.number

    async def _run(self) -> None:
        while not (self._stopping and not self._group.waiting):
            if not self._is_upkeep_due():
                await self._awakened()
            group, self._group = self._group, _Group()
            self._wake.clear()
            if group.waiting:
                await self._commit(group)
            if self._is_upkeep_due():
                await self._upkeep(self._step)
        if self._damage is None:
            await self._upkeep(self._finish)

    async def _awakened(self) -> None:
        """Wait until there is something to store, or time for upkeep."""
        seconds = LONGEST_UNGATHERED_S
        if self._damage is None:
            seconds = max(0.0, self._minute_ends - time.monotonic())
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    async def _commit(self, group: _Group) -> None:
        began = time.monotonic()
        try:
            together = {
                number: records[0] if len(records) == 1 else np.concatenate(records)
                for number, records in group.arrived.items()
            }
            closed = await self._store.append(together)
        except Exception as error:
            # Whatever it is, the next group may fare better.
            failure = _as_store_error(error)
            self.note(failure)
            self.numbers.failures += 1
            self.numbers.is_failing = True
            for stored in group.waiting:
                if not stored.done():
                    stored.set_exception(failure)
            return
        if self.numbers.is_failing:
            self.numbers.is_failing = False
            self.failures.recovered()
        self._ungathered += group.number
        self.numbers.stored += sum(
            len(records) for number, records in together.items() if number not in closed
        )
        self.numbers.commits += 1
        self.numbers.seconds += time.monotonic() - began
        for stored in group.waiting:
            if not stored.done():  # whoever asked may have gone
                stored.set_result(closed)

    def _is_upkeep_due(self) -> bool:
        if self._damage is not None:
            return False  # what is there stays as it is
        is_busy = self._merging or self._is_untidy or self._ungathered >= GATHERED_AT_ONCE
        return is_busy or self._is_minute_over()

    def _is_minute_over(self) -> bool:
        return time.monotonic() >= self._minute_ends

    async def _upkeep(self, step: Callable[[], Awaitable[None]]) -> None:
        """Take a step; where it fails, wait: what is stored is safe, and requests go on."""
        try:
            await step()
        except Exception as error:
            self.note(_as_store_error(error))
            self._merging = self._is_untidy = False
            self._ungathered = min(self._ungathered, GATHERED_AT_ONCE - 1)
            self._minute_ends = time.monotonic() + LONGEST_UNGATHERED_S

    async def _step(self) -> None:
        """Gather what arrived, or merge once, or give up what was deleted.

        Gathering comes first: under full load merging would take nearly all steps, and reports
        would lie as they arrived until the load ends or the collection is closed.
        """
        if self._is_minute_over():
            await self._end_minute()
        elif self._ungathered >= GATHERED_AT_ONCE:
            await self._gather()
        elif self._merging:
            self._merging = await self._merge()
        else:
            await self._tidy()

    async def _gather(self) -> None:
        gathered = await gather(self._store.database)
        self._gathered += gathered
        self._merging = self._merging or gathered > 0
        # Looked up: others may gather too, or have left some.
        self._ungathered = await ungathered(self._store.database) if gathered else 0

    async def _end_minute(self) -> None:
        """Gather all; have chunks joined where few came, and what was deleted given up."""
        if self._is_untidy:  # merging took all of the minute
            await self._tidy()
        await self._gather()
        if self._ungathered:
            return  # more rows than are gathered at once: the next step takes up these
        self._quiet_minutes = self._quiet_minutes + 1 if self._gathered < SMALL else 0
        self._still_minutes = 0 if self._gathered else self._still_minutes + 1
        if self._quiet_minutes == 1 or self._still_minutes == STILL_MINUTES:
            self._merging = True
        self._gathered = 0
        self._is_untidy = True
        self._minute_ends = time.monotonic() + LONGEST_UNGATHERED_S
        await self._write_refused()

    async def _merge(self) -> bool:
        """Merge once; where few reports come, until the chunks of a part tell little of order."""
        database = self._store.database
        if await merge(database):
            return True
        times = WORTH_JOINING if self._still_minutes < STILL_MINUTES else LARGEST_MERGED
        return bool(self._quiet_minutes) and await join(database, times)

    async def _tidy(self) -> None:
        """Give up what was deleted; where somebody reads it, try again a minute later."""
        self._is_untidy = False
        database = self._store.database
        is_still = self._still_minutes == STILL_MINUTES
        if is_still:
            await put_in_order(database)
        await database.tidy(is_still and await holds_at_most(database, SETTLED_ON_STOP))

    async def _finish(self) -> None:
        await self._write_refused()
        await settle(self._store.database, SETTLED_ON_STOP)

    async def _write_refused(self) -> None:
        if self.refused:
            refused = self.refused
            self.refused = {}
            try:
                await self._store.refuse(refused)
            except BaseException:
                for key, number in refused.items():
                    self.refused[key] = self.refused.get(key, 0) + number
                raise


def _as_store_error(error: Exception) -> StoreError:
    """Return an error whose text may be logged: that of others may hold what was sent."""
    if isinstance(error, StoreError):
        return error
    return StoreError(f"the store did not do it: {type(error).__name__}")
