"""Devices that visit a server of rounds inside this process, without a network."""

from collections.abc import Callable, Generator
from typing import Any

from starlette.applications import Starlette

from client_sdk.rounds import Ask, Participant, Told, visit
from ldpspatial.service.database import Database, StoreError
from ldpspatial.service.limits import Limits
from ldpspatial.service.problems import Problem, busy
from ldpspatial.service.rounds.api import RoundApi
from ldpspatial.service.rounds.server import RoundServer

Now = Callable[[], float]


def app_of(database: Database, rounds: RoundServer, limits: Limits | None = None) -> Starlette:
    """Return an application of the routes of rounds alone."""
    api = RoundApi(database, rounds, limits or Limits(requests_a_minute=0))
    problems: Any = {
        Problem: lambda _, error: error.response(),
        StoreError: lambda _, error: busy("The store did not do it.", {}).response(),
    }
    return Starlette(routes=api.routes(), exception_handlers=problems)


async def call(app: Starlette, ask: Ask) -> Told:
    """Make one request."""
    headers = [(b"authorization", f"Bearer {ask.token}".encode())] if ask.token else []
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": ask.method,
        "scheme": "http", "path": ask.path, "raw_path": ask.path.encode(), "query_string": b"",
        "root_path": "", "headers": headers, "client": ("192.0.2.1", 1), "server": ("test", 80),
    }  # fmt: skip
    sent: list[Any] = []
    bodies = [{"type": "http.request", "body": ask.body, "more_body": False}]

    async def receive() -> Any:
        return bodies.pop() if bodies else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    named = dict(sent[0]["headers"])
    body = b"".join(each.get("body", b"") for each in sent[1:])
    return Told(sent[0]["status"], body, float(named.get(b"retry-after", b"0")))


class Visitor:
    """A device that visits; it may be killed and opened anew at any request.

    Attributes
    ----------
    ask : Ask or None
        The next request; None where the visit is over.
    summed : bool or None
        What the visit returned.
    """

    def __init__(
        self, participant: Participant, where: tuple[float, float], directory: bytes
    ) -> None:
        self.participant = participant
        self._where, self._directory = where, directory
        self.summed: bool | None = None
        self.ask: Ask | None = None
        self.begin()

    def begin(self) -> None:
        """Begin a visit, or begin it again."""
        self._visit: Generator[Ask, Told, bool] = visit(
            self.participant, lambda: self._where, self._directory
        )
        self.ask = next(self._visit)

    async def step(self, app: Starlette) -> None:
        """Make requests until the server says to wait."""
        while self.ask is not None:
            told = await call(app, self.ask)
            try:
                self.ask = self._visit.send(told)
            except StopIteration as end:
                self.ask, self.summed = None, end.value
                return
            if self.ask.wait_s:
                return
