"""2,000 devices, most of them in TypeScript, a network that fails them, collections that close.

Requests and answers are lost, cut, doubled, late, out of order, or answered by somebody else;
clocks are wrong by up to years and turned meanwhile; apps are started anew between passes; outboxes
overflow. Afterwards what devices believe, what the server said and what the store counts must agree
report by report. Reports are drawn by the devices' own entropy, so each run is another one; what a
run finds becomes a test of its own below.
"""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from client_sdk import Answer, Device, Report, https_sender
from client_sdk.sending import LONGEST_WAIT
from ldpspatial.service.closing import Counted, close_collection
from ldpspatial.service.store import make_store, open_store
from ldpspatial.service.tokens import make_token
from ldpspatial.service.windows import add_series
from tests.support import fleet_plans, fleet_server
from tests.support.fleet_check import Books, Found, books_of, complaints
from tests.support.fleet_network import FATES, network
from tests.support.fleet_operator import Operator
from tests.support.fleet_plans import CLOSING, DAILY, DAY, DAYS, LASTING, LEEWAY_S, RELEASED, START
from tests.support.fleet_server import Fault, TimedServer
from tests.support.fleet_witness import STORED, Witness, name_of
from tests.support.memory import quick_folder
from tests.support.service import running, serving
from tests.support.typescript import built_client
from tests.support.uploads import Clock, make

ROOT = Path(__file__).parents[3]
PYTHON = [sys.executable, "-m", "tests.support.fleet_devices"]
TYPESCRIPT = ["node", "--no-warnings", "client_sdk/typescript/test/fleet.mjs"]
# A slip that one device in 145 makes is seen with probability 1 - 1e-6.
DEVICES = 2_000


@pytest.fixture
def folder() -> Iterator[Path]:
    with quick_folder() as made:
        yield made


@dataclass
class Outcome:
    """What is known of a storm when it is over."""

    devices: list[Found]
    witness: Witness
    books: Books

    def complaints(self) -> list[str]:
        return complaints(self.devices, self.witness, self.books)


class Devices:
    """The devices of one language, in a process of their own."""

    def __init__(self, command: Sequence[str], plans: list[fleet_plans.Plan], folder: Path,
                 url: str, fault: str = ""):  # fmt: skip
        folder.mkdir()
        fleet_plans.write(folder / "plans.json", plans)
        self._results = folder / "results.json"
        arguments = folder / "plans.json", url, self._results, fault
        self._process = subprocess.Popen(
            [*command, *map(str, arguments)], cwd=ROOT, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def wait_for_the_end_of_the_storm(self) -> None:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line == "the storm is over\n", (line, self._process.communicate())

    def found(self) -> list[Found]:
        """Let them send what waits, and return what they believe."""
        told, errors = self._process.communicate("calm\n", timeout=300)
        assert self._process.returncode == 0, told + errors
        found: list[Found] = json.loads(self._results.read_text(encoding="utf-8"))
        return found

    def end(self) -> None:
        """End them, if they have not ended."""
        self._process.kill()
        self._process.communicate()


async def new_store(location: Path) -> str:
    """Make a store with what devices report to, and return a token of its operator."""
    store = await make_store(location)
    for collection in (LASTING, CLOSING, RELEASED):
        await store.add(collection, 1)
    await add_series(store, DAILY, 1, LEEWAY_S)
    token = await make_token(store, "fleet")
    await store.close()
    return token


def storm(
    folder: Path,
    fleets: Sequence[tuple[Sequence[str], list[fleet_plans.Plan]]],
    seed: int,
    server_fault: Fault | None = None,
    client_fault: str = "",
) -> Outcome:
    """Play fleets, a command and plans each, through a storm and a calm; close; tell all."""
    location = folder / "store.db"
    token = asyncio.run(new_store(location))
    expected = sum(fleet_plans.sent_at_most(plans) for _, plans in fleets)
    server = TimedServer(location, START - LEEWAY_S - 1, server_fault)
    with running(server), network(server.port, seed) as net, ExitStack() as processes:
        operator = Operator(server, net.upstream, token, net.witness)
        for collection in (LASTING, CLOSING, RELEASED):
            operator.opened(collection)
        net.do(operator.turn(START))
        turns = [(k / DAYS, partial(operator.turn, START + k * DAY)) for k in range(1, DAYS)]
        net.milestones = sorted(
            (share * expected * 0.9, act)
            for share, act in [
                *turns,
                (0.4, partial(operator.close, CLOSING)),
                (0.6, partial(operator.release, RELEASED)),
            ]
        )
        playing = []
        for k, (command, plans) in enumerate(fleets):
            playing.append(Devices(command, plans, folder / str(k), net.url, client_fault))
            processes.callback(playing[-1].end)
        for devices in playing:
            devices.wait_for_the_end_of_the_storm()
        net.calm_down()
        found = [each for devices in playing for each in devices.found()]
        net.do(operator.close(LASTING))
        net.do(operator.turn(START + DAYS * DAY + LEEWAY_S))
        net.deliver_all()
        assert net.errors == []
    return Outcome(found, net.witness, asyncio.run(books_of(str(location))))


@pytest.mark.slow
def test_a_fleet_in_a_storm_is_counted_exactly(folder: Path) -> None:
    built_client()
    plans = fleet_plans.plans(DEVICES, seed=1)
    in_python = plans[::7]  # a device takes longer there: all end at about the same time
    in_typescript = [plan for plan in plans if plan["number"] % 7]
    fleets = [(PYTHON, in_python), *((TYPESCRIPT, in_typescript[k::2]) for k in range(2))]
    outcome = storm(folder, fleets, seed=2)
    assert outcome.complaints()[:10] == []
    assert sorted(device["number"] for device in outcome.devices) == list(range(DEVICES))
    readings = sum(len(plan["readings"]) for plan in plans)
    assert readings == sum(len(each["reports"]) + each["unasked"] for each in outcome.devices)
    # It was a storm: in either language everything has happened that can.
    assert set(outcome.witness.fates) == {*FATES, "through"}
    numbers = {plan["number"] for plan in in_python}
    for is_python in (True, False):
        fates = Counter(
            report["fate"]
            for device in outcome.devices
            if (device["number"] in numbers) == is_python
            for report in device["reports"]
        )
        assert set(fates) == {"delivered", "closed", "foreign", "malformed", "dropped"}, fates
        assert fates["delivered"] > sum(fates.values()) / 4
    assert given_up_and_counted(outcome) > 0
    verdicts = Counter(each.verdict for each in outcome.witness.exchanges)
    assert set(verdicts) - {"503"} == {STORED, "closed", "foreign", "malformed"}
    assert sum(kept.counted.repeated for kept in outcome.books.kept.values()) > 40
    assert all(kept.counted.n > 0 for kept in outcome.books.kept.values())


def given_up_and_counted(outcome: Outcome) -> int:
    """Return how many reports count though their devices were told that it is too late."""
    stored = {name_of(each.body) for each in outcome.witness.exchanges if each.verdict == STORED}
    return sum(
        report["fate"] == "closed" and Report.from_json(report["body"]).id in stored
        for device in outcome.devices
        for report in device["reports"]
    )


def small(
    folder: Path,
    command: list[str] = PYTHON,
    server_fault: Fault | None = None,
    client_fault: str = "",
) -> list[str]:
    """Return the complaints about a small fleet."""
    fleet = [(command, fleet_plans.plans(150, seed=3))]
    return storm(folder, fleet, 4, server_fault, client_fault).complaints()


@pytest.mark.slow
def test_a_small_fleet_is_counted_exactly(folder: Path) -> None:
    assert small(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        (fleet_server.count_copies, "open to the end: counts"),
        (fleet_server.answer_too_early, "lost, 0 invented"),
        (fleet_server.confuse_reasons, "foreign is the wrong answer"),
    ],
)
def test_a_broken_server_is_noticed(fault: Fault, complaint: str, folder: Path) -> None:
    assert any(complaint in text for text in small(folder, server_fault=fault))


CLIENT_FAULTS = pytest.mark.parametrize(
    ("fault", "complaint"),
    [
        ("drawing anew", "was sent and never drawn"),
        ("believing anybody", "believed delivered, but"),
    ],
)


@pytest.mark.slow
@CLIENT_FAULTS
def test_a_broken_client_is_noticed(fault: str, complaint: str, folder: Path) -> None:
    assert any(complaint in text for text in small(folder, client_fault=fault))


@pytest.mark.slow
@CLIENT_FAULTS
def test_a_broken_client_in_typescript_is_noticed(fault: str, complaint: str, folder: Path) -> None:
    built_client()
    assert any(complaint in text for text in small(folder, TYPESCRIPT, client_fault=fault))


# What the fleet found


def test_a_report_counts_whose_answer_was_lost_before_its_collection_closed(tmp_path: Path) -> None:
    """Its device is told that the collection is closed, and gives it up; the budget stays spent."""
    location = tmp_path / "store.db"
    asyncio.run(new_store(location))
    device = Device.install(tmp_path / "device", cap_epsilon=10)
    device.join(CLOSING.to_json(), digest=CLOSING.digest, max_epsilon=4)
    device.report(CLOSING, 1.0, 2.0)
    with serving(location) as server:
        post = https_sender(f"http://127.0.0.1:{server.port}/reports")

        def losing(body: bytes) -> Answer:
            assert post(body).is_delivered
            raise ConnectionResetError

        clock = Clock()
        assert not make(device, losing, clock).run_once().is_complete
        counted = asyncio.run(closed(location))
        clock.now += LONGEST_WAIT
        assert make(device, post, clock).run_once().refused == {"closed": 1}
    assert (counted.n, device.waiting(), device.discarded()) == (1, 0, 1)
    assert device.spent() == fleet_plans.EPSILON * 1_000_000


async def closed(location: Path) -> Counted:
    """Close a collection as the command line does, beside the server."""
    store = await open_store(location)
    found = await close_collection(store, CLOSING.digest)
    await store.close()
    return found
