"""A series of windows: the service opens and closes them, devices answer one each.

All of it in real time, by the clocks of service and devices, in windows of some seconds.
"""

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from client_sdk import Collection, Device, NotAskedError, Series
from experiments.end_to_end.devices import THREADS, send
from experiments.end_to_end.service import Operator
from experiments.progress import tracked

Array = NDArray[np.float64]

WINDOWS = 7
WINDOW_S = 5
LEEWAY_S = 5  # for which a window takes reports before it begins and after it ends
LEAD_S = 25  # the service looks for new series after 20 s at most
MINIMUM = 20
LOOK_S = 0.25


@dataclass(frozen=True)
class Window:
    """What one window gave.

    Attributes
    ----------
    place : int
    chosen : int
        Devices that had drawn it; those that came too late for it did not answer.
    answered : (n, 2) array
        Positions of the devices that answered it.
    reports : Counter of str
        What became of their reports.
    counted : int
        Reports that count.
    summary : dict
        Of its map.
    """

    place: int
    chosen: int
    answered: Array
    reports: Counter[str]
    counted: int
    summary: dict[str, Any]


def make_series(template: Collection, name: str) -> Series:
    """Return a series that begins when the service will have found it."""
    return Series.create(
        name, template.grid, template.epsilon, first_start=ceil(time.time()) + LEAD_S,
        window_seconds=WINDOW_S, windows=WINDOWS,
    )  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A device that has joined the series, and the window that it has drawn."""

    device: Device
    window: int


def install(series: Series, devices: int, folder: Path) -> list[Member]:
    """Install devices that join a series, each with a ledger in a folder of its own."""

    def one(number: int) -> Member:
        device = Device.install(folder / str(number), cap_epsilon=series.epsilon)
        device.join(series.to_json(), digest=series.digest, max_epsilon=series.epsilon)
        (window,) = device.windows(series)
        return Member(device, window)

    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(one, range(devices)))


def play(
    series: Series, members: Sequence[Member], positions: Array, operator: Operator, out: Path
) -> list[Window]:
    """Let all windows pass; map each of them as soon as the service has closed it."""
    with ThreadPoolExecutor(THREADS) as threads, ThreadPoolExecutor(1) as desk:
        maps: list[Future[Window]] = []
        for place in tracked(range(1, WINDOWS + 1), "windows"):
            _sleep_until(series.start(place))
            chosen = [k for k, member in enumerate(members) if member.window == place]
            answers = [
                threads.submit(_answer, members[k].device, series, positions[k], operator.origin)
                for k in chosen
            ]
            reports = [each.result() for each in answers]
            answered = positions[[k for k, each in zip(chosen, reports, strict=True) if each]]
            found = sum(reports, Counter())
            mapping = _mapped, series, place, len(chosen), answered, found, operator, out
            maps.append(desk.submit(*mapping))
        return [each.result() for each in maps]


def _answer(device: Device, series: Series, position: Array, origin: str) -> Counter[str]:
    """Answer a window, if it is still open; nothing where the device comes too late."""
    try:
        device.report(series, *position.tolist())
    except NotAskedError:
        return Counter()
    return send(device, f"{origin}/reports")


def _mapped(
    series: Series,
    place: int,
    chosen: int,
    answered: Array,
    reports: Counter[str],
    operator: Operator,
    out: Path,
) -> Window:
    """Wait until the service has closed a window, release it and have its map made."""
    collection = series.collection(place)
    _sleep_until(series.start(place) + WINDOW_S + LEEWAY_S)
    while operator.progress(collection.digest)["counted"] is None:
        time.sleep(LOOK_S)
    counted = operator.release(collection.digest)["counted"]
    summary = operator.save_map(collection, out / f"window-{place}")
    return Window(place, chosen, answered, reports, counted, summary)


def _sleep_until(seconds: float) -> None:
    time.sleep(max(0.0, seconds - time.time()))
