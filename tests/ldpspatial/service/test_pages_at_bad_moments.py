"""The pages in a browser, where answers are late or a call of the browser fails once."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Collection, Grid
from tests.support.browser import browser, missing

PAGES = Path(__file__).parents[3] / "ldpspatial" / "service" / "pages"
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
ORIGIN = "http://localhost:8999"  # never asked: every request is answered here
NORTH = "a" * 64
SOUTH = "b" * 64
PARK = Collection.create("park", Grid.plane(0, 0, 8, 5), 3.5)
NO_OUTLINES = {"type": "FeatureCollection", "features": []}
FAIL_ONCE = """
const persist = navigator.storage.persist.bind(navigator.storage);
let calls = 0;
navigator.storage.persist = () =>
  calls++ ? persist() : Promise.reject(new DOMException("not just now", "UnknownError"));
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(missing()), reason=missing() or "it is there"),
]
Answered = Callable[[Any, str], None]  # of a route, by the path that was asked for


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


def open_page(context: Any, path: str, html: str, answer: Answered) -> Any:
    """Open a page whose files are those of the service, and whose answers are made up."""
    page = context.new_page()

    def handle(route: Any) -> None:
        asked = route.request.url.removeprefix(ORIGIN)
        file = PAGES / (html if asked == path else asked.rpartition("/")[2])
        if asked == path or asked.startswith("/pages/"):
            route.fulfill(body=file.read_bytes(), content_type=TYPES[file.suffix])
        elif asked == "/outlines.geojson":
            route.fulfill(json=NO_OUTLINES)
        else:
            answer(route, asked)

    page.route("**/*", handle)
    page.goto(ORIGIN + path)
    return page


def released(digest: str, name: str) -> dict[str, Any]:
    numbers = {"minimum": 1, "received": 9, "counted": 9, "repeated": 0, "conflicting": 0}
    return {"digest": digest, "name": name, "state": "released", "refused": {}, **numbers}


def summary(reports: int) -> dict[str, Any]:
    error = {"mean": 100, "highest": 1}
    return {
        "n": reports,
        "fit": {"plausible": True, "p_value": 0.5},
        "expected_error": {"foretold": {"x": error}, "this_map": error},
    }


def map_of(density: int) -> dict[str, Any]:
    square = {"cells": 2, "kind": "plane", "south": 0, "west": 0, "height": 1, "width": 1}
    return {**square, "cell_m": [1, 1], "share": 1e-7, "density": [density, 0, 0, 0]}


class Operators:
    """What the service answers: two collections, of which the map of one is being made."""

    def __init__(self) -> None:
        self.is_made = False
        self.asked = 0  # for the map that is being made

    def __call__(self, route: Any, path: str) -> None:
        is_north = NORTH in path
        if path == "/operator/collections":
            route.fulfill(json=[released(NORTH, "NORTH"), released(SOUTH, "SOUTH")])
        elif path.endswith("map.json"):
            route.fulfill(json=map_of(1_111_111 if is_north else 2_222_222))
        elif is_north and not self.is_made:
            self.asked += 1
            route.fulfill(status=202, json={"state": "being made"})
        else:
            self.asked += is_north
            route.fulfill(json=summary(111 if is_north else 222))


def shown(page: Any) -> tuple[str, str, str]:
    """Return the name on the page, and what the map under it tells."""
    expected = page.inner_text("#expected").partition(" reports")[0].rpartition(" ")[2]
    cell = page.locator("#cells tr").first.text_content()
    return page.inner_text("#one-title"), expected, cell[:7]


def test_a_map_that_is_made_later_does_not_stand_under_another_name(chromium: Any) -> None:
    answers = Operators()
    page = open_page(chromium.new_context(), "/", "operator.html", answers)
    page.fill("#token", "x")
    page.press("#token", "Enter")
    page.click("#list button >> nth=0")
    page.wait_for_selector("#making:not([hidden])")
    page.click("#list button >> nth=1")
    page.wait_for_selector("#expected:has-text('222 reports')")
    answers.is_made = True
    page.wait_for_timeout(2500)  # the page asks for a map again after a second
    assert shown(page) == ("SOUTH", "222", "0022.2 ")
    assert page.is_hidden("#making")
    page.click("#list button >> nth=0")
    page.wait_for_selector("#expected:has-text('111 reports')")
    assert shown(page) == ("NORTH", "111", "0011.1 ")
    page.context.close()


def test_a_map_is_asked_for_once_at_a_time_however_often_it_is_chosen(chromium: Any) -> None:
    answers = Operators()
    page = open_page(chromium.new_context(), "/", "operator.html", answers)
    page.fill("#token", "x")
    page.press("#token", "Enter")
    for chosen in (0, 1, 0, 1, 0):
        page.click(f"#list button >> nth={chosen}")
        page.wait_for_selector("#making:not([hidden])" if chosen == 0 else "#map-done")
    page.wait_for_timeout(1500)  # for what was begun before to end
    before, began = answers.asked, page.evaluate("performance.now()")
    page.wait_for_timeout(3500)
    seconds = (page.evaluate("performance.now()") - began) / 1000  # more on a busy machine
    assert answers.asked - before <= 1 + 1.5 * seconds  # one a second, and not three
    answers.is_made = True
    page.wait_for_selector("#expected:has-text('111 reports')")
    page.context.close()


def test_a_passing_failure_leaves_the_button_for_another_try(chromium: Any) -> None:
    sent = []

    def answer(route: Any, path: str) -> None:
        if path == "/reports":
            sent.append(route.request.post_data)
            route.fulfill(status=204)
        else:
            route.fulfill(body=PARK.to_json(), content_type="application/json")

    context = chromium.new_context()
    context.add_init_script(FAIL_ONCE)
    page = open_page(context, f"/participate/{PARK.digest}", "participant.html", answer)
    page.wait_for_selector("#ready:not([hidden])")
    page.focus("#map")
    page.keyboard.press("ArrowUp")
    page.click("#take")
    page.wait_for_selector("#error:has-text('Nothing more was done')")
    page.wait_for_selector("#take:enabled")
    assert not sent
    page.click("#take")
    page.wait_for_selector("#sent:has-text('Thank you')", timeout=120_000)
    assert page.is_hidden("#error")
    assert len(sent) == 1
    context.close()
