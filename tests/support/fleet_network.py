"""What lies between a fleet and its server: it loses, doubles, delays, reorders and lies.

Every request of a device meets a fate. What the server answered is written down, whether a device
got to hear it or not.
"""

import asyncio
import heapq
import json
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from client_sdk.sending import MEDIA_TYPE, PROBLEM
from tests.support.fleet_upstream import HEAD_END, Response, Upstream, length
from tests.support.fleet_witness import STORED, Exchange, Witness, name_of

# Fates, and how often in a hundred; all others go through.
FATES = {
    "lost": 10,  # the server never sees it
    "half_sent": 3,
    "late": 9,  # the device hangs up long before it arrives
    "answer_lost": 11,
    "answer_cut": 4,
    "doubled": 9,
    "held": 6,  # while others overtake it
    "portal": 6,  # somebody else answers
    "busy": 6,
}
BROKEN = {"lost", "half_sent", "late", "answer_lost", "answer_cut"}  # the connection, that is
LATEST = 3000  # requests that overtake one that is late, at most
HELD_S = 0.05
SENT = f"Content-Type: {MEDIA_TYPE}\r\n"
PORTALS = (
    (302, "Location: /login\r\n", "<html>sign in</html>"),
    (403, "", "<html>sign in</html>"),
    (410, "", '{"type": "about:blank", "status": 410}'),
    (404, "", '"urn:ldpspatial:problem:foreign"'),
    (500, "", '{"type": "urn:ldpspatial:problem:closed"}'),
)
RETRY_AFTER = ("0", "120", "999999", "Fri, 31 Dec 2099 23:59:59 GMT", "soon")


class Network:
    """A proxy that devices take for the server; made by :func:`network`.

    Parameters
    ----------
    server : int
        The port of the server.
    seed : int
        Decides the fates, in the order in which requests come.

    Attributes
    ----------
    upstream : Upstream
    milestones : list of (number, act)
        What happens when so many different reports were seen, in ascending order.
    witness : Witness
    errors : list of Exception
        What went wrong here, and must not.
    """

    def __init__(self, server: int, seed: int):
        self.upstream = Upstream(server)
        self.milestones: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        self._dice = random.Random(seed)  # noqa: S311
        self._tasks: set[asyncio.Task[None]] = set()
        self._delayed: list[tuple[int, bytes]] = []
        self._requests = 0
        self._is_calm = False
        self._loop = asyncio.new_event_loop()
        self.port = 0
        self.witness = Witness()
        self.errors: list[Exception] = []

    @property
    def url(self) -> str:
        """Where devices send reports."""
        return f"http://127.0.0.1:{self.port}/reports"

    def calm_down(self) -> None:
        """Lose nothing any more, let half of what is late arrive, end what has begun."""
        assert not self.milestones, "there were too few reports to reach all milestones"
        self._is_calm = True
        self.do(self._deliver(len(self._delayed) // 2))

    def deliver_all(self) -> None:
        """Let all that is late arrive."""
        self.do(self._deliver(len(self._delayed)))

    def do(self, act: Coroutine[Any, Any, None]) -> None:
        """Do something in the network's thread, and wait for it."""
        asyncio.run_coroutine_threadsafe(act, self._loop).result(120)

    async def _deliver(self, number: int) -> None:
        """Let as many of those that are late arrive, as it happens; end what has begun."""
        self._dice.shuffle(self._delayed)
        for _, body in self._delayed[:number]:
            self._start(self._exchange(body))
        self._delayed = sorted(self._delayed[number:])
        while self._tasks:
            await asyncio.wait(self._tasks)

    # Connections of devices

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while await self._request(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the device hung up
        except Exception as error:
            self.errors.append(error)
        if self._dice.random() < 0.5:
            writer.transport.abort()
        writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer a request, or not; tell whether the connection goes on."""
        head = await reader.readuntil(HEAD_END)
        body = await reader.readexactly(length(head))
        assert SENT.lower().encode() in head.lower()
        self._requests += 1
        self.witness.sent[name_of(body)].add(body)
        self._reach_milestones()
        self._send_late()
        fate = self._fate()
        self.witness.fates[fate] += 1
        answer: bytes = await getattr(self, f"_{fate}")(body)
        writer.write(answer)
        await writer.drain()
        return fate not in BROKEN

    def _fate(self) -> str:
        if self._is_calm:
            return "through"
        others = 100 - sum(FATES.values())
        return self._dice.choices([*FATES, "through"], [*FATES.values(), others])[0]

    def _reach_milestones(self) -> None:
        while self.milestones and len(self.witness.sent) >= self.milestones[0][0]:
            self._start(self.milestones.pop(0)[1]())

    def _send_late(self) -> None:
        while self._delayed and self._delayed[0][0] <= self._requests:
            self._start(self._exchange(heapq.heappop(self._delayed)[1]))

    def _start(self, act: Awaitable[object]) -> None:
        async def guarded() -> None:
            try:
                await act
            except Exception as error:
                self.errors.append(error)

        task = self._loop.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, body: bytes) -> Response:
        began = self.witness.tick()
        answer = await self.upstream.ask("/reports", SENT, body)
        verdict = _verdict(answer)
        self.witness.exchanges.append(Exchange(body, began, self.witness.tick(), verdict))
        return answer

    # The fates

    async def _through(self, body: bytes) -> bytes:
        return self._passed_on(body, await self._exchange(body))

    def _passed_on(self, body: bytes, answer: Response) -> bytes:
        self.witness.heard[name_of(body)].add(_verdict(answer))
        return answer.raw

    async def _lost(self, body: bytes) -> bytes:
        return b""

    async def _half_sent(self, body: bytes) -> bytes:
        await self.upstream.begin("/reports", SENT, body, self._dice.randrange(len(body)))
        return b""

    async def _late(self, body: bytes) -> bytes:
        heapq.heappush(self._delayed, (self._requests + self._dice.randint(1, LATEST), body))
        return b""

    async def _answer_lost(self, body: bytes) -> bytes:
        await self._exchange(body)
        return b""

    async def _answer_cut(self, body: bytes) -> bytes:
        raw = await self._through(body)
        return raw[: self._dice.randrange(len(raw))]

    async def _doubled(self, body: bytes) -> bytes:
        answers = await asyncio.gather(self._exchange(body), self._exchange(body))
        return self._passed_on(body, self._dice.choice(answers))

    async def _held(self, body: bytes) -> bytes:
        await asyncio.sleep(self._dice.uniform(0, HELD_S))
        return await self._through(body)

    async def _portal(self, body: bytes) -> bytes:
        status, headers, text = self._dice.choice(PORTALS)
        return _response(status, headers, text)

    async def _busy(self, body: bytes) -> bytes:
        return _response(503, f"Retry-After: {self._dice.choice(RETRY_AFTER)}\r\n", "")

    # The thread

    def run(self, is_ready: threading.Event) -> None:
        """Serve until :meth:`end`; meant for a thread of its own."""
        asyncio.set_event_loop(self._loop)
        starting = asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=1000)
        listening = self._loop.run_until_complete(starting)
        self.port = listening.sockets[0].getsockname()[1]
        is_ready.set()
        self._loop.run_forever()
        listening.close()
        self.upstream.close()
        for task in (left := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    def end(self) -> None:
        """End the thread that runs."""
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def network(server: int, seed: int) -> Iterator[Network]:
    """Put a network before the server at a port; the seed decides the fates."""
    made = Network(server, seed)
    is_ready = threading.Event()
    thread = threading.Thread(target=made.run, args=(is_ready,))
    thread.start()
    is_ready.wait()
    try:
        yield made
    finally:
        made.end()
        thread.join()


def _verdict(answer: Response) -> str:
    """Return what the server said: stored, a registered reason, or else its status."""
    if answer.status == 204:
        return STORED
    kind = json.loads(answer.content).get("type", "") if answer.content else ""
    return str(kind).removeprefix(PROBLEM) if kind.startswith(PROBLEM) else str(answer.status)


def _response(status: int, headers: str, text: str) -> bytes:
    return f"HTTP/1.1 {status} Told\r\nContent-Length: {len(text)}\r\n{headers}\r\n{text}".encode()
