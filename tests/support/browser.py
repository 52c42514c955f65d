"""Headless Chromium for pages: what it asks for is written down, and no other host is reached."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def missing() -> str:
    """Return why no browser can be started, or nothing."""
    if not any(Path(path).exists() for path in CHROMIUM):
        return "chromium is not installed: the tests of the pages did not run"
    return ""


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium, and end it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (only where it is there)

    path = next(path for path in CHROMIUM if Path(path).exists())
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()


class Watched:
    """A page whose requests, complaints and errors are written down.

    Attributes
    ----------
    page : playwright.sync_api.Page
    requests : list of (method, url, body)
    complaints : list of str
    """

    def __init__(self, context: Any):
        self.page = context.new_page()
        self.requests: list[tuple[str, str, str]] = []
        self.complaints: list[str] = []
        self.page.on("request", self._note)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._listen)

    def _note(self, request: Any) -> None:
        self.requests.append((request.method, request.url, request.post_data or ""))

    def _listen(self, message: Any) -> None:
        if message.type == "error":
            self.complaints.append(message.text)

    def hosts(self) -> set[str]:
        """Return which hosts were asked; what a page makes itself has none."""
        urls = [url for _, url, _ in self.requests]
        return {url.split("/")[2] for url in urls if not url.startswith(("blob:", "data:"))}
