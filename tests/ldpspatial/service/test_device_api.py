"""What devices and strangers get from a server, over HTTP."""

import asyncio
import gzip
import json
import random
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection, Device, Uploader, answer_of_http, https_sender
from ldpspatial.service import device_api
from ldpspatial.service.closing import close_collection
from ldpspatial.service.device_api import Catalogue, DeviceApi
from ldpspatial.service.limits import Limits, RateLimit
from ldpspatial.service.problems import Problem
from ldpspatial.service.progress import Progress, progress_of
from ldpspatial.service.store import make_store, open_store
from ldpspatial.service.tokens import make_token
from tests.support.service import (
    CELLS,
    COLLECTION,
    NDJSON,
    OTHER,
    Server,
    lines,
    report,
    serving,
)

LIMITS = Limits(requests_a_minute=0, body_bytes=100_000, lines=300, seconds=1)


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    await store.add(COLLECTION, 5)
    await store.add(OTHER, 5)
    await close_collection(store, OTHER.digest)
    token = await make_token(store, "laptop")
    await store.close()
    return token


async def _progress(path: Path) -> Progress:
    store = await open_store(path)
    try:
        return await progress_of(store, await store.held(COLLECTION.digest))
    finally:
        await store.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def token(path: Path) -> str:
    return asyncio.run(_prepared(path))


@pytest.fixture
def server(path: Path, token: str) -> Iterator[Server]:
    with serving(path, LIMITS) as found:
        yield found


def received(path: Path) -> int:
    return asyncio.run(_progress(path)).received


# Documents


def test_a_document_is_the_same_bytes_for_all_and_for_ever(server: Server) -> None:
    status, headers, content = server.request("GET", f"/collections/{COLLECTION.digest}")
    assert (status, content.decode()) == (200, COLLECTION.to_json())
    assert Collection.from_json(content.decode(), COLLECTION.digest) == COLLECTION
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert headers["access-control-allow-origin"] == "*"
    assert "set-cookie" not in headers
    assert "server" not in headers


@pytest.mark.parametrize("place", ["/collections", "/collections/", "/collections/0"])
def test_there_is_no_list_and_no_current_collection(server: Server, place: str) -> None:
    status, _, content = server.request("GET", place)
    assert status in (404, 405)
    assert COLLECTION.digest.encode() not in content


# Reports


def test_the_uploader_delivers_and_each_report_counts_once(
    server: Server, path: Path, tmp_path: Path
) -> None:
    device = Device.install(tmp_path / "device", cap_epsilon=8)
    device.join(COLLECTION.to_json(), digest=COLLECTION.digest, max_epsilon=4)
    device.report(COLLECTION, 52.52, 13.4)
    body = device.pending()[0].encode()
    assert server.post(body)[0] == 204  # whose answer was lost, say
    done = Uploader(device, https_sender(f"http://127.0.0.1:{server.port}/reports"), 0.0).run_once()
    assert (done.delivered, device.waiting()) == (1, 0)
    server.stop()

    async def count(path: Path) -> tuple[int, int]:
        store = await open_store(path)
        found = await close_collection(store, COLLECTION.digest)
        await store.close()
        return found.n, found.repeated

    assert asyncio.run(count(path)) == (1, 1)


def test_good_lines_are_stored_and_bad_ones_come_back_by_number(server: Server, path: Path) -> None:
    body = lines([report()]) + b"hello\n" + lines([report(collection=OTHER), report((999, 0))])
    status, headers, content = server.post(body)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(content) == {
        "stored": 1,
        "refused": [
            {"line": 2, "reason": "malformed"},
            {"line": 3, "reason": "closed"},
            {"line": 4, "reason": "foreign"},
        ],
    }
    server.stop()
    progress = asyncio.run(_progress(path))
    assert (progress.received, progress.refused) == (1, {"foreign": 1})


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"hello", 422, "malformed"),
        (lines([report(collection=OTHER)]), 410, "closed"),
        (lines([report((999, 0))]), 422, "foreign"),
        (lines([report()]).replace(COLLECTION.digest.encode(), b"0" * 64), 422, "foreign"),
    ],
)
def test_a_final_refusal_has_its_registered_type(
    server: Server, body: bytes, status: int, reason: str
) -> None:
    found, headers, content = server.post(body)
    assert (found, headers["content-type"]) == (status, "application/problem+json")
    assert answer_of_http(found, None, content).refusal == reason
    assert headers["access-control-allow-origin"] == "*"


def test_a_collection_that_is_closed_elsewhere_is_closed_here(server: Server, path: Path) -> None:
    assert server.post(lines([report()]))[0] == 204

    async def close() -> None:
        store = await open_store(path)  # as the command line does, while the server runs
        await close_collection(store, COLLECTION.digest)
        await store.close()

    asyncio.run(close())
    for _ in range(2):
        status, _, content = server.post(lines([report()]))
        assert (status, answer_of_http(status, None, content).refusal) == (410, "closed")


def test_a_collection_that_is_added_elsewhere_is_known_here(server: Server, path: Path) -> None:
    third = Collection.create("two in Berlin", COLLECTION.grid, 3.5)

    async def add() -> None:
        store = await open_store(path)
        await store.add(third, 1)
        await store.close()

    asyncio.run(add())
    for _ in range(300):  # the store is asked once a second at most
        status = server.post(lines([report(collection=third)]))[0]
        if status == 204:
            return
        socket.socket().close()
        subprocess.run(["sleep", "0.01"], check=True)
    raise AssertionError("the collection was never known")


def test_gzip_is_taken(server: Server, path: Path) -> None:
    body = gzip.compress(lines([report() for _ in range(200)]))
    assert server.post(body, Content_Encoding="gzip")[0] == 204
    server.stop()
    assert received(path) == 200


# What is refused


def no_type(server: Server) -> Any:
    return server.request("POST", "/reports", lines([report()]))


def wrong_type(server: Server) -> Any:
    return server.post(lines([report()]), Content_Type="text/html")


def wrong_encoding(server: Server) -> Any:
    return server.post(lines([report()]), Content_Encoding="br")


def not_gzip(server: Server) -> Any:
    return server.post(lines([report()]), Content_Encoding="gzip")


def bomb(server: Server) -> Any:
    return server.post(gzip.compress(bytes(10**8)), Content_Encoding="gzip")


def long_body(server: Server) -> Any:
    return server.post(lines([report() for _ in range(299)]) + b" " * 100_000)


def many_lines(server: Server) -> Any:
    return server.post(gzip.compress(b"x\n" * 301), Content_Encoding="gzip")


def many_blank_lines(server: Server) -> Any:
    return server.post(gzip.compress(b"\n" * 99_999), Content_Encoding="gzip")


def empty(server: Server) -> Any:
    return server.post(b"\n \n")


def put(server: Server) -> Any:
    return server.request("PUT", "/reports", lines([report()]), Content_Type=NDJSON)


def outside_path(server: Server) -> Any:
    return server.request("GET", "/collections/../operator/collections")


def operator(server: Server) -> Any:
    return server.request("GET", "/operator/collections")


def wrong_token(server: Server) -> Any:
    return server.request("GET", "/operator/collections", Authorization="Bearer " + "a" * 43)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [(no_type, 415), (wrong_type, 415), (wrong_encoding, 415), (not_gzip, 400), (bomb, 413),
     (long_body, 413), (many_lines, 413),
     (many_blank_lines, 413), (empty, 400), (put, 405), (outside_path, 404),
     (operator, 401), (wrong_token, 401)],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_what_is_not_an_upload_gets_a_4xx_and_is_not_final(
    server: Server, path: Path, ask: Any, expected: int
) -> None:
    status, headers, content = ask(server)
    assert (status, headers["content-type"]) == (expected, "application/problem+json")
    assert answer_of_http(status, None, content).refusal is None
    server.stop()
    assert received(path) == 0


@pytest.mark.parametrize("line", [b"x\n", b"\n", b"\r\n", b"{}\n"])
def test_a_body_of_too_many_lines_is_refused_before_any_is_read(
    monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """A few bytes of gzip can hold a million lines."""
    read: list[int] = []
    monkeypatch.setattr(device_api, "read_body", lambda body: read.append(len(body)))
    api = DeviceApi.__new__(DeviceApi)
    api._limits = LIMITS
    with pytest.raises(Problem) as refused:
        asyncio.run(api._texts(line * 301))
    assert (refused.value.status, read) == (413, [])
    asyncio.run(api._texts(line * 299 + line.rstrip(b"\n")))
    assert len(read) == 1


def slow(server: Server, head: bytes) -> bytes:
    """Send the beginning of a request and wait for what comes."""
    with closing(socket.create_connection(("127.0.0.1", server.port), timeout=20)) as connection:
        connection.sendall(head)
        pieces = []
        while piece := connection.recv(65_536):
            pieces.append(piece)
        return b"".join(pieces)


def test_a_body_that_never_comes_is_given_up(server: Server, path: Path) -> None:
    head = b"POST /reports HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 500\r\n\r\n"
    answer = slow(server, head % NDJSON.encode() + lines([report()]))
    assert answer.startswith(b"HTTP/1.1 408 ")
    server.stop()
    assert received(path) == 0


def test_headers_that_never_come_are_given_up(server: Server) -> None:
    assert slow(server, b"POST /reports HTTP/1.1\r\nHost: x\r\n") == b""
    assert slow(server, b"") == b""
    first = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
    assert slow(server, first + b"GET /").startswith(b"HTTP/1.1 404 ")


SLIPS = (b'"', b"{", b"}", b"[" * 500, b"\\ud800", b"1.0", b"null", b"\0", b"\xff", b",", b"-")


def hostile(chance: random.Random) -> tuple[bytes, dict[str, str]]:
    """Return a body that no report can be read from, and headers that may be odd, too."""
    text = bytearray(report(chance.choice(CELLS)).to_json().encode())
    kind = chance.randrange(6)
    if kind == 0:
        text = bytearray(chance.randbytes(chance.randrange(1, 2000)).replace(b"\n", b"x") + b"x")
    elif kind == 1:
        text[1:1] = b'"col":0,'
    elif kind == 2:
        at = chance.randrange(1, len(text) - 1)
        text[at:at] = b"\0" + chance.choice(SLIPS)
    elif kind == 3:
        text = text.replace(COLLECTION.digest[:8].encode(), b"00000000")
    elif kind == 4:
        text = text[: chance.randrange(1, len(text))]
    else:
        text = bytearray(b"[" * chance.randrange(1, 50_000))
    headers = {}
    body = bytes(text)
    if chance.random() < 0.3:
        body = gzip.compress(body)
        headers["Content_Encoding"] = "gzip"
        if chance.random() < 0.3:
            body = body[: chance.randrange(len(body))]
    if chance.random() < 0.1:
        headers["Content_Type"] = chance.choice(["text/plain", "", "application/json; x=\xe9"])
    return body, headers


def test_2000_hostile_uploads_get_a_4xx_each_and_leave_nothing(server: Server, path: Path) -> None:
    chance = random.Random(11)  # noqa: S311
    for _ in range(2000):
        body, headers = hostile(chance)
        status, _, _ = server.post(body, **headers)
        assert 400 <= status < 500, (body, headers)
    assert server.post(lines([report()]))[0] == 204
    server.stop()
    assert received(path) == 1


# Browsers


def test_any_page_may_send_reports_without_credentials(server: Server) -> None:
    status, headers, _ = server.request("OPTIONS", "/reports", Origin="https://app.example")
    assert (status, headers["access-control-allow-origin"]) == (204, "*")
    assert "access-control-allow-credentials" not in headers
    assert "content-type" in headers["access-control-allow-headers"].lower()


# Limits of addresses


def test_an_address_that_asks_too_often_is_told_when_to_come_back(path: Path, token: str) -> None:
    with serving(path, Limits(requests_a_minute=5)) as server:
        answers = [server.post(lines([report()])) for _ in range(6)]
        assert [status for status, _, _ in answers] == [204] * 5 + [429]
        assert 1 <= int(answers[-1][1]["retry-after"]) <= 13


def test_the_rate_limit_counts_addresses_and_forgets_them_hourly() -> None:
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    assert [limit.wait_s("192.0.2.1") for _ in range(60)] == [0.0] * 60
    assert 0 < limit.wait_s("192.0.2.1") <= 1
    assert limit.wait_s("192.0.2.2") == 0
    now[0] += 1.0
    assert limit.wait_s("192.0.2.1") == 0  # one a second
    assert limit.wait_s("192.0.2.1") > 0
    for k in range(60):  # all of a /64 are one
        assert limit.wait_s(f"2001:db8::{k:x}") == 0
    assert limit.wait_s("2001:db8::ffff:1") > 0
    assert limit.wait_s("2001:db8:0:1::1") == 0
    held = repr(vars(limit))
    assert "192.0.2" not in held
    now[0] += 3600
    assert limit.wait_s("192.0.2.1") == 0
    assert RateLimit(0).wait_s("x") == 0
    for k in range(50):  # as a socket for both kinds of addresses gives them
        assert limit.wait_s(f"::ffff:198.51.100.{k}") == 0


def test_a_report_that_comes_while_the_store_is_read_waits_for_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would be refused for good, as one of another collection."""
    digest = COLLECTION.digest.encode()

    async def act() -> None:
        store = await make_store(tmp_path / "new.db")
        await store.add(COLLECTION, 1)
        collections = store.collections
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow() -> object:
            begun.set()
            await may_end.wait()
            return await collections()

        monkeypatch.setattr(store, "collections", slow)
        catalogue = Catalogue(store)
        first = asyncio.create_task(catalogue.refresh())
        await begun.wait()
        second = asyncio.create_task(catalogue.learn({digest}))
        done, _ = await asyncio.wait([second], timeout=0.05)
        assert not done
        may_end.set()
        await asyncio.gather(first, second)
        assert digest in catalogue.known
        await store.close()

    asyncio.run(act())


def test_a_collection_that_was_just_added_elsewhere_is_found_at_once(tmp_path: Path) -> None:
    """By another process, a moment after the store was read."""

    async def act() -> None:
        store = await make_store(tmp_path / "new.db")
        catalogue = Catalogue(store)
        await catalogue.refresh()
        await catalogue.learn({COLLECTION.digest.encode()})
        assert not catalogue.known
        await store.add(COLLECTION, 1)
        await catalogue.learn({COLLECTION.digest.encode()})
        assert COLLECTION.digest.encode() in catalogue.known
        await store.add(OTHER, 1)
        many = {f"{k:064x}".encode() for k in range(100)}
        await catalogue.learn(many | {OTHER.digest.encode()})
        assert OTHER.digest.encode() in catalogue.known
        await store.close()

    asyncio.run(act())


def test_invented_digests_share_look_ups_and_hold_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act() -> None:
        store = await make_store(tmp_path / "new.db")
        catalogue = Catalogue(store)
        read = store.database.read
        looks: list[str] = []
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(sql: str, *values: Any) -> list[tuple[Any, ...]]:
            if sql == "SELECT digest FROM collections":
                looks.append(sql)
                begun.set()
                await may_end.wait()
            return await read(sql, *values)

        monkeypatch.setattr(store.database, "read", slow)

        def asked(start: int) -> list["asyncio.Task[None]"]:
            sets = [{f"{k:064x}".encode() for k in range(j, j + 9)} for j in range(start, 900, 9)]
            return [asyncio.create_task(catalogue.learn(digests)) for digests in sets]

        early = asked(0)
        await begun.wait()
        late = asked(9)  # one look-up runs, which may be too early for these: they share the next
        await store.add(COLLECTION, 1)
        honest = asyncio.create_task(catalogue.learn({COLLECTION.digest.encode()}))
        await catalogue.refresh()  # as an operator's request does
        assert not any(task.done() for task in (*early, *late, honest))
        may_end.set()
        await asyncio.gather(*early, *late, honest)
        assert len(looks) == 2
        assert COLLECTION.digest.encode() in catalogue.known
        await store.close()

    asyncio.run(act())


def test_who_goes_away_leaves_the_look_up_to_the_others(tmp_path: Path) -> None:
    async def act() -> None:
        store = await make_store(tmp_path / "new.db")
        catalogue = Catalogue(store)
        await store.add(COLLECTION, 1)
        gone, stays = (
            asyncio.create_task(catalogue.learn({COLLECTION.digest.encode()})) for _ in range(2)
        )
        await asyncio.sleep(0)
        gone.cancel()
        await stays
        assert COLLECTION.digest.encode() in catalogue.known
        await store.close()

    asyncio.run(act())


def test_an_address_that_was_quiet_for_long_may_send_no_more_than_others() -> None:
    now = [0.0]
    limit = RateLimit(60, clock=lambda: now[0])
    assert limit.wait_s("192.0.2.1") == 0
    now[0] = 1800.0
    assert sum(limit.wait_s("192.0.2.1") == 0 for _ in range(100)) == 60
