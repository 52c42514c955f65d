"""Maps of released collections over HTTP, and the reports of closed ones as Parquet."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ldpspatial import count_reports, estimate
from ldpspatial.channels.disk import StampChannel
from ldpspatial.cli.estimator_options import INTERVALS
from ldpspatial.collecting.results import read_estimate
from ldpspatial.estimation.estimate import ENTRY_POINTS, RULES
from ldpspatial.estimation.smoothing import SMOOTHERS
from ldpspatial.service import operator_api
from ldpspatial.service.closing import close_collection, counted
from ldpspatial.service.maps import MOST_WAITING, Maps, Wanted
from ldpspatial.service.operator_api import MAP_OPTIONS
from ldpspatial.service.problems import Problem
from ldpspatial.service.store import make_store, open_store
from ldpspatial.service.tokens import make_token
from tests.support.service import CELLS, COLLECTION, OTHER, Server, lines, report, serving

AT = f"/operator/collections/{COLLECTION.digest}"
N = 2000


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    token = await make_token(store, "laptop")
    await store.add(COLLECTION, 1000)
    await store.add(OTHER, 1)
    await store.close()
    return token


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("maps") / "store.db"


@pytest.fixture(scope="module")
def token(path: Path) -> str:
    return asyncio.run(_prepared(path))


@pytest.fixture(scope="module")
def server(path: Path, token: str) -> Iterator[Server]:
    """Serve a store whose first collection was released."""
    with serving(path) as found:
        rng = np.random.default_rng(5)
        sent = [report(CELLS[k]) for k in rng.integers(0, len(CELLS), N)]
        assert found.post(lines(sent))[0] == 204
        assert found.post(lines(sent[:10]))[0] == 204
        yield found


def ask(server: Server, token: str, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    """Return status, kind and content, however long it takes to make."""
    deadline = time.monotonic() + 600  # the error to expect alone takes half a minute
    while True:
        status, headers, answer = server.request(
            method, f"{AT}{path}", Authorization=f"Bearer {token}"
        )
        assert status >= 400 or headers["cache-control"] == "no-store"
        if status != 202:
            return status, headers["content-type"], answer
        assert time.monotonic() < deadline
        time.sleep(int(headers["retry-after"]))


def test_reports_as_parquet_and_the_map_after_release(
    server: Server, token: str, path: Path, tmp_path: Path
) -> None:
    assert ask(server, token, "/reports.parquet")[0] == 422  # open
    assert ask(server, token, "/map")[0] == 422
    assert ask(server, token, "/close", "POST")[0] == 200
    assert ask(server, token, "/map")[0] == 422  # counts are not for the eye before the release
    status, kind, content = ask(server, token, "/reports.parquet")
    assert (status, kind) == (200, "application/vnd.apache.parquet")
    file = tmp_path / "reports.parquet"
    file.write_bytes(content)
    found = count_reports([file], COLLECTION)
    assert found.n == N
    assert ask(server, token, "/release", "POST")[0] == 200
    assert ask(server, token, "/reports.parquet")[0] == 422

    status, kind, content = ask(server, token, "/map")
    summary = json.loads(content)
    assert (status, kind) == (200, "application/json")
    assert (summary["n"], summary["received"], summary["repeated"]) == (N, N + 10, 10)
    error = summary["expected_error"]
    assert error["unit"] == "m"
    assert list(error["foretold"]) == ["city"]
    assert 100 < error["this_map"]["mean"] <= error["this_map"]["highest"] < 10_000

    (tmp_path / "estimate.npz").write_bytes(ask(server, token, "/map/estimate.npz")[2])
    _, read = read_estimate(tmp_path)
    again = estimate(StampChannel(COLLECTION.table), found.counts)
    assert np.array_equal(read.density, again.density)
    assert ask(server, token, "/map/heatmap.png")[2][:4] == b"\x89PNG"
    status, kind, content = ask(server, token, "/map/estimate.geojson")
    assert kind == "application/geo+json"
    assert len(json.loads(content)["features"]) == 225
    assert ask(server, token, "/map/estimate.csv")[2].startswith(b'"row","col"')


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ("?rule=os:getcwd", 422, "rule must be one of"),
        ("?rule=nonesuch", 422, "nonesuch"),
        ("?smoothing=nonesuch", 422, "smoothing"),
        ("?intervals=nonesuch", 422, "intervals must be"),
        ("?seed=1", 422, "a query may have"),
        ("/passwd", 404, "heatmap.png"),
        ("/..%2f..%2fstore.db", 404, ""),
    ],
)
def test_what_names_no_map(
    server: Server, token: str, query: str, status: int, message: str
) -> None:
    ask(server, token, "/close", "POST")
    ask(server, token, "/release", "POST")
    found, kind, content = ask(server, token, f"/map{query}")
    assert (found, kind) == (status, "application/problem+json")
    assert message in json.loads(content)["detail"]


def test_the_service_knows_the_names_of_the_estimators() -> None:
    assert MAP_OPTIONS["rule"] == RULES
    assert MAP_OPTIONS["smoothing"] == tuple(SMOOTHERS)
    assert MAP_OPTIONS["intervals"] == INTERVALS
    assert operator_api.ENTRY_POINTS == ENTRY_POINTS


def test_maps_are_for_operators_alone(server: Server) -> None:
    for path in ("/map", "/map/heatmap.png", "/reports.parquet"):
        assert server.request("GET", AT + path)[0] == 401


def test_a_map_is_made_once_and_not_too_many_at_a_time(
    path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    async def slow(folder: Path, order: object) -> None:
        made.append(order)
        (folder / "summary.json").write_text("{}")
        await asyncio.sleep(0.2)

    monkeypatch.setattr("ldpspatial.service.maps._run", slow)
    monkeypatch.setattr("ldpspatial.service.maps.WAIT_S", 0.01)

    async def act() -> None:
        store = await open_store(path)
        await close_collection(store, OTHER.digest)
        counts = await counted(store, OTHER.digest)
        await store.close()
        maps = Maps()
        wanted = [Wanted(OTHER.digest, str(k), None, "none") for k in range(MOST_WAITING + 1)]
        for each in wanted[:MOST_WAITING] * 2:
            assert await maps.folder(each, "", counts) is None
        with pytest.raises(Problem) as refused:
            await maps.folder(wanted[-1], "", counts)
        assert refused.value.status == 503
        folder = None
        while folder is None:
            folder = await maps.folder(wanted[0], "", counts)
        assert folder.is_dir()
        assert len(made) < MOST_WAITING  # one at a time
        await maps.close()
        assert not folder.exists()

    asyncio.run(act())
