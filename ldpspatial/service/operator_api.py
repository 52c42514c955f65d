"""What operators ask for, behind a token: collections, their states, numbers and counts."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from client_sdk import ClientError, Collection
from ldpspatial.errors import InputError
from ldpspatial.service.closing import close_collection, release, released_counts
from ldpspatial.service.device_api import Catalogue
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.problems import Problem
from ldpspatial.service.progress import Progress, progress_of
from ldpspatial.service.store import Held, Store
from ldpspatial.service.tokens import is_token

Handler = Callable[[Request], Awaitable[Response]]
LONGEST_DOCUMENT = 1 << 26
SECRET = {"Cache-Control": "no-store"}


class NewCollection(msgspec.Struct, forbid_unknown_fields=True):
    """What is sent to add a collection.

    Attributes
    ----------
    document : str
        The collection document.
    minimum : int
        Reports that must count before it is released.
    """

    document: str
    minimum: int


class OperatorApi:
    """The requests of operators."""

    def __init__(self, store: Store, catalogue: Catalogue, commits: GroupCommit):
        self._store = store
        self._catalogue = catalogue
        self._commits = commits

    def routes(self) -> list[Route]:
        """Return the routes, each behind the token."""
        one = "/operator/collections/{digest}"
        return [
            Route("/operator/collections", self._guarded(self.collections), methods=["GET"]),
            Route("/operator/collections", self._guarded(self.add), methods=["POST"]),
            Route(one, self._guarded(self.collection), methods=["GET"]),
            Route(f"{one}/close", self._guarded(self.close), methods=["POST"]),
            Route(f"{one}/release", self._guarded(self.release), methods=["POST"]),
            Route(f"{one}/counts", self._guarded(self.counts), methods=["GET"]),
        ]

    def _guarded(self, handler: Handler) -> Handler:
        """Return a handler that answers to a token only, and what it raises as problems."""

        async def guarded(request: Request) -> Response:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not await is_token(self._store, token.strip()):
                asks = {"WWW-Authenticate": "Bearer"}
                raise Problem(401, "Send a token: Authorization: Bearer ...", headers=asks)
            try:
                return await handler(request)
            except (InputError, ClientError) as error:
                raise Problem(422, str(error)) from None

        return guarded

    async def collections(self, request: Request) -> Response:
        """List all collections with their numbers."""
        return _json([await self._told(held) for held in await self._store.collections()])

    async def collection(self, request: Request) -> Response:
        """Show one collection."""
        return _json(await self._told(await self._found(request)))

    async def add(self, request: Request) -> Response:
        """Add a collection, open from now on."""
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > LONGEST_DOCUMENT:
                raise Problem(413, f"At most {LONGEST_DOCUMENT} bytes.")
        try:
            wanted = msgspec.json.decode(body, type=NewCollection)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Problem(
                422, f"The body must be an object of document and minimum: {error}"
            ) from None
        held = await self._store.add(Collection.from_json(wanted.document), wanted.minimum)
        await self._catalogue.refresh()
        return _json(await self._told(held), 201)

    async def close(self, request: Request) -> Response:
        """Close a collection and count it."""
        held = await self._found(request)
        await close_collection(self._store, held.digest)
        await self._catalogue.refresh()
        return _json(await self._told(await self._found(request)))

    async def release(self, request: Request) -> Response:
        """Release a collection: its reports are deleted, its counts final."""
        held = await self._found(request)
        await release(self._store, held.digest)
        await self._catalogue.refresh()
        return _json(await self._told(await self._found(request)))

    async def counts(self, request: Request) -> Response:
        """Return the counts of a released collection."""
        held = await self._found(request)
        found = await released_counts(self._store, held.digest)
        return _json({**found.facts(), "counts": found.counts.tolist()})

    async def _found(self, request: Request) -> Held:
        held = await self._store.find(request.path_params["digest"])
        if held is None:
            raise Problem(404, "There is no collection of this digest.")
        return held

    async def _told(self, held: Held) -> Progress:
        return await progress_of(self._store, held, self._commits.refused)


def _json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, SECRET, "application/json")
