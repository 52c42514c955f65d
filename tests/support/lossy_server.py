"""A server on this machine that loses requests and responses, and counts what arrives."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from client_sdk import Report


class Collected:
    """What a lossy server was sent.

    Attributes
    ----------
    requests : list of (headers, body)
        Every request that arrived, also those whose response was lost.
    reports : dict of str to Report
        What the server holds, by id.
    """

    def __init__(self, losses: list[str]):
        self.losses = losses
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.reports: dict[str, Report] = {}
        self.lock = threading.Lock()
        self.url = ""

    def fate(self) -> str:
        """Return what happens to the next request: "request lost", "response lost", or ""."""
        return self.losses.pop(0) if self.losses else ""

    def cells(self) -> Counter[tuple[int, int]]:
        """Return the number of reports by cell."""
        return Counter((report.row, report.col) for report in self.reports.values())


@contextmanager
def lossy_server(losses: list[str]) -> Iterator[Collected]:
    """Serve on loopback; the requests meet the given fates in order, later ones succeed."""
    collected = Collected(list(losses))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with collected.lock:
                fate = collected.fate()
                if fate == "request lost":
                    self.close_connection = True
                    return
                collected.requests.append((dict(self.headers), body))
                report = Report.from_json(body.decode())
                collected.reports.setdefault(report.id, report)
            if fate == "response lost":
                self.close_connection = True
                return
            self.send_response(503 if fate == "busy" else 201)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    collected.url = f"http://127.0.0.1:{server.server_address[1]}/reports"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collected
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
