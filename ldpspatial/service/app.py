"""The service as an ASGI application."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldpspatial.service.database import StoreError
from ldpspatial.service.device_api import CROSS_ORIGIN, Catalogue, DeviceApi
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.limits import Limits
from ldpspatial.service.maps import Maps
from ldpspatial.service.monitoring import Monitoring
from ldpspatial.service.openapi import describe
from ldpspatial.service.operator_api import OperatorApi
from ldpspatial.service.page_files import Pages
from ldpspatial.service.problems import Problem, busy
from ldpspatial.service.rounds.tables import has_rounds
from ldpspatial.service.store import Store, open_store
from ldpspatial.service.windows import Clock

Run = Callable[[], Coroutine[None, None, None]]


def make_app(
    location: str | os.PathLike[str], limits: Limits, outlines: Path | None = None
) -> Starlette:
    """Return the application that serves one store.

    Parameters
    ----------
    location : path or str
        A store that exists: a file, or an address that starts with postgresql://.
    limits : Limits
    outlines : path, optional
        GeoJSON that the pages draw over their maps.
    """
    pages = Pages(outlines)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # What was begun is ended, last things first, wherever a start or an end fails.
        async with contextlib.AsyncExitStack() as ends:
            store = await open_store(location)
            ends.push_async_callback(store.close)
            commits = GroupCommit(store)
            app.state.commits = commits
            catalogue = Catalogue(store)
            clock = Clock(store, catalogue.refresh)
            devices = DeviceApi(store, commits, limits, catalogue, clock)
            maps = Maps()
            ends.push_async_callback(maps.close)
            monitoring = Monitoring(store, devices, commits)
            operators = OperatorApi(store, catalogue, commits, maps, monitoring)
            rounds = await _rounds(store, limits)
            told = partial(describe, rounds=bool(rounds.routes))
            app.router.routes[:] = [
                Route("/reports", devices.reports, methods=["POST"]),
                Route("/reports", devices.preflight, methods=["OPTIONS"]),
                Route("/collections/{digest}", devices.document, methods=["GET"]),
                Route("/series/{digest}", devices.series, methods=["GET"]),
                Route("/health", monitoring.health, methods=["GET"]),
                Route("/openapi.json", told, methods=["GET"]),
                *rounds.routes,
                *operators.routes(),
                *pages.routes(),
            ]
            await clock.look()  # so that the first report finds its window open
            await catalogue.refresh()
            commits.start()
            ends.push_async_callback(commits.stop)
            clock.start()
            ends.push_async_callback(clock.stop)
            rounds.start()
            ends.push_async_callback(rounds.stop)
            yield

    return Starlette(
        lifespan=lifespan,
        exception_handlers={
            Problem: lambda _, error: error.response(),
            HTTPException: _http_problem,
            StoreError: _store_problem,
        },
    )


class _Rounds:
    """The campaigns of a store; none where it has none, and nothing of them is imported then."""

    def __init__(self, routes: Sequence[Route] = (), run: Run | None = None) -> None:
        self.routes = routes
        self._run = run
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._run is not None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task


async def _rounds(store: Store, limits: Limits) -> _Rounds:
    if not await has_rounds(store.database):
        return _Rounds()
    from ldpspatial.service.rounds.api import RoundApi  # noqa: PLC0415  (cryptography, scipy)
    from ldpspatial.service.rounds.server import RoundServer  # noqa: PLC0415

    server = RoundServer(store.database)
    await server.load()
    return _Rounds(RoundApi(store.database, server, limits).routes(), server.run)


def _http_problem(request: Request, error: Exception) -> Response:
    """Return what the router refuses: 404 and 405."""
    status, headers = getattr(error, "status_code", 500), getattr(error, "headers", None)
    return Problem(status, getattr(error, "detail", ""), headers=headers).response()


def _store_problem(request: Request, error: Exception) -> Response:
    """Return what the store does not do, to whoever reads documents or operates."""
    if isinstance(error, StoreError):
        request.app.state.commits.note(error)
    headers = {} if request.url.path.startswith("/operator") else CROSS_ORIGIN
    return busy("The store did not do it; the log says why.", headers).response()
