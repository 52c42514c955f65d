"""What operators ask for, behind a token: collections, their states, numbers, counts and maps."""

import tempfile
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from client_sdk import ClientError, Collection, Series
from ldpspatial.errors import InputError
from ldpspatial.extensions import extension_names
from ldpspatial.service.closing import close_collection, drop, release, released_counts
from ldpspatial.service.device_api import Catalogue, digest_of
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.maps import Maps, Wanted
from ldpspatial.service.monitoring import Monitoring
from ldpspatial.service.problems import Problem
from ldpspatial.service.progress import Progress, progress_of, progress_of_all, refused_for_none
from ldpspatial.service.request_parts import bearer_token, body_problems, no_token, received
from ldpspatial.service.store import Held, Store
from ldpspatial.service.tokens import is_token
from ldpspatial.service.windows import DAY_S, HeldSeries, add_series, all_series
from ldpspatial.validate import one_of, shown

Handler = Callable[[Request], Awaitable[Response]]
LONGEST_DOCUMENT = 1 << 26
SECRET = {"Cache-Control": "no-store"}
PIECE_BYTES = 1 << 18  # of a file that is sent
AGAIN_S = 1  # while a map is being made, which a request waits for by itself
# The names that ldpspatial.estimation knows, without its imports: this process stays small.
RULES = ("field", "robust", "map-alone", "em", "scaled", "likelihood", "published")
ENTRY_POINTS = "ldpspatial.estimators"
MAP_OPTIONS = {
    "rule": RULES,
    "smoothing": ("binomial", "five-point"),
    "intervals": ("auto", "posterior", "fisher", "none"),
}
# What can be asked for of a map, by name; each stands in the folder of the map.
MAP_FILES = {
    "heatmap.png": "image/png",
    "estimate.geojson": "application/geo+json",
    "estimate.csv": "text/csv; charset=utf-8",
    "estimate.npz": "application/octet-stream",
    "summary.json": "application/json",
    "map.json": "application/json",
}


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


class NewSeries(msgspec.Struct, forbid_unknown_fields=True):
    """What is sent to add a series.

    Attributes
    ----------
    document : str
        The series document.
    minimum : int
        Reports that must count before a window is released.
    leeway_s : int
        For how long a window takes reports before it begins and after it ends, in seconds.
    """

    document: str
    minimum: int
    leeway_s: int = DAY_S


class ToldSeries(msgspec.Struct):
    """What is told of a series."""

    digest: str
    name: str
    minimum: int
    leeway_s: int
    windows: int
    answers: int
    first_start: int
    window_seconds: int


New = TypeVar("New", bound=msgspec.Struct)


class OperatorApi:
    """The requests of operators."""

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        commits: GroupCommit,
        maps: Maps,
        monitoring: Monitoring,
    ):
        self._store = store
        self._catalogue = catalogue
        self._commits = commits
        self._maps = maps
        self._monitoring = monitoring

    def routes(self) -> list[Route]:
        """Return the routes, each behind the token."""
        one = "/operator/collections/{digest}"
        return [
            self._both("/operator/collections", self.collections, self.add),
            self._both("/operator/series", self.series, self.add_series),
            Route("/operator/refused", self._guarded(self.refused), methods=["GET"]),
            Route("/metrics", self._guarded(self._monitoring.metrics), methods=["GET"]),
            Route(one, self._guarded(self.collection), methods=["GET"]),
            Route(f"{one}/close", self._guarded(self.close), methods=["POST"]),
            Route(f"{one}/release", self._guarded(self.release), methods=["POST"]),
            Route(f"{one}/drop", self._guarded(self.drop), methods=["POST"]),
            Route(f"{one}/counts", self._guarded(self.counts), methods=["GET"]),
            Route(f"{one}/reports.parquet", self._guarded(self.reports), methods=["GET"]),
            Route(f"{one}/map", self._guarded(self.summary), methods=["GET"]),
            Route(f"{one}/map/{{file}}", self._guarded(self.map_file), methods=["GET"]),
        ]

    def _both(self, path: str, listing: Handler, adding: Handler) -> Route:
        """Return one route for GET and POST, so that either refusal names both methods."""

        async def handle(request: Request) -> Response:
            return await (adding if request.method == "POST" else listing)(request)

        return Route(path, self._guarded(handle), methods=["GET", "POST"])

    def _guarded(self, handler: Handler) -> Handler:
        """Return a handler that answers to a token only, and what it raises as problems."""

        async def guarded(request: Request) -> Response:
            token = bearer_token(request)
            if token is None or not await is_token(self._store, token):
                raise no_token("Send a token: Authorization: Bearer ...")
            try:
                return await handler(request)
            except (InputError, ClientError) as error:
                raise Problem(422, str(error)) from None

        return guarded

    async def collections(self, request: Request) -> Response:
        """List all collections with their numbers."""
        collections = await self._store.collections()
        return _json(await progress_of_all(self._store, collections, self._commits.refused))

    async def collection(self, request: Request) -> Response:
        """Show one collection."""
        return _json(await self._told(await self._found(request)))

    async def add(self, request: Request) -> Response:
        """Add a collection, open from now on."""
        wanted = await _read(request, NewCollection)
        held = await self._store.add(Collection.from_json(wanted.document), wanted.minimum)
        await self._catalogue.refresh()
        return _json(await self._told(held), 201)

    async def refused(self, request: Request) -> Response:
        """Tell how many reports were refused that name no collection, by reason."""
        return _json(await refused_for_none(self._store, self._commits.refused))

    async def series(self, request: Request) -> Response:
        """List all series."""
        return _json([_told_series(held) for held in await all_series(self._store)])

    async def add_series(self, request: Request) -> Response:
        """Add a series, whose windows the service opens and closes by its own clock."""
        wanted = await _read(request, NewSeries)
        series = Series.from_json(wanted.document)
        held = await add_series(self._store, series, wanted.minimum, wanted.leeway_s)
        return _json(_told_series(held), 201)

    async def close(self, request: Request) -> Response:
        """Close a collection and count it."""
        return await self._changed(request, close_collection)

    async def release(self, request: Request) -> Response:
        """Release a collection: its reports are deleted, its counts final."""
        return await self._changed(request, release)

    async def drop(self, request: Request) -> Response:
        """Drop a closed collection: all that it holds is deleted."""
        return await self._changed(request, drop)

    async def _changed(
        self, request: Request, change: Callable[[Store, str], Awaitable[object]]
    ) -> Response:
        """Change the state of a collection, and tell what became of it."""
        held = await self._found(request)
        await change(self._store, held.digest)
        await self._catalogue.refresh()
        return _json(await self._told(await self._found(request)))

    async def counts(self, request: Request) -> Response:
        """Return the counts of a released collection."""
        held = await self._found(request)
        found = await released_counts(self._store, held.digest)
        return _json({**found.facts(), "counts": found.counts.tolist()})

    async def reports(self, request: Request) -> Response:
        """Return the different reports of a closed collection as Parquet."""
        from ldpspatial.service.exporting import write_reports  # noqa: PLC0415  (30 MB of Arrow)

        held = await self._found(request)
        # Without a name: nothing is left of it, whatever becomes of this process.
        file = tempfile.TemporaryFile()  # noqa: SIM115  (closed when it was sent)
        try:
            await write_reports(self._store, held.digest, file)
            length = file.tell()
            file.seek(0)
        except BaseException:
            file.close()
            raise
        headers = {**SECRET, "Content-Length": str(length)}
        pieces = iter(partial(file.read, PIECE_BYTES), b"")
        kind = "application/vnd.apache.parquet"
        return StreamingResponse(pieces, 200, headers, kind, BackgroundTask(file.close))

    async def summary(self, request: Request) -> Response:
        """Return the summary of the map of a released collection."""
        return await self._of_map(request, "summary.json")

    async def map_file(self, request: Request) -> Response:
        """Return a file of the map of a released collection."""
        name = request.path_params["file"]
        if name not in MAP_FILES:
            raise Problem(404, f"A map has the files {', '.join(MAP_FILES)}.")
        return await self._of_map(request, name)

    async def _of_map(self, request: Request, name: str) -> Response:
        """Return a file of a map, or 202 while it is being made."""
        held = await self._found(request)
        wanted = _wanted(held.digest, request.query_params)
        counted = await released_counts(self._store, held.digest)
        folder = await self._maps.folder(wanted, held.document, counted)
        if folder is None:
            again = {**SECRET, "Retry-After": str(AGAIN_S)}
            return Response(b'{"state":"being made"}', 202, again, "application/json")
        return Response((folder / name).read_bytes(), 200, SECRET, MAP_FILES[name])

    async def _found(self, request: Request) -> Held:
        held = await self._store.find(digest_of(request))
        if held is None:
            raise Problem(404, "There is no collection of this digest.")
        return held

    async def _told(self, held: Held) -> Progress:
        return await progress_of(self._store, held, self._commits.refused)


async def _read(request: Request, kind: type[New]) -> New:
    """Return what a body holds."""
    with body_problems(f"At most {LONGEST_DOCUMENT} bytes."):
        body = await received(request, LONGEST_DOCUMENT)
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        fields = ", ".join(kind.__struct_fields__)
        raise Problem(422, f"The body must be an object of {fields}: {error}") from None


def _told_series(held: HeldSeries) -> ToldSeries:
    series = held.series()
    return ToldSeries(
        held.digest,
        series.name,
        held.minimum,
        held.leeway_s,
        series.windows,
        series.answers,
        series.first_start,
        series.window_seconds,
    )


def _json(content: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status, SECRET, "application/json")


def _wanted(digest: str, query: Mapping[str, str]) -> Wanted:
    """Return which map a query asks for.

    A rule may be a name that an installed package registered, and no module:Name: a module that a
    request names is not imported.
    """
    known = {**MAP_OPTIONS, "rule": (*RULES, *extension_names(ENTRY_POINTS, RULES))}
    for name, value in query.items():
        if name not in known:
            raise InputError(f"a query may have {', '.join(known)}, got {shown(name)}")
        one_of(name, value, known[name])
    return Wanted(
        digest,
        query.get("rule", "em" if "smoothing" in query else "field"),
        query.get("smoothing"),
        query.get("intervals", "auto"),
    )
