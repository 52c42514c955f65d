"""What carries one report to a server, and what the server's answer means (docs/protocol.md).

An :data:`Send` takes the body of one report and returns an :class:`Answer`. :func:`https_sender`
makes one with the standard library; an app with an HTTP library of its own writes three lines
around :func:`answer_of_http`.
"""

import email.utils
import errno
import http.client
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from client_sdk import canonical
from client_sdk.errors import CollectionError, ParameterError
from client_sdk.validate import finite_number, shown, whole_number

PROBLEM = "urn:ldpspatial:problem:"
REFUSALS = ("closed", "foreign", "malformed", "conflict")  # final: the report is never counted
MEDIA_TYPE = "application/x-ndjson"
LONGEST_ANSWER = 1 << 16  # code points
DEEPEST_ANSWER = 4  # objects and arrays within each other
LONGEST_WAIT = 86_400.0  # seconds; a server may ask for a day and not for a year
MOST_INTERIM = 20  # responses of 1xx before the one that counts
HTTP_DATE = re.compile(
    r"[a-z]{3,9}, \d\d([ -])[a-z]{3}\1\d{2,4} \d\d:\d\d:\d\d gmt", re.ASCII | re.IGNORECASE
)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True)
class Answer:
    """What became of one report.

    Attributes
    ----------
    is_delivered : bool
        The server has it durably, now or from an earlier attempt.
    refusal : str or None
        One of "closed", "foreign", "malformed", "conflict": the server will never count it.
    retry_after_s : float
        Seconds that the server wants to be left alone, where neither holds.
    """

    is_delivered: bool = False
    refusal: str | None = None
    retry_after_s: float = 0.0


DELIVERED = Answer(is_delivered=True)
LATER = Answer()

Send = Callable[[bytes], Answer]


def answer_of_http(
    status: int, retry_after: "str | float | None" = None, body: bytes = b""
) -> Answer:
    """Return what an HTTP response means.

    2xx is delivered. 4xx is final only where the body is a problem document (RFC 9457), in strict
    JSON, whose type is registered in docs/protocol.md: anybody between device and server may answer
    403 or 404. Everything else is temporary.

    Examples
    --------
    >>> answer_of_http(201).is_delivered
    True
    >>> answer_of_http(410, body=b'{"type": "urn:ldpspatial:problem:closed"}').refusal
    'closed'
    >>> answer_of_http(503, retry_after="120").retry_after_s
    120.0

    Raises
    ------
    ParameterError
        ``status`` is not a whole number from 100 to 999.
    """
    code = whole_number("status", status, 100, 999)
    if 200 <= code < 300:
        return DELIVERED
    refusal = _problem(body) if 400 <= code < 500 else None
    return Answer(refusal=refusal, retry_after_s=0.0 if refusal else _seconds(retry_after))


def https_sender(url: str, timeout_s: float = 30.0, context: ssl.SSLContext | None = None) -> Send:
    """Return a function that posts one report, over a connection of its own.

    It sends no cookie, referrer or user agent, follows no redirection, uses no proxy of the
    environment, and keeps no connection open that a second report would share.

    Parameters
    ----------
    url : str
        Where the server takes reports: https, or http on this machine for tests.
    timeout_s : float in (0, 3600]
        How long to wait for the connection, and then for all of the answer.
    context : ssl.SSLContext, optional
        Of the app's own, with pinned certificates say; by default that of the system.

    Raises
    ------
    ParameterError
        The address or the time breaks its rule.
    """
    parts = _parts(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
        raise ParameterError(f"url must start with https://, got {shown(url)}")
    if not parts.hostname or parts.username is not None:
        raise ParameterError("url must name a host and no user")
    timeout = finite_number("timeout_s", timeout_s)
    if not 0 < timeout <= 3600:
        raise ParameterError(f"timeout_s must be above 0 and at most 3600, got {timeout_s}")

    def send(body: bytes) -> Answer:
        request = urllib.request.Request(  # noqa: S310  (https, checked above)
            url, data=body, headers={"Content-Type": MEDIA_TYPE}, method="POST"
        )
        deadline = _Deadline(timeout)
        try:
            return _answer(_opener(context, deadline), request, timeout)
        except ValueError as error:  # from http.client, over an invalid length
            raise http.client.HTTPException("the response is malformed") from error
        finally:
            deadline.cancel()

    return send


def _answer(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float
) -> Answer:
    try:
        with opener.open(request, timeout=timeout) as response:
            return answer_of_http(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return answer_of_http(
                error.code,
                error.headers.get("Retry-After"),
                error.read(4 * LONGEST_ANSWER + 1),  # a code point has at most four bytes
            )


def _opener(context: ssl.SSLContext | None, deadline: "_Deadline") -> urllib.request.OpenerDirector:
    """Return what sends and receives, and nothing else.

    A redirection would send the report to whom the app did not name; a proxy of the environment
    would see where reports go, and may ask for an account.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        _HttpHandler(deadline),
        _HttpsHandler(deadline, context),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.HTTPDefaultErrorHandler(),
    ):
        opener.add_handler(handler)
    opener.addheaders = []  # urllib's own user agent
    return opener


class _Deadline:
    """Cuts a connection whose answer takes too long, however quick each piece of it is."""

    def __init__(self, seconds: float):
        self._seconds = seconds
        self._timer: threading.Timer | None = None

    def watch(self, connection: socket.socket) -> None:
        self._timer = threading.Timer(self._seconds, self._cut, [connection])
        self._timer.daemon = True
        try:
            self._timer.start()
        except RuntimeError as error:  # no thread can start just now
            raise OSError(errno.EAGAIN, str(error)) from None

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def _cut(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class _Response(http.client.HTTPResponse):
    """A response that skips interim ones, of which http.client knows only 100."""

    def _read_status(self) -> Any:
        for _ in range(MOST_INTERIM):
            read = super()._read_status()  # type: ignore[misc]
            if not 100 <= read[1] < 200 or read[1] == http.client.SWITCHING_PROTOCOLS:
                return read
            http.client.parse_headers(self.fp)
        raise http.client.HTTPException(f"more than {MOST_INTERIM} interim responses")


class _HttpConnection(http.client.HTTPConnection):
    response_class = _Response

    def __init__(self, *arguments: Any, deadline: _Deadline, **named: Any):
        super().__init__(*arguments, **named)
        self._deadline = deadline

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


class _HttpsConnection(_HttpConnection, http.client.HTTPSConnection):
    pass


class _HttpHandler(urllib.request.HTTPHandler):
    def __init__(self, deadline: _Deadline):
        super().__init__()
        self._deadline = deadline

    def http_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(_HttpConnection, request, deadline=self._deadline)  # type: ignore[arg-type]


class _HttpsHandler(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline, context: ssl.SSLContext | None):
        super().__init__(context=context)
        self._deadline = deadline
        self._trusted = context

    def https_open(self, request: urllib.request.Request) -> Any:
        return self.do_open(
            _HttpsConnection,  # type: ignore[arg-type]
            request,
            deadline=self._deadline,
            context=self._trusted,
        )


def _parts(url: object) -> urllib.parse.SplitResult:
    """Return the parts of an address that can be sent as it is."""
    try:
        if isinstance(url, str) and url.isascii() and url.isprintable() and " " not in url:
            parts = urllib.parse.urlsplit(url)
            _ = parts.port  # raises where it is not a number
            (parts.hostname or "").encode("idna")  # raises where no name server would be asked
            return parts
    except ValueError:
        pass
    raise ParameterError(f"url must be an address of printable ASCII characters, got {shown(url)}")


def _problem(body: bytes) -> str | None:
    """Return the refusal that a problem document tells; None where it is not strict JSON.

    All clients must read a body alike, or one of them would give up what another keeps sending.
    """
    try:
        text = body.decode()
        document = canonical.loads(text, "the answer", LONGEST_ANSWER)
    except (UnicodeDecodeError, CollectionError):
        return None
    # The mark stands for bytes that are not UTF-8 where a browser has read the body.
    if "\ufffd" in text or not _is_plain(document, DEEPEST_ANSWER):
        return None
    kind = document.get("type")
    return next((reason for reason in REFUSALS if kind == PROBLEM + reason), None)


def _is_plain(value: object, deepest: int) -> bool:
    """Tell whether a value is of whole numbers, texts, arrays and objects, and not too deep."""
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return deepest > 0 and all(_is_plain(part, deepest - 1) for part in parts)
    return type(value) in (int, str)  # type(): True is an int, too


def _seconds(retry_after: object) -> float:
    """Return what Retry-After asks for: seconds, or a date by the device's clock."""
    if retry_after is None:
        return 0.0
    if isinstance(retry_after, float) and retry_after >= 0:  # of some libraries
        return min(retry_after, LONGEST_WAIT)
    text = str(retry_after).strip()  # some libraries give a number
    if text.isascii() and text.isdigit():
        return min(float(text.lstrip("0")[:12] or 0), LONGEST_WAIT)
    if not HTTP_DATE.fullmatch(text):
        return 0.0
    try:
        when = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(when - time.time(), 0.0), LONGEST_WAIT)
