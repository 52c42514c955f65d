"""The operator of a fleet's server, who closes and releases while reports are on their way."""

import asyncio

from client_sdk import Collection
from tests.support.fleet_plans import DAILY, DAYS, LEEWAY_S
from tests.support.fleet_server import TimedServer
from tests.support.fleet_upstream import Upstream
from tests.support.fleet_witness import Witness


class Operator:
    """Acts on a server, one thing after another, and writes down when.

    Parameters
    ----------
    server : TimedServer
    upstream : Upstream
    token : str
    witness : Witness
    """

    def __init__(self, server: TimedServer, upstream: Upstream, token: str, witness: Witness):
        self._server = server
        self._upstream = upstream
        self._headers = f"Authorization: Bearer {token}\r\n"
        self._witness = witness
        self._busy = asyncio.Lock()
        self._open_windows: set[int] = set()

    def opened(self, collection: Collection) -> None:
        """Write down that a collection was open before anything else."""
        life = self._witness.lives[collection.digest]
        life.opening = 0
        life.opened = 0

    async def close(self, collection: Collection) -> None:
        """Close a collection."""
        async with self._busy:
            life = self._witness.lives[collection.digest]
            life.closing = self._witness.tick()
            await self._act(f"{collection.digest}/close")
            life.closed = self._witness.tick()

    async def release(self, collection: Collection) -> None:
        """Close a collection, and release it."""
        await self.close(collection)
        async with self._busy:
            await self._act(f"{collection.digest}/release")

    async def turn(self, now: float) -> None:
        """Turn the server's clock forward, by less than a window, and wait until it has looked."""
        async with self._busy:
            taking = {k for k in range(1, DAYS + 1) if self._takes(k, now)}
            changed = taking ^ self._open_windows
            self._open_windows = taking
            lives = [
                (k in taking, self._witness.lives[DAILY.collection(k).digest]) for k in changed
            ]
            before = self._witness.tick()
            for is_opened, life in lives:
                if is_opened:
                    life.opening = before
                else:
                    life.closing = before
            self._server.turn(now)
            while not self._server.has_looked(now):
                await asyncio.sleep(0.01)
            after = self._witness.tick()
            for is_opened, life in lives:
                if is_opened:
                    life.opened = after
                else:
                    life.closed = after

    def _takes(self, window: int, now: float) -> bool:
        start = DAILY.start(window) - LEEWAY_S
        return start <= now < start + DAILY.window_seconds + 2 * LEEWAY_S

    async def _act(self, path: str) -> None:
        answer = await self._upstream.ask(f"/operator/collections/{path}", self._headers, b"")
        assert answer.status == 200, answer.raw
