"""Pages for people: one for operators, one for who takes part; and what they are made of.

Everything comes from this service, and nothing from elsewhere: a tile server or a font of another
host would learn which area is studied, and who looks.
"""

import json
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ldpspatial.errors import InputError
from ldpspatial.service.problems import Problem

LONGEST_OUTLINES = 1 << 24
GEOJSON = "application/geo+json"
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Pages:
    """The pages' files, read once.

    Parameters
    ----------
    outlines : path, optional
        GeoJSON of borders, rivers, streets: drawn over every map.

    Raises
    ------
    InputError
        The outlines cannot be read, or are no GeoJSON.
    """

    def __init__(self, outlines: Path | None = None):
        self._outlines = _read_outlines(outlines) if outlines is not None else None
        self._files = {
            file.name: file.read_bytes()
            for file in files("ldpspatial.service").joinpath("pages").iterdir()
            if Path(file.name).suffix in KINDS
        }

    def routes(self) -> list[Route]:
        """Return the routes of the pages; all but reports and maps are open to everyone."""
        return [
            Route("/", self.operator, methods=["GET"]),
            Route("/participate/{digest}", self.participant, methods=["GET"]),
            Route("/pages/{file}", self.file, methods=["GET"]),
            Route("/outlines.geojson", self.outlines, methods=["GET"]),
        ]

    async def operator(self, request: Request) -> Response:
        """Return the page of operators, which asks for a token."""
        return self._page("operator.html")

    async def participant(self, request: Request) -> Response:
        """Return the page of who takes part; it reads the digest from its own address."""
        return self._page("participant.html")

    async def file(self, request: Request) -> Response:
        """Return a file that a page is made of."""
        return self._page(request.path_params["file"])

    async def outlines(self, request: Request) -> Response:
        """Return the outlines; none: an empty collection of features."""
        empty = b'{"type":"FeatureCollection","features":[]}'
        return Response(self._outlines or empty, 200, HEADERS, GEOJSON)

    def _page(self, name: str) -> Response:
        if name not in self._files:
            raise Problem(404, "There is no such page.")
        return Response(self._files[name], 200, HEADERS, KINDS[Path(name).suffix])


def _read_outlines(path: Path) -> bytes:
    try:
        content = path.read_bytes()
        kind = json.loads(content)["type"]
    except OSError as error:
        raise InputError(f"outlines cannot be read at {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"outlines must be GeoJSON, and {path} is not") from None
    if kind not in ("FeatureCollection", "Feature", "GeometryCollection"):
        raise InputError(f"outlines must be a FeatureCollection of GeoJSON, and {path} is not")
    if len(content) > LONGEST_OUTLINES:
        raise InputError(f"outlines must have at most {LONGEST_OUTLINES} bytes: simplify {path}")
    return content
