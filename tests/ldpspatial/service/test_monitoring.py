"""Health and metrics."""

import asyncio
import re
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.requests import Request

from ldpspatial.collecting.records import records_of
from ldpspatial.service.database import StoreError
from ldpspatial.service.device_api import Catalogue, DeviceApi
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.limits import Limits
from ldpspatial.service.monitoring import Monitoring
from ldpspatial.service.problems import Problem
from ldpspatial.service.store import make_store
from ldpspatial.service.tokens import make_token
from ldpspatial.service.windows import Clock
from tests.support.service import COLLECTION, OTHER, lines, report, serving

LABELS = {"status", "reason"}  # and no other: nothing about people, devices or collections


async def _prepared(path: Path) -> str:
    store = await make_store(path)
    token = await make_token(store, "prometheus")
    await store.add(COLLECTION, 1)
    await store.close()
    return token


def test_metrics_count_what_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    token = asyncio.run(_prepared(path))
    with serving(path) as server:
        assert server.post(lines([report() for _ in range(5)]))[0] == 204
        assert server.post(lines([report(), report((999, 0))]))[0] == 200
        assert server.post(lines([report(collection=OTHER)]))[0] == 422
        assert server.request("GET", "/metrics")[0] == 401
        status, headers, content = server.request(
            "GET", "/metrics", Authorization=f"Bearer {token}", User_Agent="planted"
        )
        assert (status, headers["cache-control"]) == (200, "no-store")
        assert headers["content-type"].startswith("text/plain")
    samples = {}
    for family in text_string_to_metric_families(content.decode()):
        for sample in family.samples:
            assert sample.labels.keys() <= LABELS
            samples[(sample.name, *sample.labels.values())] = sample.value
    assert samples[("ldpspatial_reports_stored_total",)] == 6
    assert samples["ldpspatial_reports_refused_total", "foreign"] == 2
    assert samples["ldpspatial_upload_requests_total", "204"] == 1
    assert samples[("ldpspatial_commit_seconds_count",)] == 2
    assert samples[("ldpspatial_store_failing",)] == 0
    assert samples[("ldpspatial_process_resident_memory_bytes",)] > 1e7
    assert not re.search(rb"planted|127\.0\.0\.1|" + COLLECTION.digest.encode(), content)


def test_health_follows_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_prepared(path))
    with serving(path) as server:
        status, headers, content = server.request("GET", "/health")
        assert (status, content) == (200, b'{"status":"ok"}')
        assert headers["cache-control"] == "no-store"


def test_a_store_that_fails_is_not_healthy_until_it_stores_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*arguments: object) -> None:
        raise StoreError("the disk is full")

    async def act() -> None:
        store = await make_store(tmp_path / "store.db")
        held = await store.add(COLLECTION, 1)
        arrived = {held.number: records_of(bytes(16), np.zeros(1, np.int64))}
        commits = GroupCommit(store)
        commits.start()
        catalogue = Catalogue(store)
        clock = Clock(store, catalogue.refresh)
        devices = DeviceApi(store, commits, Limits(), catalogue, clock)
        monitoring = Monitoring(store, devices, commits)
        request = Request({"type": "http"})
        with monkeypatch.context() as broken:
            broken.setattr(store, "append", failing)
            with pytest.raises(StoreError):
                await commits.add(arrived)
            with pytest.raises(Problem) as refused:
                await monitoring.health(request)
            assert refused.value.status == 503
            assert "disk" not in str(refused.value.document)
        await commits.add(arrived)
        assert (await monitoring.health(request)).status_code == 200
        assert (commits.numbers.failures, commits.numbers.commits) == (1, 1)
        await commits.stop()
        monkeypatch.setattr(store.database, "read", failing)
        with pytest.raises(Problem):
            await monitoring.health(request)
        await store.close()

    asyncio.run(act())
