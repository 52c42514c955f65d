"""The Python half of a fleet: devices with ledgers in files, and uploaders over clocks of theirs.

``python -m tests.support.fleet_devices PLANS URL RESULTS FAULT`` plays the plans of a file while
the network is stormy, says so, and when it is told to go on sends what waits and writes what the
devices found. FAULT names one of CLIENT_FAULTS, or is empty. client_sdk/typescript/test/fleet.mjs
does the same.
"""

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from queue import PriorityQueue
from types import SimpleNamespace
from typing import Any

import client_sdk.device
import client_sdk.sending
from client_sdk import Answer, Device, NotAskedError, Report, Uploader, https_sender
from client_sdk.sending import Send
from tests.support.fleet_faults import CLIENT_FAULTS
from tests.support.fleet_plans import PASSES, Plan
from tests.support.memory import quick_folder

THREADS = 6
SPENT_AT_MOST = 1000  # epsilon
DELAY_S = 60
CALM_PASSES = 100

_own = threading.local()  # the clock of the device that this thread plays


class Clock:
    """The clock of one device, which moves when it waits and when somebody turns it."""

    def __init__(self, now: float):
        self.now = now

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def time(self) -> float:
        return self.now


class Played:
    """A device that lives through a plan, and what it believes of its reports."""

    def __init__(self, plan: Plan, documents: dict[str, str], folder: Path, send: Send):
        self.plan = plan
        self._documents = documents
        self._folder = folder / str(plan["number"])
        self._post = send
        self._clock = Clock(plan["time"])
        self._reports: dict[str, Report] = {}
        self._heard: dict[str, str] = {}
        self._told: Counter[str] = Counter()
        self._unasked = 0
        self._redrawn = 0
        self.passes = 0
        self.waits = False

    def begin(self) -> None:
        """Install the device, join, and read all positions of the plan."""
        _own.clock = self._clock
        self._device = Device.install(self._folder, cap_epsilon=SPENT_AT_MOST)
        for reading in self.plan["readings"]:
            digest = reading["what"]
            self._device.join(self._documents[digest], digest=digest, max_epsilon=4)
            self._read(reading)

    def _read(self, reading: Plan) -> None:
        place = reading["lat"], reading["lon"]
        try:
            report = self._device.report(reading["what"], *place, event=reading["event"])
            self._reports[report.id] = report
            if reading["is_asked_again"]:  # as after a crash, from elsewhere
                self._device = Device.open(self._folder)
                same = self._device.report(reading["what"], 1.0, 2.0, event=reading["event"])
                self._redrawn += same != report
        except NotAskedError:
            self._unasked += 1

    def send(self) -> bool:
        """Make one pass; tell whether anything waits then."""
        _own.clock = self._clock
        if self.plan["restarts"][self.passes % PASSES]:
            self._device = Device.open(self._folder)
        uploader = Uploader(
            self._device, self._send, DELAY_S, outbox=self.plan["outbox"],
            wait=self._clock.wait, now=self._clock.time,
        )  # fmt: skip
        done = uploader.run_once()
        self._told["delivered"] += done.delivered
        self._told["dropped"] += done.dropped
        self._told.update(done.refused)
        self._clock.wait(done.wait_s)
        if self.passes < PASSES:
            self._clock.now += self.plan["jumps"][self.passes]
        self.passes += 1
        self.waits = self._device.waiting() > 0
        return self.waits

    def _send(self, body: bytes) -> Answer:
        answer = self._post(body)
        if answer.is_delivered or answer.refusal:
            self._heard[Report.from_json(body.decode()).id] = answer.refusal or "delivered"
        return answer

    def found(self) -> dict[str, Any]:
        """Return what the device believes."""
        device = Device.open(self._folder)  # which verifies all of the ledger
        waiting = {name for name, _ in device.outbox()}
        return {
            "number": self.plan["number"],
            "spoils": self.plan["spoils"],
            "reports": [
                {
                    "body": report.to_body(),
                    "fate": "waiting" if name in waiting else self._heard.get(name, "dropped"),
                }
                for name, report in self._reports.items()
            ],
            "told": self._told,
            "spent": device.spent(),
            "discarded": device.discarded(),
            "unasked": self._unasked,
            "redrawn": self._redrawn,
        }


class Storm:
    """Plays devices in turn: all begin in the order of their plans, and come back when they must.

    A device that fails comes again after so many first passes of others as its plan says, until
    it has made ``most`` passes.
    """

    def __init__(self, played: list[Played], most: int):
        self._most = most
        self._due: PriorityQueue[tuple[int, int, Played | None]] = PriorityQueue()
        for turn, each in enumerate(played):
            self._due.put((turn, each.plan["number"], each))
        self._errors: list[BaseException] = []

    def run(self) -> None:
        """Play until every device has nothing left, or has had its passes."""
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        self._due.join()
        for number in range(THREADS):
            self._due.put((1 << 60, number, None))
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _work(self) -> None:
        while True:
            turn, number, played = self._due.get()
            if played is None:
                return
            try:
                self._play(turn, number, played)
            except BaseException as error:
                self._errors.append(error)
            self._due.task_done()

    def _play(self, turn: int, number: int, played: Played) -> None:
        if not played.passes:
            played.begin()
        if played.send() and played.passes < self._most:
            turn += played.plan["delays"][played.passes % PASSES]
            self._due.put((turn, number, played))


def spoiling(send: Send) -> Send:
    """Return a sender that writes the body anew, as a library of an app's own may."""

    def spoilt(body: bytes) -> Answer:
        return send(body.replace(b'"row":', b'"row":0.0e0,"row":'))

    return spoilt


def main() -> None:
    """Play the plans of a file."""
    plans, url, results, fault = sys.argv[1:]
    what = json.loads(Path(plans).read_text(encoding="utf-8"))
    time = SimpleNamespace(time=lambda: _own.clock.now)
    client_sdk.device.time = time  # type: ignore[assignment]
    client_sdk.sending.time = time  # type: ignore[assignment]
    post = https_sender(url)
    if fault:
        post = CLIENT_FAULTS[fault](post)
    with quick_folder() as folder:
        fleet = [
            Played(plan, what["documents"], folder, spoiling(post) if plan["spoils"] else post)
            for plan in what["devices"]
        ]
        Storm(fleet, PASSES).run()
        print("the storm is over", flush=True)
        sys.stdin.readline()
        Storm([played for played in fleet if played.waits], CALM_PASSES).run()
        found = [played.found() for played in fleet]
    Path(results).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
