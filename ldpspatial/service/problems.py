"""Answers that are not a success: problem documents (RFC 9457).

A device reads the type alone, and only these three are final (docs/protocol.md, section 13).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

TYPE = "urn:ldpspatial:problem:"
RETRY_S = 30  # a device waits for so long at least
MEDIA_TYPE = "application/problem+json"
FINAL = {
    "closed": (410, "The collection takes no more reports."),
    "foreign": (422, "Another collection, or a cell that no report names."),
    "malformed": (422, "Not the text of a report."),
}


class Problem(Exception):  # noqa: N818  (RFC 9457 calls it so)
    """An answer that ends a request.

    Parameters
    ----------
    status : int
    detail : str
        What to do, without anything that the request held.
    kind : str
        The registered reason where the refusal is final for a device.
    headers : mapping
    more : further fields of the document.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        kind: str = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ):
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.document = {
            "type": TYPE + kind if kind else "about:blank",
            "status": status,
            "detail": detail,
            **more,
        }
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Return the HTTP response."""
        return Response(msgspec.json.encode(self.document), self.status, self.headers, MEDIA_TYPE)


def busy(detail: str, headers: Mapping[str, str]) -> Problem:
    """Return what is told while the store does nothing: come back later."""
    return Problem(503, detail, headers={**headers, "Retry-After": str(RETRY_S)})


def too_many(wait_s: float) -> Problem:
    """Return what an address is told that sends too often: come back in so many seconds."""
    return Problem(429, "Too many requests.", headers={"Retry-After": str(int(wait_s) + 1)})


def final(reason: str, **more: Any) -> Problem:
    """Return the final refusal of a device's reports."""
    status, detail = FINAL[reason]
    return Problem(status, detail, reason, **more)
