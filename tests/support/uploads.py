"""An uploader over a fake clock, and servers that answer what they are told to."""

from typing import Any

from client_sdk import Answer, Collection, Device, Grid, Report, Uploader
from client_sdk.sending import Send

GRID = Grid.from_center(52.52, 13.405, 20_000, 15)
COLLECTION = Collection.create("noon in Berlin", GRID, 3.5, max_reports=1000)


class Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def time(self) -> float:
        return self.now


def fill(device: Device, number: int) -> list[Report]:
    return [device.report(COLLECTION, 52.5163, 13.3777, event=str(k)) for k in range(number)]


def sender(answers: list[Answer], bodies: list[bytes] | None = None) -> Send:
    """Give these answers in turn, and then the last one for ever."""
    left = list(answers)

    def send(body: bytes) -> Answer:
        if bodies is not None:
            bodies.append(body)
        return left.pop(0) if len(left) > 1 else left[0]

    return send


def make(device: Device, send: Send, clock: Clock, **more: Any) -> Uploader:
    return Uploader(device, send, wait=clock.wait, now=clock.time, **more)
