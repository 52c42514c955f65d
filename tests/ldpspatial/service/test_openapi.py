"""The interface is what its OpenAPI document says."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.routing import Route

from client_sdk import Collection, Grid
from ldpspatial.collecting.records import records_of
from ldpspatial.service.app import make_app
from ldpspatial.service.closing import close_collection, release
from ldpspatial.service.limits import Limits
from ldpspatial.service.openapi import document
from ldpspatial.service.page_files import Pages
from ldpspatial.service.store import make_store
from ldpspatial.service.tokens import make_token
from tests.support.round_sessions import SEATED, Seated, with_a_session
from tests.support.service import COLLECTION, serving

ROOT = Path(__file__).parents[3]
RELEASED = Collection.create("small", Grid.plane(0, 0, 50, 5), 3.5)  # soon mapped
UNKNOWN = "0" * 64
# Each new choice is a map that is made, in seconds.
MAP_OPTIONS = {"rule": ["scaled"], "smoothing": ["binomial"], "intervals": ["none"]}
# On a machine that is busy more maps are asked for than are made: "ask again" is foretold.
MAPS_MAY_WAIT = """
[[operations]]
include-path-regex = "/map"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "503"]
"""
# positive_data_acceptance: a digest of the right form is nobody's, a document is more than a text.
# missing_required_header: of the token, which ignored_auth looks at.
LEFT_OUT = "positive_data_acceptance,missing_required_header"


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    token = await make_token(store, "laptop")
    await store.add(COLLECTION, 1)
    held = await store.add(RELEASED, 1)
    records = records_of(bytes(16), np.zeros(1, np.int64))
    await store.append({held.number: records})
    await close_collection(store, held.digest)
    await release(store, held.digest)
    await store.close()
    return token


def with_digests(described: dict[str, Any], seated: Seated) -> dict[str, Any]:
    """Return the document for this store: with digests that it knows, and one that it does not."""
    rounds = {"campaign": [SEATED.digest, UNKNOWN], "session": [seated.session, UNKNOWN[:32]]}
    digests = [COLLECTION.digest, RELEASED.digest, UNKNOWN]
    for methods in described["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", ()):
                known = {"digest": digests, **rounds, **MAP_OPTIONS}.get(parameter["name"])
                if known:
                    parameter["schema"] = {"enum": known}
    described["components"]["schemas"]["Report"]["properties"]["collection"] = {"enum": digests}
    return described


def routes_of(path: Path) -> set[tuple[str, str]]:
    """Return path and method of all that a service of a store answers, but for pages."""
    app = make_app(path, Limits())

    async def routes() -> set[tuple[str, str]]:
        async with app.router.lifespan_context(app):
            return {
                (route.path, method.lower())
                for route in app.routes
                if isinstance(route, Route)
                for method in route.methods or ()
                if method != "HEAD"
            }

    pages = {(route.path, "get") for route in Pages().routes()} | {("/openapi.json", "get")}
    return asyncio.run(routes()) - pages


@pytest.mark.parametrize("rounds", [False, True])
def test_every_route_is_described_and_nothing_else(rounds: bool, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_prepared(path))
    if rounds:
        asyncio.run(with_a_session(path))
    described = {
        (where, method)
        for where, methods in document(rounds)["paths"].items()
        for method in methods
    }
    assert routes_of(path) == described


@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """Some 1,000 requests made from the document, good and bad, get answers that it foretells."""
    path = tmp_path / "store.db"
    token = asyncio.run(_prepared(path))
    seated = asyncio.run(with_a_session(path))
    with serving(path) as server:
        status, _, content = server.request("GET", "/openapi.json")
        described = json.loads(content)
        assert (status, described["openapi"]) == (200, "3.1.0")
        (tmp_path / "openapi.json").write_text(json.dumps(with_digests(described, seated)))
        (tmp_path / "schemathesis.toml").write_text(MAPS_MAY_WAIT)
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run"),
            *("openapi.json", "--url", f"http://127.0.0.1:{server.port}"),
            *("--header", f"Authorization: Bearer {token}"),
            *("--checks", "all", "--exclude-checks", LEFT_OUT),
            *("--max-examples", "25", "--seed", "1", "--workers", "1", "--no-color"),
            *("--request-timeout", "120", "--max-response-time", "100"),
            *("--suppress-health-check", "too_slow"),
        ]
        environment = {
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.support.schemathesis_hooks",
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert server.request("GET", "/health")[0] == 200
