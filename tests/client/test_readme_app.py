"""The app of the client's README, as printed: killed, over a lossy connection, counted exactly."""

import json
import os
import random
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from client_sdk import Collection, Device, Report
from ldpspatial import count_reports
from tests.support.lossy_server import Collected, lossy_server

ROOT = Path(__file__).parents[2]
README = (ROOT / "client_sdk" / "python" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.+?)^```$", README, re.M | re.S)
APP = next(block for block in BLOCKS if "def install" in block)
VISITS = 12

Position = tuple[float, float]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "app.py", *map(str, arguments)]


def run(folder: Path, *arguments: object, position: Position = (0.0, 0.0)) -> None:
    told = json.dumps(position)
    subprocess.run(command(*arguments), cwd=folder, check=True, timeout=60, input=told, text=True)


def run_and_kill(
    folder: Path, seconds: float, *arguments: object, position: Position = (0.0, 0.0)
) -> None:
    """Start a call of the app and kill it after some time, unless it is quicker."""
    child = subprocess.Popen(command(*arguments), cwd=folder, stdin=subprocess.PIPE, text=True)
    with suppress(subprocess.TimeoutExpired):
        child.communicate(json.dumps(position), timeout=seconds)
    child.kill()
    child.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the app, the designer's document, and the app installed."""
    (tmp_path / "app.py").write_text(APP)
    designer = next(block for block in BLOCKS if "Collection.create" in block)
    told = subprocess.run(
        [sys.executable, "-c", designer], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() in APP  # the digest that the app pins
    run(tmp_path, "install")
    return tmp_path


def test_the_app_has_25_lines_of_code() -> None:
    lines = [line for line in APP.splitlines() if line.strip()]
    assert len(lines) <= 25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills as POSIX does")
def test_every_visit_is_counted_once_whatever_is_lost_and_killed(folder: Path) -> None:
    moments = random.Random(5)  # noqa: S311  (when to kill)
    for number in range(VISITS):
        at = 52.45 + number / 100, 13.3 + number / 100
        if number % 3 == 0:
            run_and_kill(folder, moments.uniform(0.05, 0.2), "visit", number, position=at)
        run(folder, "visit", number, position=at)
        if number % 4 == 0:
            run(folder, "visit", number, position=at)  # the app is not sure that it did
    device = Device.open(folder / "device")
    drawn = {Report.from_json(text).id for text in device.pending()}
    assert (len(drawn), device.spent()) == (VISITS, VISITS * 3_500_000)

    fates = ["", "response lost", "request lost", "busy"] * 6
    with lossy_server(fates) as collected:
        for _ in range(100):
            let_time_pass(folder)
            if moments.random() < 0.3:
                run_and_kill(folder, moments.uniform(0.1, 0.3), "upload", collected.url, 0)
            else:
                run(folder, "upload", collected.url, 0)
            if device.waiting() == 0:
                break
            sent = len(collected.requests)
            if is_pausing(folder):
                run(folder, "upload", collected.url, 0)
                assert len(collected.requests) == sent
    assert device.waiting() == 0
    assert set(collected.reports) == drawn
    run(folder, "visit", 3, position=(52.5, 13.4))  # was given and has arrived: nothing new
    assert (device.waiting(), device.spent()) == (0, VISITS * 3_500_000)
    check_the_count(folder, collected)


def is_pausing(folder: Path) -> bool:
    """Whether the app pauses for longer than a busy machine needs to start it."""
    file = folder / "device" / "uploads.json"
    return file.exists() and json.loads(file.read_text())["not_before"] > time.time() + 15


def let_time_pass(folder: Path) -> None:
    """End the pause after a failed upload, as waiting for it would."""
    file = folder / "device" / "uploads.json"
    if file.exists():
        file.write_text(json.dumps({**json.loads(file.read_text()), "not_before": 0}))


def check_the_count(folder: Path, collected: Collected) -> None:
    """Count all that the server received, repeats included, as an analyst does."""
    received = folder / "received.jsonl"
    bodies = [body for _, body in collected.requests]
    assert {len(body) for body in bodies} == {192}
    received.write_bytes(b"".join(body + b"\n" for body in bodies))
    collection = Collection.from_json((folder / "collection.json").read_text())
    counted = count_reports(received, collection)
    assert (counted.n, counted.repeated) == (VISITS, len(bodies) - VISITS)
    assert counted.repeated > 0
    radius = collection.table.radius
    for (row, col), number in collected.cells().items():
        assert counted.counts[row + radius, col + radius] == number
