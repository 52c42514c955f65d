"""What devices ask for: a document by its digest, and to have reports stored."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ldpspatial.collecting.report_texts import ReportTexts
from ldpspatial.service.database import StoreError
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.limits import BodyRoom, Limits, RateLimit
from ldpspatial.service.problems import Problem, busy, final, too_many
from ldpspatial.service.request_parts import DIGEST, body_problems, received, unpacked
from ldpspatial.service.store import Store
from ldpspatial.service.uploads import (
    CLOSED,
    Refusal,
    Taking,
    Upload,
    line_count,
    read_body,
    sort_out,
)
from ldpspatial.service.windows import Clock, find_series

MEDIA_TYPES = frozenset({"application/x-ndjson", "application/jsonl", "application/json"})
APART_S = 0.05  # between two look-ups for digests that are not known, whoever asks
SHORT_BODY = 1 << 15  # bytes, read in about a millisecond: a thread would cost as much
FOREVER = "public, max-age=31536000, immutable"
# The page of an app comes from the app's own server: every page may send, none with credentials.
CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Retry-After",
}
PREFLIGHT = {
    **CROSS_ORIGIN,
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Content-Type, Content-Encoding",
    "Access-Control-Max-Age": "86400",
}


class Catalogue:
    """The collections of the store and whether they take reports.

    Attributes
    ----------
    known : dict of bytes to Taking
        By digest, as ASCII.
    series : int
        How many series the store had when it was looked into for digests that are not known.
    """

    def __init__(self, store: Store):
        self._store = store
        self._reading = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._looked_at = -APART_S
        self._next: asyncio.Task[None] | None = None  # the look-up that has not begun
        self.known: dict[bytes, Taking] = {}
        self.series = 0

    async def refresh(self) -> None:
        """Read all collections and their states."""
        async with self._reading:
            known = {}
            for held in await self._store.collections():
                digest = held.digest.encode()
                before = self.known.get(digest)
                known[digest] = before.now(held) if before else Taking.of(held)
            self.known = known

    async def learn(self, digests: set[bytes]) -> None:
        """Look for digests that are not known: what is refused as foreign is refused for good.

        All who ask while a look-up runs share the next one, so that each is answered by one that
        began after it asked, and invented digests make 20 look-ups a second at most.
        """
        if not digests - self.known.keys():
            return
        if self._next is None:
            self._next = asyncio.create_task(self._look())
        await asyncio.shield(self._next)  # who goes away leaves it to the others

    async def _look(self) -> None:
        """Look for collections that are not known, a moment after the last look-up at least."""
        async with self._looking:
            await asyncio.sleep(self._looked_at + APART_S - time.monotonic())
            self._next = None  # who asks from now on may ask for what this one does not see
            self._looked_at = time.monotonic()
            read = self._store.database.read
            ((self.series,),) = await read("SELECT COUNT(*) FROM series")
            rows = await read("SELECT digest FROM collections")
            if {str(digest).encode() for (digest,) in rows} - self.known.keys():
                await self.refresh()


def digest_of(request: Request) -> str:
    """Return the digest in a path; what is none is not looked for."""
    digest: str = request.path_params["digest"]
    if not DIGEST.fullmatch(digest):
        raise Problem(404, "A digest has 64 hexadecimal digits.", headers=CROSS_ORIGIN)
    return digest


class DeviceApi:
    """The requests of devices.

    Parameters
    ----------
    store : Store
    commits : GroupCommit
    limits : Limits
    catalogue : Catalogue
    clock : Clock
        Knows which windows are about to open.
    """

    def __init__(
        self,
        store: Store,
        commits: GroupCommit,
        limits: Limits,
        catalogue: Catalogue,
        clock: Clock,
    ):
        self._store = store
        self._commits = commits
        self._limits = limits
        self._rate = RateLimit(limits.requests_a_minute)
        self._room = BodyRoom(limits)
        self._clock = clock
        self.catalogue = catalogue
        self.requests: Counter[int] = Counter()  # by status

    async def document(self, request: Request) -> Response:
        """Return a collection document: the same bytes for all, for ever."""
        held = await self._store.find(digest_of(request))
        if held is None:
            raise Problem(404, "There is no collection of this digest.", headers=CROSS_ORIGIN)
        headers = {**CROSS_ORIGIN, "Cache-Control": FOREVER}
        return Response(held.document, headers=headers, media_type="application/json")

    async def series(self, request: Request) -> Response:
        """Return the document of a series, from which those of its windows follow."""
        held = await find_series(self._store, digest_of(request))
        if held is None:
            raise Problem(404, "There is no series of this digest.", headers=CROSS_ORIGIN)
        headers = {**CROSS_ORIGIN, "Cache-Control": FOREVER}
        return Response(held.document, headers=headers, media_type="application/json")

    async def reports(self, request: Request) -> Response:
        """Store lines of reports; 2xx only when they are durable."""
        try:
            response = await self._reports(request)
        except Problem as problem:
            problem.headers.update(CROSS_ORIGIN)
            response = problem.response()
        except StoreError as error:  # what went wrong is for the operator, in the log
            self._commits.note(error)
            response = busy("Nothing was stored; try again later.", CROSS_ORIGIN).response()
        self.requests[response.status_code] += 1
        return response

    async def preflight(self, request: Request) -> Response:
        """Tell a browser that any page may send reports."""
        return Response(status_code=204, headers=PREFLIGHT)

    async def _reports(self, request: Request) -> Response:
        wait_s = self._rate.wait_s(request.client.host if request.client else "")
        if wait_s:
            raise too_many(wait_s)
        with self._room.request() as take:
            return await self._answer(await self._texts(await self._body(request, take)))

    async def _answer(self, texts: ReportTexts) -> Response:
        """Store what can be stored, and say what became of each line."""
        await self._learn(set(texts.collections))
        upload = sort_out(texts, self.catalogue.known)
        if not upload.lines:
            raise Problem(400, "The body holds no line.")
        await self._store_upload(upload)
        for refusal in upload.refused:
            self._commits.refuse(refusal.collection, refusal.reason)
        if not upload.refused:
            return Response(status_code=204, headers=CROSS_ORIGIN)
        lines = [{"line": line, "reason": reason} for line, reason, _ in upload.refused]
        if not upload.arrived:
            raise final(upload.refused[0].reason, lines=lines)
        answer = msgspec.json.encode({"stored": upload.lines - len(lines), "refused": lines})
        return Response(answer, 200, CROSS_ORIGIN, "application/json")

    async def _texts(self, body: bytes) -> ReportTexts:
        """Return what the lines of a body hold; other requests go on while a long one is read."""
        if line_count(body) > self._limits.lines:
            detail = f"At most {self._limits.lines} lines in one request, also blank ones."
            raise Problem(413, detail)
        if len(body) <= SHORT_BODY:
            return read_body(body)
        return await asyncio.to_thread(read_body, body)

    async def _learn(self, digests: set[bytes]) -> None:
        """Look for collections that are not known; refuse for now what may be about to open."""
        await self.catalogue.learn(digests)
        unknown = digests - self.catalogue.known.keys()
        if unknown and self._clock.may_open(unknown, self.catalogue.series):
            raise busy("A collection may be about to open; nothing was stored.", {})

    async def _store_upload(self, upload: Upload) -> None:
        """Store what can be stored; what was closed meanwhile is refused."""
        if not upload.arrived:
            return
        arrived = {number: records for number, (records, _) in upload.arrived.items()}
        closed = await self._commits.add(arrived)
        for number in closed & arrived.keys():
            _, lines = upload.arrived.pop(number)
            upload.refused += [Refusal(line, CLOSED, number) for line in lines]
            upload.refused.sort()
        if closed:
            await self.catalogue.refresh()

    async def _body(self, request: Request, take: Callable[[int], None]) -> bytes:
        """Return the body, unpacked, within the limits."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in MEDIA_TYPES:
            raise Problem(415, "Content-Type must be application/x-ndjson.")
        encoding = request.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip"):
            raise Problem(415, "Content-Encoding must be gzip, or none.")
        longest = self._limits.body_bytes
        with body_problems(f"At most {longest} bytes in one request, also unpacked."):
            receiving = received(request, longest, take)
            body = await asyncio.wait_for(receiving, self._limits.seconds)
            if encoding == "gzip":
                body = await asyncio.to_thread(unpacked, body, longest)
                take(len(body))
            return body
