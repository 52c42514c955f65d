"""What goes over the wire for a report, and what the answers mean."""

import email.utils
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from client_sdk import Answer, answer_of_http, https_sender
from client_sdk.errors import ParameterError
from client_sdk.sending import DELIVERED, LATER
from tests.support.lossy_server import lossy_server

BODY = b'{"col":0,"collection":"%s","id":"%s","row":0,"schema":"ldpspatial/report/1"}' % (
    b"a" * 64, b"b" * 32
)  # fmt: skip


def problem(name: str) -> bytes:
    return json.dumps({"type": f"urn:ldpspatial:problem:{name}", "status": 400}).encode()


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(status: int) -> None:
    assert answer_of_http(status, body=problem("closed")) == DELIVERED


def test_no_thread_for_the_limit_of_time_is_a_failure_that_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with lossy_server([]) as collected:
        monkeypatch.setattr(threading.Timer, "start", refuse)
        with pytest.raises(OSError, match="can't start new thread"):
            https_sender(collected.url)(BODY)


@pytest.mark.parametrize("name", ["closed", "foreign", "malformed", "conflict"])
@pytest.mark.parametrize("status", [400, 404, 409, 410, 422])
def test_a_registered_problem_is_final(status: int, name: str) -> None:
    assert answer_of_http(status, "100", problem(name)) == Answer(refusal=name)


@pytest.mark.parametrize("status", [100, 301, 302, 400, 403, 404, 408, 410, 429, 500, 502, 503])
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"null", b"[]", b'"closed"', b"{}", b'{"type": null}', b'{"type": "closed"}',
     b'{"type": "about:blank"}', problem("unknown"), problem("closed").upper(), b"\xff" * 20,
     b"[" * 60_000],
    ids=range(13),
)  # fmt: skip
def test_anything_else_passes(status: int, body: bytes) -> None:
    """A captive portal or a proxy must not delete reports."""
    assert answer_of_http(status, body=body) == LATER


@pytest.mark.parametrize(
    "more",
    ["NaN", "Infinity", "1.5", "1e999", "1" * 18, "1" * 5000, "true", "null", "[" * 9 + "]" * 9,
     "[" * 20_000 + "]" * 20_000, '"\x01"', '"\ufffd"', '"' + "a" * 70_000 + '"', '1, "more": 2',
     "1,"],
    ids=range(15),
)  # fmt: skip
def test_a_problem_that_is_no_strict_json_passes(more: str) -> None:
    start = problem("closed").decode().removesuffix("}")
    assert answer_of_http(410, body=f'{start}, "more": 1}}'.encode()).refusal == "closed"
    assert answer_of_http(410, "7", f'{start}, "more": {more}}}'.encode()) == Answer(
        retry_after_s=7
    )


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-le"])
def test_a_problem_is_read_as_utf_8(encoding: str) -> None:
    assert answer_of_http(410, body=problem("closed").decode().encode(encoding)) == LATER
    assert answer_of_http(410, body=problem("closed")[:-1] + b', "x": "\xff"}') == LATER


def test_a_long_answer_is_read_to_its_end() -> None:
    start = problem("closed").decode().removesuffix("}")
    for length, refusal in ((60_000, "closed"), (70_000, None)):  # of two bytes each
        body = f'{start}, "x": "{"é" * length}"}}'.encode()
        with answering(410, {}, body) as (url, _):
            assert https_sender(url)(BODY).refusal == refusal


@pytest.mark.parametrize("status", [301, 500, 503])
def test_a_problem_is_final_only_if_it_is_the_requests_fault(status: int) -> None:
    assert answer_of_http(status, body=problem("closed")) == LATER


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("120", 120), (" 7 ", 7), ("0" * 20 + "5", 5),
     ("99999999999999999999", 86_400), ("-5", 0), ("1.5", 0),
     ("soon", 0), ("", 0), ("\u0663", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
     ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400), ("Fri, 99 Dec 9999 23:59:59 GMT", 0)],
)  # fmt: skip
def test_retry_after_in_seconds_or_as_a_date(text: str, seconds: float) -> None:
    assert answer_of_http(503, text).retry_after_s == seconds
    assert answer_of_http(503, 120).retry_after_s == 120  # some libraries give a number
    assert answer_of_http(503, 120.5).retry_after_s == 120.5
    assert answer_of_http(503, float("nan")).retry_after_s == 0


def test_retry_after_as_a_date_counts_from_now() -> None:
    text = email.utils.formatdate(time.time() + 100, usegmt=True)
    for written in (text, text.lower(), f" {text} "):
        assert 90 <= answer_of_http(429, written).retry_after_s <= 100
    for other in (text.replace("GMT", "+0100"), text.removesuffix(" GMT"), text.replace(",", "")):
        assert answer_of_http(429, other).retry_after_s == 0


@pytest.mark.parametrize(
    "url",
    ["http://example.org/reports", "ftp://127.0.0.1/", "", "example.org", None, 3, "https://",
     "https://user:secret@example.org/", "http://127.0.0.1.example.org/", "file:///etc/passwd",
     "https://[", "https://example.org:abc/", "https://example.org/a b", "https://\u00fc.example/",
     "https://example.org/\u00fc", "https://example.org/\n"],
)  # fmt: skip
def test_only_encrypted_connections_leave_this_machine(url: Any) -> None:
    with pytest.raises(ParameterError, match="url must"):
        https_sender(url)


@pytest.mark.parametrize("timeout", [0, -1, 3601, float("nan"), None])
def test_a_bad_timeout_is_refused(timeout: Any) -> None:
    with pytest.raises(ParameterError, match="timeout_s"):
        https_sender("https://example.org/", timeout)


def test_a_request_holds_the_body_and_nothing_that_tells_who_sent_it() -> None:
    with lossy_server([]) as collected:
        send = https_sender(collected.url)
        assert [send(BODY), send(BODY)] == [DELIVERED, DELIVERED]
    for headers, body in collected.requests:
        assert body == BODY
        assert {name.lower() for name in headers} == {
            "host", "content-type", "content-length", "connection", "accept-encoding"
        }  # fmt: skip
        assert headers["Connection"] == "close"  # no connection that a second report shares
        assert headers["Content-Type"] == "application/x-ndjson"


def test_lost_requests_and_responses_are_errors_of_the_connection() -> None:
    with lossy_server(["request lost", "response lost", "busy"]) as collected:
        send = https_sender(collected.url)
        for _ in range(2):
            with pytest.raises(OSError, match="closed connection"):
                send(BODY)
        assert [send(BODY), send(BODY)] == [LATER, DELIVERED]
    assert len(collected.reports) == 1


@contextmanager
def answering(status: int, headers: dict[str, str], body: bytes) -> Iterator[tuple[str, list[str]]]:
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            paths.append(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            paths.append("followed")
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/reports", paths
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("place", ["/elsewhere", "http://[", "", "ftp://127.0.0.1/"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirection_is_followed(status: int, place: str) -> None:
    with answering(status, {"Location": place, "Set-Cookie": "a=b"}, b"") as (url, paths):
        send = https_sender(url)
        assert [send(BODY), send(BODY)] == [LATER, LATER]
    assert paths == ["/reports", "/reports"]


def test_refusals_and_waits_are_read_from_the_response() -> None:
    with answering(410, {"Content-Type": "application/problem+json"}, problem("closed")) as (
        url,
        _,
    ):
        assert https_sender(url)(BODY) == Answer(refusal="closed")
    with answering(503, {"Retry-After": "42"}, b"") as (url, _):
        assert https_sender(url)(BODY) == Answer(retry_after_s=42)


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    with lossy_server([]) as collected:
        assert https_sender(collected.url)(BODY) == DELIVERED
    assert "Proxy-Authorization" not in collected.requests[0][0]


@contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request and then does with the connection what it likes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    while not connection.recv(65536).endswith(BODY):
                        pass
                    answer(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize("first", [INTERIM, INTERIM.replace(b"103", b"102"), INTERIM * 10])
def test_interim_responses_are_skipped(first: bytes) -> None:
    with raw_server(lambda connection: connection.sendall(first + CREATED)) as url:
        assert https_sender(url)(BODY) == DELIVERED


@pytest.mark.parametrize("status", [b"100 Continue", b"103 Early Hints"])
def test_endless_interim_responses_are_given_up(status: bytes) -> None:
    def answer(connection: socket.socket) -> None:
        while True:
            connection.sendall(b"HTTP/1.1 %b\r\n\r\n" % status)

    with raw_server(answer) as url, pytest.raises(http.client.HTTPException, match="interim"):
        https_sender(url)(BODY)


@pytest.mark.parametrize("length", [b"-5", b"-1", b"zz", b"5;", b"fffffffffffffffffff"])
def test_a_length_that_is_none_is_a_failure_that_passes(length: bytes) -> None:
    head = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n"
    with (
        raw_server(lambda connection: connection.sendall(head + length + b"\r\n")) as url,
        suppress(OSError, http.client.HTTPException),  # an uploader takes both alike
    ):
        assert https_sender(url)(BODY) == LATER


@pytest.mark.parametrize("status", ["200", None, True, 99, 1000])
def test_what_is_no_status_is_refused(status: Any) -> None:
    with pytest.raises(ParameterError, match="status must be a whole number from 100 to 999"):
        answer_of_http(status)


def test_an_answer_that_drips_is_cut_off_in_the_end() -> None:
    def answer(connection: socket.socket) -> None:
        while True:  # until the other side has had enough
            connection.sendall(b"H")
            time.sleep(0.05)

    with raw_server(answer) as url, pytest.raises((OSError, http.client.HTTPException)):
        https_sender(url, timeout_s=0.5)(BODY)


@pytest.mark.parametrize("host", ["a..b", ".x", "a" * 70])
def test_hosts_that_no_name_server_is_asked_for_are_refused(host: str) -> None:
    with pytest.raises(ParameterError, match="url must be an address"):
        https_sender(f"https://{host}/")


def test_a_cookie_is_not_sent_back() -> None:
    with answering(201, {"Set-Cookie": "device=41"}, b"") as (url, _), lossy_server([]) as other:
        https_sender(url)(BODY)
        https_sender(other.url)(BODY)
    assert "Cookie" not in other.requests[0][0]
