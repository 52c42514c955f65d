"""The service as an ASGI application."""

import contextlib
import os
from collections.abc import AsyncIterator
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
from ldpspatial.service.store import open_store
from ldpspatial.service.upkeep import forget
from ldpspatial.service.windows import Clock


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
        store = await open_store(location)
        commits = GroupCommit(store)
        app.state.commits = commits
        catalogue = Catalogue(store)
        clock = Clock(store, catalogue.refresh)
        devices = DeviceApi(store, commits, limits, catalogue, clock)
        maps = Maps()
        monitoring = Monitoring(store, devices, commits)
        operators = OperatorApi(store, catalogue, commits, maps, monitoring)
        app.router.routes[:] = [
            Route("/reports", devices.reports, methods=["POST"]),
            Route("/reports", devices.preflight, methods=["OPTIONS"]),
            Route("/collections/{digest}", devices.document, methods=["GET"]),
            Route("/series/{digest}", devices.series, methods=["GET"]),
            Route("/health", monitoring.health, methods=["GET"]),
            Route("/openapi.json", describe, methods=["GET"]),
            *operators.routes(),
            *pages.routes(),
        ]
        await forget(store.database)
        await clock.look()  # so that the first report finds its window open
        await catalogue.refresh()
        commits.start()
        clock.start()
        try:
            yield
        finally:
            await clock.stop()
            await maps.close()
            await commits.stop()
            await store.close()

    return Starlette(
        lifespan=lifespan,
        exception_handlers={
            Problem: lambda _, error: error.response(),
            HTTPException: _http_problem,
            StoreError: _store_problem,
        },
    )


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
