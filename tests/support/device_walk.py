"""What a device goes through from its installation to its last upload, standard library only.

Each stage is for a process of its own: ``python -c "import device_walk; device_walk.main()" STAGE
FOLDER`` with the client and this folder on the path, or, where there are no processes (Pyodide),
``STAGES[stage](folder)``. What a stage saw lies in notes.json in the folder, and later stages
compare it with what they find. Two of the stages die on the way and never return.
"""

import importlib
import json
import os
import pkgutil
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import client_sdk
import client_sdk.device  # what the package imports late is loaded before a file system is filled
from client_sdk import (
    AlreadyGivenError,
    Answer,
    BudgetError,
    Collection,
    CollectionError,
    Device,
    Grid,
    NotAskedError,
    ParameterError,
    Report,
    Series,
    Uploader,
    commit_count,
)

DIED = 7  # how the stages exit that die
EXTRAS = ("client_sdk.kernels", "client_sdk.cipher_entropy", "client_sdk.rounds.")
FIRST_START = 1_800_000_000
HERE = (52.5163, 13.3777)
ELSEWHERE = (52.6, 13.2)
GRID = Grid.from_center(lat=52.52, lon=13.405, side_m=20_000, cells=5)
NOON = Collection.create("noon", GRID, epsilon=2, max_reports=2)
NIGHT = Collection.create("night", GRID, epsilon=2)
DAYS = Series.create(
    "days", GRID, 2, first_start=FIRST_START, window_seconds=86_400, windows=6, answers=2
)


def expect(error: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of an error that must come."""
    try:
        call()
    except error as raised:
        return str(raised)
    raise AssertionError(f"no {error.__name__}")


def agree(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"{found!r} instead of {expected!r}")


def installs(folder: Path) -> None:
    """Join a collection and a series, and give one report."""
    device = Device.install(folder / "device", cap_epsilon=9, lasting=True)
    document = NOON.to_json()
    expect(CollectionError, lambda: device.report(NOON.digest, *HERE))
    expect(CollectionError, lambda: device.join(document, digest=NIGHT.digest, max_epsilon=4))
    expect(CollectionError, lambda: device.join(document, digest=NOON.digest, max_epsilon=1))
    for _ in range(2):  # joining again changes nothing
        device.join(document, digest=NOON.digest, max_epsilon=2)
        device.join(DAYS.to_json(), digest=DAYS.digest, max_epsilon=2)
    report = device.report(NOON.digest, *HERE, event="visit 1")
    agree(device.report(NOON.digest, *HERE, event="visit 1"), report)
    agree(device.report(NOON.digest, *ELSEWHERE, event="visit 1"), report)
    agree(Report.from_json(report.to_body()), report)
    agree((device.spent(), device.remaining()), (2_000_000, 7_000_000))
    agree((device.waiting(), device.pending()), (1, [report.to_body()]))
    _note(folder, report=report.to_body(), windows=device.windows(DAYS.digest))


def dies_drawing(folder: Path) -> NoReturn:
    """Die with a report in hand that nobody was given."""
    device = Device.open(folder / "device")
    client_sdk.device.draw_report = _die
    device.report(NOON.digest, *HERE, event="visit 2")
    raise AssertionError("still alive")


def dies_before_counting(folder: Path) -> NoReturn:
    """Die after a report was written down and before that was counted."""
    device = Device.open(folder / "device")
    commit_count.write = _die
    device.report(NOON.digest, *HERE, event="visit 3")
    raise AssertionError("still alive")


def opens(folder: Path) -> None:
    """Find what was written down before both deaths, and nothing of the one while drawing."""
    notes = _notes(folder)
    device = Device.open(folder / "device")
    agree((device.spent(), device.waiting(), device.discarded()), (4_000_000, 2, 0))
    agree(device.spent(NOON), 4_000_000)
    agree(list(device.windows(DAYS.digest)), notes["windows"])
    third = device.report(NOON.digest, *ELSEWHERE, event="visit 3").to_body()
    agree(device.report(NOON.digest, *ELSEWHERE, event="visit 1").to_body(), notes["report"])
    agree(sorted(device.pending()), sorted([third, notes["report"]]))
    told = expect(BudgetError, lambda: device.report(NOON.digest, *HERE, event="visit 2"))
    agree("limit that the collection sets" in told, True)
    agree(device.spent(), 4_000_000)


def answers(folder: Path) -> None:
    """Answer the series in the windows that were drawn at the installation."""
    device = Device.open(folder / "device")
    device.join(DAYS.to_json(), digest=DAYS.digest, max_epsilon=2)
    windows = device.windows(DAYS.digest)
    agree(list(windows), _notes(folder)["windows"])
    expect(ParameterError, lambda: device.report(DAYS.digest, *HERE, event="mine"))
    clock = time.time
    try:
        for window in range(8):  # 0 and 7 are before and after
            now = FIRST_START + (window - 1) * 86_400 + 0.5
            time.time = lambda now=now: now
            agree(device.is_asked(DAYS.digest), window in windows)
            if window not in windows:
                expect(NotAskedError, lambda: device.report(DAYS.digest, *HERE))
                continue
            report = device.report(DAYS.digest, *HERE)
            agree(report.collection, DAYS.collection(window).digest)
            agree(device.report(DAYS.digest, *ELSEWHERE), report)
            agree(device.is_asked(DAYS.digest), False)
    finally:
        time.time = clock
    agree((device.spent(DAYS), device.remaining()), (4_000_000, 1_000_000))
    device.join(NIGHT.to_json(), digest=NIGHT.digest, max_epsilon=2)
    told = expect(BudgetError, lambda: device.report(NIGHT.digest, *HERE))
    agree("cap over all collections is 9 epsilon" in told, True)
    agree((device.spent(), device.waiting()), (8_000_000, 4))


def uploads(folder: Path) -> None:
    """Acknowledge one report by hand and send three, of which one is refused."""
    device = Device.open(folder / "device")
    device.acknowledge(Report.from_json(_notes(folder)["report"]).id)
    sent: list[bytes] = []

    def send(body: bytes) -> Answer:
        sent.append(body)
        if len(sent) == 1:
            raise ConnectionError
        return Answer(refusal="closed") if len(sent) == 2 else Answer(is_delivered=True)

    waits: list[float] = []
    clock = [0.0]
    uploader = Uploader(device, send, wait=waits.append, now=lambda: clock[0])
    waiting = sorted(device.pending())
    first = uploader.run_once()
    agree((first.delivered, first.is_complete, device.waiting()), (0, False, 3))
    clock[0] += first.wait_s
    second = uploader.run_once()
    agree((second.delivered, second.refused, second.is_complete), (2, {"closed": 1}, True))
    agree({len(body) for body in sent}, {192})
    agree(sorted(body.decode().rstrip() for body in sent[1:]), [text.rstrip() for text in waiting])
    agree(sorted(device.pending()), [])
    agree(len(waits), 4)
    expect(AlreadyGivenError, lambda: device.report(NOON.digest, *HERE, event="visit 1"))


def stays(folder: Path) -> None:
    """Find the account as it was left: an upload refills nothing."""
    device = Device.open(folder / "device")
    agree((device.waiting(), device.discarded(), device.pending()), (0, 1, []))
    agree((device.spent(), device.remaining()), (8_000_000, 1_000_000))
    agree((device.spent(NOON), device.spent(DAYS)), (4_000_000, 4_000_000))
    for event in ("visit 1", "visit 3"):
        expect(AlreadyGivenError, lambda event=event: device.report(NOON, *HERE, event=event))
    expect(BudgetError, lambda: device.report(NOON, *HERE, event="visit 4"))


STAGES: dict[str, Callable[[Path], None]] = {
    "installs": installs,
    "dies_drawing": dies_drawing,
    "dies_before_counting": dies_before_counting,
    "opens": opens,
    "answers": answers,
    "uploads": uploads,
    "stays": stays,
}


def import_everything() -> set[str]:
    """Import every module but those of the extras, warnings as errors.

    Return the top-level names loaded that are neither the client nor of the standard library.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for module in pkgutil.walk_packages(client_sdk.__path__, "client_sdk."):
            if not module.name.startswith(EXTRAS):
                importlib.import_module(module.name)
    names = {name.partition(".")[0] for name in sys.modules}
    return names - sys.stdlib_module_names - {"client_sdk", "__main__", "device_walk"}


def digests() -> list[str]:
    """Return what every device must agree on, whichever Python it has."""
    return [what.digest for what in (NOON, NIGHT, DAYS, DAYS.collection(3))]


def main() -> None:
    """Run the stage that the command line names, in the folder that it names."""
    stage, folder = sys.argv[1:]
    if stage == "imports":
        print(json.dumps({"foreign": sorted(import_everything()), "digests": digests()}))
    else:
        STAGES[stage](Path(folder))


def _die(*_: object) -> Any:
    os._exit(DIED)


def _note(folder: Path, **notes: object) -> None:
    (folder / "notes.json").write_text(json.dumps(notes), encoding="utf-8")


def _notes(folder: Path) -> dict[str, Any]:
    notes: dict[str, Any] = json.loads((folder / "notes.json").read_text(encoding="utf-8"))
    return notes
