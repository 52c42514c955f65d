"""The proxies of docs/proxies before the service: what they pass on, and that they log nobody."""

import asyncio
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from client_sdk import Grid
from client_sdk.rounds.enrolment import seat_request
from tests.support.round_devices import a_campaign
from tests.support.round_sessions import Seated, with_a_session
from tests.support.senders import found, new_store
from tests.support.service import COLLECTION, NDJSON, free_port, lines, report

CONFIGURATIONS = Path(__file__).parents[3] / "docs" / "proxies"
HOME = "127.0.0.77"  # where the clients are
NEIGHBOUR = "127.0.0.78"
AGENT = "planted-agent-7f3a"
SYSTEM_LOGS = [Path("/var/log/nginx"), Path("/var/log/haproxy.log")]
PROXIES = ["nginx", "haproxy"]
CAMPAIGN = a_campaign(  # of the longest vectors
    grid=Grid.plane(0, 0, 1000, 1024),
    most_length=1 << 20,
    micro_epsilon=1000,
    most_clients=5,
    sensitivity=1,
)
LOUD = {  # what turns logging on: the test must find an address then
    "nginx": [("error_log /dev/null emerg", "error_log {folder}/log info"),
              ("access_log off", "access_log {folder}/log")],
    "haproxy": [("no log", "log stdout format raw local0 info\n    option httplog")],
}  # fmt: skip


@dataclass
class Running:
    """A proxy in front of a service.

    Attributes
    ----------
    outside, inside : int
        Ports for devices and operators.
    service : subprocess.Popen
    """

    outside: int
    inside: int
    service: "subprocess.Popen[bytes]"

    def request(
        self, method: str, path: str, body: bytes = b"", home: str = HOME, **headers: str
    ) -> int:
        """Return the status of a response, sent to the port for devices or, inside, operators."""
        return self.answer(method, path, body, home, **headers)[0]

    def answer(
        self, method: str, path: str, body: bytes = b"", home: str = HOME, **headers: str
    ) -> tuple[int, bytes]:
        """Return status and content of a response."""
        port = self.inside if headers.pop("at", "") == "inside" else self.outside
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=30, source_address=(home, 0), context=trusting()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(connection):
            connection.request(method, path, body, {"User-Agent": AGENT, **named})
            response = connection.getresponse()
            return response.status, response.read()

    def post(self, body: bytes, home: str = HOME, **headers: str) -> int:
        return self.request("POST", "/reports", body, home, Content_Type=NDJSON, **headers)

    def raw(self, content: bytes, secure: bool = True) -> bytes:
        """Send bytes and give up a moment later; return what came back."""
        received = b""
        with ExitStack() as opened, suppress(OSError):
            stream = opened.enter_context(
                socket.create_connection(
                    ("127.0.0.1", self.outside), timeout=1, source_address=(HOME, 0)
                )
            )
            if secure:
                stream = opened.enter_context(trusting().wrap_socket(stream))
            stream.sendall(content)
            stream.settimeout(0.3)
            received = stream.recv(4096)
        return received


def trusting() -> ssl.SSLContext:
    """Return what accepts the test's own certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def program(name: str) -> str:
    """Return the path of a program, or skip the test."""
    place = shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if place is None:
        pytest.skip(f"{name} is not installed: its configuration was not tested")
    return place


def certificate(folder: Path) -> None:
    """Write tls.crt, tls.key, and both in tls.pem."""
    subprocess.run(
        [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout", folder / "tls.key",
         "-out", folder / "tls.crt"],
        check=True, capture_output=True,
    )  # fmt: skip
    pem = (folder / "tls.crt").read_bytes() + (folder / "tls.key").read_bytes()
    (folder / "tls.pem").write_bytes(pem)


def configured(name: str, folder: Path, ports: dict[str, int], loud: bool) -> list[str]:
    """Write a configuration for this machine; return the command that starts the proxy."""
    file = CONFIGURATIONS / {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}[name]
    text = file.read_text()
    changes = [
        ("/etc/ldpspatial/", f"{folder}/"),
        ("127.0.0.1:8443", f"127.0.0.1:{ports['inside']}"),
        ("127.0.0.1:8000", f"127.0.0.1:{ports['service']}"),
    ]
    if name == "nginx":
        temporary = [f"{kind}_temp_path {folder}/{kind};" for kind in
                     ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]  # fmt: skip
        changes += [
            ("pid /run/nginx.pid;", f"pid {folder}/pid; daemon off; user root;"),
            ("http {", "http {\n" + "\n".join(temporary)),
            ("listen 443 ssl", f"listen 127.0.0.1:{ports['outside']} ssl"),
            ("        listen [::]:443 ssl;\n", ""),
        ]
    else:
        changes.append(("bind :443", f"bind 127.0.0.1:{ports['outside']}"))
    for old, new in changes + (LOUD[name] if loud else []):
        assert old in text, old
        text = text.replace(old, new.replace("{folder}", str(folder)))
    (folder / file.name).write_text(text)
    more = ["-e", f"{folder}/start", "-c"] if name == "nginx" else ["-db", "-f"]
    return [program(name), *more, str(folder / file.name)]


@contextmanager
def running(name: str, folder: Path, rate: int = 0, loud: bool = False) -> Iterator[Running]:
    """Start a proxy and a service; end them."""
    certificate(folder)
    ports = {each: free_port() for each in ("outside", "inside", "service")}
    command = configured(name, folder, ports, loud)
    if not (folder / "store.db").exists():
        asyncio.run(new_store(str(folder / "store.db")))
    serve = [sys.executable, "-m", "ldpspatial", "serve", str(folder / "store.db"), "--proxy",
             "127.0.0.1", "--rate", str(rate), "--port", str(ports["service"])]  # fmt: skip
    with (
        (folder / "service.log").open("wb") as service_log,
        (folder / "proxy.log").open("wb") as proxy_log,
    ):
        service = subprocess.Popen(serve, stdout=service_log, stderr=service_log)
        proxy = subprocess.Popen(command, stdout=proxy_log, stderr=proxy_log)
        try:
            for port in ports.values():
                wait_for(port, folder)
            yield Running(ports["outside"], ports["inside"], service)
        finally:
            for process in (proxy, service):
                process.terminate()
                process.wait(60)


def wait_for(port: int, folder: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < deadline, (folder / "proxy.log").read_text()
            time.sleep(0.05)


def written(folder: Path) -> bytes:
    """Return every byte that proxy and service wrote, and what the system's logs hold."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    for place in SYSTEM_LOGS:
        files += place.rglob("*") if place.is_dir() else [place] if place.is_file() else []
    return b"".join(file.read_bytes() for file in files if file.is_file())


HEAD = b"POST /reports HTTP/1.1\r\nHost: x\r\nUser-Agent: %s\r\n" % AGENT.encode()
HOSTILE: list[Callable[[Running], object]] = [
    lambda at: at.post(bytes((1 << 21) + 1)),
    lambda at: at.post(b"{}" * 1000),
    lambda at: at.request("GET", "/" + "x" * 6000),
    lambda at: at.request("GET", "/reports"),
    lambda at: at.request("PUT", f"/collections/{COLLECTION.digest}", b"x"),
    lambda at: at.raw(b"\x00\xff garbage\r\n\r\n"),
    lambda at: at.raw(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n"),
    lambda at: at.raw(HEAD + b"Content-Length: 99\r\n\r\nslow"),
    lambda at: at.raw(HEAD + b"Content-Length: -1\r\n\r\n"),
    lambda at: at.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
    lambda at: at.raw(HEAD),
    lambda at: at.raw(b"GET / HTTP/1.0\r\n\r\n", secure=False),
    lambda at: at.raw(b"\x16\x03\x01\x00\x05hello", secure=False),
    lambda at: at.raw(b"", secure=False),
]


def talk(at: Running) -> list[str]:
    """Send good, bad and hostile requests; return the ids of reports that were acknowledged."""
    sent = [report() for _ in range(30)]
    for each in sent[:10]:
        assert at.post(each.to_body().encode(), Cookie=AGENT, Referer=AGENT) == 204
    assert at.post(lines(sent[10:])) == 204
    assert at.request("GET", f"/collections/{COLLECTION.digest}") == 200
    for page in (f"/participate/{COLLECTION.digest}", "/pages/participant.js", "/outlines.geojson"):
        assert at.request("GET", page) == 200
    assert at.post(b"x" * 200) == 422
    for outside in (
        "/operator/collections",
        "/metrics",
        "/",
        "/collections/",
        "/reports/x",
        "/pages/../metrics",
    ):
        assert at.request("GET", outside, Authorization="Bearer x") == 404
    assert at.request("GET", "/operator/collections", at="inside") == 401
    with suppress(OSError):  # or the connection is closed while it is sent
        assert at.post(bytes((1 << 21) + 1)) == 413
    for attempt in HOSTILE:
        with suppress(OSError, http.client.HTTPException):
            attempt(at)
    assert at.post(lines(sent)) == 204  # it still answers
    at.service.terminate()
    at.service.wait(60)
    with suppress(OSError, http.client.HTTPException):
        assert at.post(lines(sent)) in (502, 503)
    return [each.id for each in sent]


def take_part(at: Running, seated: Seated) -> None:
    """Make requests of a round: they come to the service with the token of the seat, and whole."""
    campaign = f"/rounds/{CAMPAIGN.digest}"
    enrolled = f"/directory/{CAMPAIGN.digest}"
    status, certificate = at.answer("POST", enrolled, seated.key.public)
    assert (status, len(certificate)) == (200, 132)
    assert at.answer("GET", campaign) == (200, CAMPAIGN.to_json().encode())
    assert at.request("GET", f"{campaign}/1") == 200
    request = seat_request(seated.key, certificate, CAMPAIGN.digest, 1)
    status, seat = at.answer("POST", f"{campaign}/1/seat", request, Cookie=AGENT, Referer=AGENT)
    told = {"session": seated.session, "number": seated.seat, "token": seated.token}
    assert (status, json.loads(seat)) == (200, told)
    session, token = (
        f"/rounds/sessions/{seated.session}",
        {"Authorization": f"Bearer {seated.token}"},
    )
    neighbour = bytes(4)
    ask = f"{session}/identities/{seated.seat}"
    assert at.request("POST", ask, neighbour) == 401
    status, certificates = at.answer("POST", ask, neighbour, **token)
    assert (status, len(certificates)) == (200, 132)
    # The longest vector comes to the service, whose session is not there yet.
    vector = f"{session}/2/{seated.seat}"
    assert seated.longest > 2_200_000  # more than other bodies may have
    assert at.request("POST", vector, bytes(seated.longest), **token) == 410
    for path, length in ((enrolled, 1 << 14), (f"{campaign}/1/seat", 1 << 14), (vector, 9 << 20)):
        with suppress(OSError):  # or the connection is closed while it is sent
            assert at.request("POST", path, bytes(length), **token) == 413
    for outside in ("/rounds", "/directory", f"{campaign}/1/x", f"{session}/5/0", session):
        assert at.request("GET", outside) == 404


@pytest.mark.parametrize("name", PROXIES)
def test_no_byte_that_is_written_tells_an_address_or_an_agent(name: str, tmp_path: Path) -> None:
    asyncio.run(new_store(str(tmp_path / "store.db")))
    seated = asyncio.run(with_a_session(tmp_path / "store.db", CAMPAIGN))
    with running(name, tmp_path) as at:
        take_part(at, seated)
        sent = talk(at)
    everything = written(tmp_path)
    for planted in (HOME, AGENT, "Mozilla", seated.token):
        assert planted.encode() not in everything
    _, ids = asyncio.run(found(str(tmp_path / "store.db")))
    assert {each.hex() for each in ids} == set(sent)


@pytest.mark.parametrize("name", PROXIES)
def test_the_address_would_be_found_where_a_proxy_logs_it(name: str, tmp_path: Path) -> None:
    with running(name, tmp_path, loud=True) as at:
        talk(at)
    assert HOME.encode() in written(tmp_path)


@pytest.mark.parametrize("name", PROXIES)
def test_the_rate_limit_counts_clients_and_believes_none_of_them(name: str, tmp_path: Path) -> None:
    with running(name, tmp_path, rate=4) as at:
        for k in range(4):
            claimed = f"203.0.113.{k}"
            assert at.post(lines([report()]), X_Forwarded_For=claimed) == 204
        assert at.post(lines([report()]), X_Forwarded_For="203.0.113.99") == 429
        assert at.post(lines([report()]), home=NEIGHBOUR) == 204
