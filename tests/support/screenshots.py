"""Pictures of the service's pages for the docs: python -m tests.support.screenshots."""

import asyncio
import tempfile
from pathlib import Path

import numpy as np

from client_sdk import Collection, Grid
from client_sdk.kernels import cells_of
from ldpspatial.channels.playing import draw_reports
from ldpspatial.datasets import city
from ldpspatial.service.store import make_store
from ldpspatial.service.tokens import make_token
from tests.support.browser import browser
from tests.support.service import lines, report, serving

DOCS = Path(__file__).parents[2] / "docs"
PEOPLE = 30_000
AT_ONCE = 10_000
WINDOW = {"width": 1000, "height": 800}
GRID = Grid.from_center(lat=48.0, lon=11.0, side_m=12_000, cells=20)
CITY = Collection.create("A synthetic city at noon", GRID, 3.5)
NEXT = Collection.create("The same city in the evening", GRID, 3.5)


def reports_of_a_city() -> list[bytes]:
    """Return what people of the synthetic city send, in requests of a relay."""
    rng = np.random.default_rng(7)
    people = city(PEOPLE, rng)
    rows, cols, _ = cells_of(GRID, people[:, 0], people[:, 1])
    drawn = zip(*draw_reports(CITY.table, rows, cols, rng), strict=True)
    sent = [report((int(row), int(col)), CITY) for row, col in drawn]
    return [lines(sent[k : k + AT_ONCE]) for k in range(0, PEOPLE, AT_ONCE)]


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    await store.add(CITY, 1000)
    await store.add(NEXT, 1000)
    token = await make_token(store, "laptop")
    await store.close()
    return token


def main() -> None:
    """Play a collection, and write both pictures."""
    path = Path(tempfile.mkdtemp()) / "store.db"
    token = asyncio.run(_prepared(path))
    with serving(path) as server, browser() as chromium:
        for body in reports_of_a_city():
            assert server.post(body)[0] == 204
        page = chromium.new_page(viewport=WINDOW)
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.fill("#token", token)
        page.press("#token", "Enter")
        page.click("#list button >> nth=0")
        page.click("#close")
        page.click("#ask-yes")
        page.click("#release:not([disabled])")
        page.click("#ask-yes")
        page.wait_for_selector("#map-done:not([hidden])", timeout=120_000)
        page.focus("#density")
        page.keyboard.press("ArrowUp")
        page.screenshot(path=DOCS / "operator-page.png", full_page=True)
        page.goto(f"http://127.0.0.1:{server.port}/participate/{NEXT.digest}")
        page.wait_for_selector("#ready:not([hidden])")
        page.focus("#map")
        page.keyboard.press("ArrowUp")
        page.click("#many")
        page.click("#draw")
        page.screenshot(path=DOCS / "participant-page.png", full_page=True)


if __name__ == "__main__":
    main()
