"""What watches the service: whether it works, and numbers for Prometheus.

The numbers count reports, requests and transactions, and nothing else: there is no label by which
people, devices or addresses, or what is asked of them, could be told apart.
"""

import asyncio
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from ldpspatial.service.database import StoreError
from ldpspatial.service.device_api import DeviceApi
from ldpspatial.service.group_commit import GroupCommit
from ldpspatial.service.problems import Problem
from ldpspatial.service.store import Store

LONGEST_READ_S = 5.0
AGAIN_S = 30
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
NO_STORE = {"Cache-Control": "no-store"}


class Monitoring:
    """Health and metrics of one running service.

    Parameters
    ----------
    store : Store
    devices : DeviceApi
    commits : GroupCommit
    """

    def __init__(self, store: Store, devices: DeviceApi, commits: GroupCommit):
        self._store = store
        self._commits = commits
        self._registry = CollectorRegistry()
        self._registry.register(_Numbers(devices, commits))
        ProcessCollector(namespace="ldpspatial", registry=self._registry)

    async def health(self, request: Request) -> Response:
        """Return 200 where the store answers and took what was stored last; else raise 503."""
        failing = Problem(
            503,
            "The store does not work; the log says why.",
            headers={**NO_STORE, "Retry-After": str(AGAIN_S)},
        )
        if not self._commits.works:
            raise failing
        try:
            await asyncio.wait_for(
                self._store.database.read("SELECT version FROM store"), LONGEST_READ_S
            )
        except (StoreError, asyncio.TimeoutError):
            raise failing from None
        return Response(b'{"status":"ok"}', 200, NO_STORE, "application/json")

    async def metrics(self, request: Request) -> Response:
        """Return all numbers in the text format of Prometheus."""
        return Response(generate_latest(self._registry), 200, NO_STORE, METRICS_TYPE)


class _Numbers(Collector):
    """Reads the numbers where they are kept, when they are asked for."""

    def __init__(self, devices: DeviceApi, commits: GroupCommit):
        self._devices = devices
        self._commits = commits

    def collect(self) -> Iterator[Metric]:
        """Yield every number."""
        requests = CounterMetricFamily(
            "ldpspatial_upload_requests", "Uploads that were answered.", labels=["status"]
        )
        for status, n in sorted(self._devices.requests.items()):
            requests.add_metric([str(status)], n)
        yield requests
        numbers = self._commits.numbers
        refused = CounterMetricFamily(
            "ldpspatial_reports_refused", "Reports that were not stored.", labels=["reason"]
        )
        for reason, n in sorted(numbers.refused.items()):
            refused.add_metric([reason], n)
        yield refused
        yield CounterMetricFamily(
            "ldpspatial_reports_stored", "Reports that were acknowledged.", numbers.stored
        )
        yield SummaryMetricFamily(
            "ldpspatial_commit_seconds",
            "Transactions that stored reports.",
            numbers.commits,
            numbers.seconds,
        )
        yield CounterMetricFamily(
            "ldpspatial_commit_failures", "Transactions that stored nothing.", numbers.failures
        )
        yield GaugeMetricFamily(
            "ldpspatial_reports_waiting", "Reports to be stored.", self._commits.waiting
        )
        yield GaugeMetricFamily(
            "ldpspatial_store_failing",
            "1 where the last transaction failed.",
            not self._commits.works,
        )
