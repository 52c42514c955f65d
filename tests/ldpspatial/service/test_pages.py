"""The pages for people, in a real browser."""

import asyncio
import json
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client_sdk import Collection, Grid, Series
from ldpspatial.channels.playing import draw_reports
from ldpspatial.errors import InputError
from ldpspatial.service.closing import close_collection
from ldpspatial.service.page_files import Pages
from ldpspatial.service.store import make_store, open_store
from ldpspatial.service.tokens import make_token
from tests.support.browser import Watched, browser, missing
from tests.support.service import COLLECTION, OTHER, Server, lines, report, serving
from tests.support.typescript import built_client

ROOT = Path(__file__).parents[3]
MANY = 8  # people at one place: chance of five or more true cells below 3e-7 (2.2 % each)
TWO = Collection.create("two reports", Grid.plane(0, 0, 70, 7), 3.5, max_reports=2)
OUTLINES = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "properties": {},
            "geometry": {
                "type": "LineString",
                "coordinates": [[13.3, 52.45], [13.4, 52.52], [13.5, 52.58]],
            },
        }
    ],
}

pytestmark = pytest.mark.slow
needs_browser = pytest.mark.skipif(bool(missing()), reason=missing() or "it is there")


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    token = await make_token(store, "laptop")
    await store.add(COLLECTION, 1000)
    await store.add(OTHER, 10)
    await store.add(TWO, 1)
    await store.close()
    return token


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Run in a thread of its own: the browser's driver has a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "store.db"
    return path, apart(_prepared(path))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as started:
        yield started


def send_city(server: Server, n: int = 3000) -> None:
    """Send the reports of people around one cell."""
    rng = np.random.default_rng(1)
    rows = np.clip(rng.normal(7, 2, n), 0, 14).astype(np.int64)
    cols = np.clip(rng.normal(9, 3, n), 0, 14).astype(np.int64)
    drawn = zip(*draw_reports(COLLECTION.table, rows, cols, rng), strict=True)
    assert server.post(lines([report((int(row), int(col))) for row, col in drawn]))[0] == 204


def violations(page: Any) -> list[str]:
    """Return what axe finds wrong with a page, light and wide, dark and narrow.

    The colours that a style has for the dark do not depend on the width.
    """
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = []
    for scheme, width in (("light", 1100), ("dark", 320)):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 900})
        report_ = Axe().run(page)
        found += [
            f"{scheme} {width}: {each['id']} {each['nodes'][0]['html'][:200]}"
            for each in report_.response["violations"]
        ]
        wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wider <= 0, f"{scheme} {width}: {wider} pixels too wide"
    page.set_viewport_size({"width": 1100, "height": 900})
    return found


def origin(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


@needs_browser
def test_an_operator_closes_releases_and_sees_the_map(
    place: tuple[Path, str], chromium: Any
) -> None:
    path, token = place
    with serving(path) as server:
        send_city(server)
        context = chromium.new_context(accept_downloads=True)
        watched = Watched(context)
        page = watched.page
        page.goto(origin(server) + "/")
        page.fill("#token", "wrong")
        page.press("#token", "Enter")
        page.wait_for_selector("#error:has-text('not valid')")
        assert violations(page) == []
        watched.complaints.clear()  # of the 401
        page.fill("#token", token)
        page.press("#token", "Enter")
        page.wait_for_selector("#list tr:nth-child(3)")
        page.click("#list button >> nth=0")
        page.wait_for_selector("#one:not([hidden])")
        assert "3,000 acknowledged" in page.inner_text("#facts")
        assert page.is_disabled("#release")
        assert violations(page) == []

        page.click("#close")
        page.click("#ask-no")
        assert "Open" in page.inner_text("#state-words")
        page.click("#close")
        assert "cannot be opened again" in page.inner_text("#ask")
        assert violations(page) == []
        page.click("#ask-yes")
        page.wait_for_selector("#release:not([disabled])")
        assert "3,000 (0 repeated" in page.inner_text("#facts")
        page.click("#release")
        assert "This cannot be undone" in page.inner_text("#ask")
        page.click("#ask-yes")
        page.wait_for_selector("#map-done:not([hidden])", timeout=600_000)
        assert "look as devices of this collection send them" in page.inner_text("#fit")
        assert "as if this map were the truth" in page.inner_text("#expected")
        assert "km" in page.inner_text("#density .scale-bar")
        page.focus("#density")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowRight")
        assert page.inner_text("#cell-words").startswith("Row 8, column 8: ")
        page.click("#table summary")
        shares = page.eval_on_selector_all(
            "#cells td:nth-child(3)", "cells => cells.map((cell) => parseFloat(cell.textContent))"
        )
        assert len(shares) == 225
        assert sum(shares) == pytest.approx(100, abs=0.5)
        assert violations(page) == []
        with page.expect_download() as waited:
            page.click("#png")
        assert Path(waited.value.path()).read_bytes()[:4] == b"\x89PNG"
        page.click("#sign-out")
        page.wait_for_selector("#sign-in:not([hidden])")
        assert watched.hosts() == {f"127.0.0.1:{server.port}"}
        assert watched.complaints == []
        assert not any(token in url for _, url, _ in watched.requests)
        context.close()


@needs_browser
def test_below_the_minimum_and_a_new_collection(
    place: tuple[Path, str], chromium: Any, tmp_path: Path
) -> None:
    path, token = place
    document = tmp_path / "new.json"
    document.write_text(Collection.create("<b>new</b>", Grid.plane(0, 0, 9, 3), 1).to_json())
    with serving(path) as server:
        assert server.post(lines([report()]))[0] == 204
        context = chromium.new_context()
        watched = Watched(context)
        page = watched.page
        page.goto(origin(server) + "/")
        page.fill("#token", token)
        page.press("#token", "Enter")
        page.click("#list button >> nth=0")
        page.click("#close")
        page.click("#ask-yes")
        page.wait_for_selector("#why-not:has-text('the minimum is 1,000')")
        assert page.is_disabled("#release")
        page.click("#drop")
        page.click("#ask-yes")
        page.wait_for_selector("#state-words:has-text('Dropped')")
        page.set_input_files("#document", document)
        page.fill("#minimum", "5")
        page.click("#add button")
        page.wait_for_selector("#list tr:nth-child(4)")
        assert page.inner_text("#one-title") == "<b>new</b>"  # a name is a text
        page.set_input_files("#document", document)
        page.click("#add button")
        page.wait_for_selector("#error:has-text('must be new')")
        context.close()


@needs_browser
def test_a_participant_sees_tries_and_sends(place: tuple[Path, str], chromium: Any) -> None:
    path, _ = place
    with serving(path) as server:
        sent = []
        for _ in range(MANY):
            context = chromium.new_context()
            watched = Watched(context)
            page = watched.page
            page.goto(f"{origin(server)}/participate/{OTHER.digest}")
            page.wait_for_selector("#ready:not([hidden])")
            page.focus("#map")
            page.keyboard.press("ArrowUp")
            assert page.inner_text("#true-cell") == "row 8 from the south, column 7 from the west"
            page.click("#many")
            assert "1000 draws fell on" in page.inner_text("#many-words")
            page.click("#draw")
            assert [method for method, _, _ in watched.requests] == ["GET"] * len(watched.requests)
            if not sent:
                assert violations(page) == []
            page.click("#take")
            page.wait_for_selector("#sent:has-text('Thank you')", timeout=120_000)
            assert page.inner_text("#spent") == "3.5 of 3.5 (1 of 1 reports)"
            page.reload()
            page.wait_for_selector("#spent:has-text('1 of 1')")
            page.focus("#map")
            page.keyboard.press("ArrowDown")
            page.wait_for_timeout(200)
            assert page.is_disabled("#take")
            if not sent:
                assert violations(page) == []
            posts = [(url, body) for method, url, body in watched.requests if method != "GET"]
            assert [url for url, _ in posts] == [f"{origin(server)}/reports"]
            assert len(posts[0][1]) == 192
            cell = json.loads(posts[0][1])
            sent.append((cell["row"], cell["col"]))
            assert watched.hosts() == {f"127.0.0.1:{server.port}"}
            assert watched.complaints == []
            context.close()
        # The true cell, (8, 7), is in no more bodies than chance puts there.
        assert sent.count((8, 7)) < 5
        assert len(set(sent)) > 2


CLICK_AT_ONCE = """
new MutationObserver((changes, observer) => {
  const ready = document.getElementById("ready");
  if (!ready || ready.hidden) return;
  observer.disconnect();
  document.getElementById("here").click();
}).observe(document, { subtree: true, childList: true, attributes: true });
"""


@needs_browser
def test_a_click_in_the_first_moment_is_not_lost(place: tuple[Path, str], chromium: Any) -> None:
    path, _ = place
    where = {"latitude": 52.52, "longitude": 13.405}
    with serving(path) as server:
        context = chromium.new_context(geolocation=where, permissions=["geolocation"])
        page = Watched(context).page
        page.add_init_script(CLICK_AT_ONCE)
        page.goto(f"{origin(server)}/participate/{OTHER.digest}")
        page.wait_for_selector("#take:enabled")
        assert page.inner_text("#true-cell") == "row 7 from the south, column 7 from the west"
        context.close()


@needs_browser
def test_one_cap_holds_for_all_collections_of_a_site(chromium: Any, tmp_path: Path) -> None:
    several = [Collection.create(f"map {k}", Grid.plane(0, 0, 70, 7), 3.5) for k in range(3)]
    series = Series.create(
        "week", Grid.plane(0, 0, 70, 7), 2, first_start=0, window_seconds=10, windows=2
    )
    path = tmp_path / "store.db"

    async def prepare() -> None:
        store = await make_store(path)
        for each in (*several, series.collection(1)):
            await store.add(each, 1)
        await store.close()

    apart(prepare())
    with serving(path) as server:
        context = chromium.new_context()
        page = Watched(context).page
        for collection in several[:2]:  # of a cap of 8
            page.goto(f"{origin(server)}/participate/{collection.digest}")
            page.click("#map", position={"x": 150, "y": 150})
            page.click("#take:not([disabled])")
            page.wait_for_selector("#sent:has-text('Thank you')", timeout=120_000)
        page.goto(f"{origin(server)}/participate/{several[2].digest}")
        page.click("#map", position={"x": 150, "y": 150})
        page.wait_for_timeout(300)
        assert page.is_disabled("#take")
        page.goto(f"{origin(server)}/participate/{series.collection(1).digest}")
        page.wait_for_selector("#error:has-text('a window of a series')")
        context.close()


@needs_browser
def test_a_report_waits_where_the_service_is_away(place: tuple[Path, str], chromium: Any) -> None:
    path, _ = place
    context = chromium.new_context()
    page = Watched(context).page
    with serving(path) as server:
        page.goto(f"{origin(server)}/participate/{TWO.digest}")
        page.click("#map", position={"x": 150, "y": 150})
        port = server.port
        server.kill()
        page.click("#take")
        page.wait_for_selector("#sent:has-text('could not be reached')", timeout=120_000)
        assert page.inner_text("#waiting") == "1 reports"
        assert page.inner_text("#spent") == "3.5 of 7 (1 of 2 reports)"
        server.port = port
        server.start()
        page.clock.install()
        page.clock.fast_forward("25:00:00")  # past the pause after a failure
        page.reload()
        page.clock.run_for(10_000)
        page.wait_for_selector("#sent:has-text('Thank you')", timeout=120_000)
        assert page.inner_text("#waiting") == "nothing"
    context.close()


@needs_browser
@pytest.mark.parametrize(
    ("digest", "told"),
    [("x", "names no collection"), ("0" * 64, "no such collection")],
)
def test_an_address_of_nothing(
    place: tuple[Path, str], chromium: Any, digest: str, told: str
) -> None:
    with serving(place[0]) as server:
        context = chromium.new_context()
        page = Watched(context).page
        page.goto(f"{origin(server)}/participate/{digest}")
        page.wait_for_selector(f"#error:has-text('{told}')")
        assert not page.is_visible("#ready")
        context.close()


@needs_browser
def test_a_closed_collection_says_so(place: tuple[Path, str], chromium: Any) -> None:
    path, _ = place
    with serving(path) as server:
        context = chromium.new_context()
        page = Watched(context).page
        page.goto(f"{origin(server)}/participate/{OTHER.digest}")
        page.wait_for_selector("#ready:not([hidden])")
        page.focus("#map")
        page.keyboard.press("ArrowUp")

        async def close() -> None:
            store = await open_store(path)
            await close_collection(store, OTHER.digest)
            await store.close()

        apart(close())
        page.wait_for_timeout(1200)  # the service asks its store again after a second
        page.click("#take")
        page.wait_for_selector("#sent:has-text('closed')", timeout=120_000)
        context.close()


def test_every_page_is_held_to_this_service(place: tuple[Path, str]) -> None:
    path, _ = place
    with serving(path) as server:
        for name in ("/", "/participate/x", "/pages/map.js", "/outlines.geojson"):
            status, headers, _ = server.request("GET", name)
            assert status == 200
            assert headers["content-security-policy"].startswith("default-src 'self';")
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["referrer-policy"] == "no-referrer"
        for name in ("/pages/nothing.js", "/pages/..%2fapp.py", "/pages/app.py"):
            assert server.request("GET", name)[0] == 404


def test_the_pages_hold_the_client_as_it_is_built() -> None:
    """client.js is build/pages-client.js of the TypeScript client: copy it when that changes."""
    copy = ROOT / "ldpspatial" / "service" / "pages" / "client.js"
    assert copy.read_bytes() == (built_client() / "build" / "pages-client.js").read_bytes()


def test_outlines_are_geojson_or_refused(tmp_path: Path) -> None:
    good = tmp_path / "good.geojson"
    good.write_text(json.dumps(OUTLINES))
    Pages(good)
    for content in ("", "[]", "{}", '{"type": "Topology"}', "[" * 100_000):
        bad = tmp_path / "bad.geojson"
        bad.write_text(content)
        with pytest.raises(InputError, match="outlines must be"):
            Pages(bad)
    with pytest.raises(InputError, match="outlines cannot be read"):
        Pages(tmp_path / "none.geojson")
