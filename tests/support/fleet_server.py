"""A server whose clock the tests turn, and which can be given a fault."""

from collections.abc import Awaitable, Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from ldpspatial.collecting.records import Records, Tally, hashes
from ldpspatial.service import app, closing, group_commit, upkeep, uploads, windows
from ldpspatial.service.limits import Limits
from ldpspatial.service.server import make_server
from ldpspatial.service.store import Store
from tests.support.service import Server

LOOK_S = 0.1  # between two looks at the clock, which runs many times faster here

Fault = Callable[[], None]


class TimedServer(Server):
    """A server with a clock that stands still until it is turned.

    Parameters
    ----------
    location : str or Path
        A store that exists.
    now : float
        Seconds since 1970.
    fault : callable, optional
        Called in the process of the server, to break it.
    """

    def __init__(self, location: str | Path, now: float, fault: Fault | None = None):
        super().__init__(location, Limits(requests_a_minute=0))
        self._fault = fault
        self._now = self._processes.Value("d", now)
        self._looked = self._processes.Value("d", 0.0)

    def _new_process(self) -> BaseProcess:
        arguments = self._location, self.port, self._limits, self._now, self._looked, self._fault
        return self._processes.Process(target=_serve, args=arguments)

    def turn(self, now: float) -> None:
        """Turn the clock."""
        self._now.value = now

    def has_looked(self, now: float) -> bool:
        """Tell whether the server has done what is due at a time."""
        return bool(self._looked.value >= now)


def _serve(
    location: str, port: int, limits: Limits, now: Any, looked: Any, fault: Fault | None
) -> None:
    class Clock(windows.Clock):
        async def look(self) -> None:
            before = now.value
            await super().look()
            looked.value = before

    def make_clock(store: Store, changed: Callable[[], Awaitable[None]]) -> Clock:
        return Clock(store, changed, lambda: now.value)

    windows.LOOK_S = LOOK_S
    app.Clock = make_clock  # type: ignore[assignment,misc]
    if fault is not None:
        fault()
    make_server(app.make_app(location, limits), limits, "127.0.0.1", port).run()


def count_copies() -> None:
    """Break the server: what is sent twice counts twice."""

    def ordered(records: Records, key: bytes) -> Records:
        return records[np.argsort(hashes(records["id"], key), kind="stable")]

    upkeep.distinct = ordered
    closing.distinct = ordered
    closing.tally = lambda records, key: Tally(records["place"], 0)


def answer_too_early() -> None:
    """Break the server: now and then it acknowledges what it has not stored."""
    add = group_commit.GroupCommit.add
    asked = [0]

    async def lossy(self: Any, arrived: Any) -> set[int]:
        asked[0] += 1
        return set() if asked[0] % 5 == 0 else await add(self, arrived)

    group_commit.GroupCommit.add = lossy  # type: ignore[method-assign]


def confuse_reasons() -> None:
    """Break the server: it calls reports foreign whose collection is closed."""
    uploads.CLOSED = uploads.FOREIGN
