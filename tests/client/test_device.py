"""Device: pinned collections, a cap, and one report a reading, whatever is called again."""

import errno
import inspect
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from client_sdk import (
    AlreadyGivenError,
    BudgetError,
    Collection,
    CollectionError,
    Device,
    Grid,
    Ledger,
    LedgerError,
    LedgerUnavailableError,
    ParameterError,
    PositionError,
    Report,
)
from client_sdk.report import BODY_BYTES

GRID = Grid.from_center(52.52, 13.405, 20_000, 5)
COLLECTION = Collection.create("noon in Berlin", GRID, 2, max_reports=3)
DOCUMENT, DIGEST = COLLECTION.to_json(), COLLECTION.digest
HERE = (52.5163, 13.3777)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "device"


@pytest.fixture
def device(folder: Path) -> Device:
    device = Device.install(folder, cap_epsilon=8)
    device.join(DOCUMENT, digest=DIGEST, max_epsilon=2)
    return device


# Installing and opening


def test_a_device_is_installed_once_and_opened_from_then_on(folder: Path) -> None:
    Device.install(folder, cap_epsilon=8, collection_cap_epsilon=6)
    assert (Device.open(folder).remaining(), Device.open(str(folder)).remaining(DIGEST)) == (
        8_000_000, 6_000_000
    )  # fmt: skip
    with pytest.raises(LedgerError, match="File exists; open it"):
        Device.install(folder, cap_epsilon=8)
    assert folder.stat().st_mode & 0o077 == 0


def test_opening_never_installs(folder: Path) -> None:
    with pytest.raises(LedgerError, match="no such file"):
        Device.open(folder)
    assert not folder.exists()


@pytest.mark.parametrize(
    "bad", ["", None, 3, pytest.param(10**5000, id="huge"), b"folder", "a\0b", "a\ud800b"]
)
def test_a_folder_that_is_none_is_refused(bad: Any) -> None:
    for call in (Device.open, lambda name: Device.install(name, 8)):
        with pytest.raises(ParameterError, match="folder must name a folder"):
            call(bad)


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_folder_that_cannot_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be made") as caught:
        Device.install(tmp_path / "file" / "device", 8)
    assert not isinstance(caught.value, LedgerUnavailableError)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", full)
        with pytest.raises(LedgerUnavailableError, match="has room"):
            Device.install(tmp_path / "device", 8)
    with pytest.raises(ParameterError, match="cap_epsilon"):
        Device.install(tmp_path / "device", 0)


# Joining


def test_only_the_pinned_document_can_be_joined(folder: Path) -> None:
    device = Device.install(folder, cap_epsilon=1000)
    generous = Collection.create("noon in Berlin", GRID, 20, "disk", None, 10**6, squared_radius=0)
    stranger = generous.to_json()
    with pytest.raises(CollectionError, match="altered"):
        device.join(stranger, digest=DIGEST, max_epsilon=20)
    with pytest.raises(CollectionError, match=r"exceeds this device's cap 1\.9"):
        device.join(DOCUMENT, digest=DIGEST, max_epsilon=1.9)
    for digest in (DIGEST.upper(), DIGEST[:-1], ""):  # of 64 characters at most
        with pytest.raises(CollectionError, match="altered"):
            device.join(DOCUMENT, digest=digest, max_epsilon=2)
    with pytest.raises(ParameterError, match="digest must be a text, got NoneType"):
        device.join(DOCUMENT, digest=None, max_epsilon=2)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"digest must be .*, got 'a{56}\.\.\.$"):
        device.join(DOCUMENT, digest="a" * 5000, max_epsilon=2)
    with pytest.raises(ParameterError, match="max_epsilon must be a number"):
        device.join(DOCUMENT, digest=DIGEST, max_epsilon=None)
    with pytest.raises(CollectionError, match="not joined"):
        device.report(COLLECTION, *HERE)
    assert device.spent() == 0


def test_digest_and_largest_epsilon_cannot_be_left_out() -> None:
    parameters = inspect.signature(Device.join).parameters
    for name in ("digest", "max_epsilon"):
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is inspect.Parameter.empty


@pytest.mark.parametrize("text", ["", "{}", "[]", "x", DOCUMENT[:-1], DOCUMENT.replace("2", "3")])
def test_a_bad_document_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(CollectionError):
        Device.install(folder, 8).join(text, digest=DIGEST, max_epsilon=20)


def test_a_huge_document_is_refused_before_it_is_read(folder: Path) -> None:
    text = DOCUMENT + " " * (1 << 22)
    with pytest.raises(CollectionError, match="at most 4194304 characters"):
        Device.install(folder, 8).join(text, digest=DIGEST, max_epsilon=20)


def test_what_was_joined_needs_no_document_after_a_restart(device: Device, folder: Path) -> None:
    for name in (DIGEST, COLLECTION):
        report = Device.open(folder).report(name, *HERE)
        report.check(COLLECTION)
    with pytest.raises(CollectionError, match="has not joined this collection"):
        device.report("52.5163", *HERE)  # arguments in the wrong order
    with pytest.raises(CollectionError, match=r"has not joined 000000000000\.\.\."):
        device.report("0" * 64, *HERE)
    for bad in (None, 3, "", b"x"):
        with pytest.raises(ParameterError, match="collection must be a Collection"):
            device.report(bad, *HERE)  # type: ignore[arg-type]


def test_joining_again_changes_nothing(device: Device) -> None:
    device.report(DIGEST, *HERE, event="1")
    spread = DOCUMENT.replace(",", ", ")
    assert device.join(spread, digest=DIGEST, max_epsilon=20) == COLLECTION
    assert device.spent(COLLECTION) == 2_000_000


# Reporting


def test_a_report_is_debited_and_stored_before_it_is_returned(device: Device) -> None:
    report = device.report(COLLECTION, *HERE)
    report.check(COLLECTION)
    assert [Report.from_json(text) for text in device.pending()] == [report]
    assert (device.spent(), device.remaining(DIGEST), device.waiting()) == (
        2_000_000, 6_000_000, 1
    )  # fmt: skip


def test_every_report_waits_in_as_many_bytes(device: Device) -> None:
    for _ in range(3):
        device.report(COLLECTION, *HERE)
    assert [len(text.encode()) for text in device.pending()] == [BODY_BYTES] * 3


def test_the_caps_hold(device: Device, folder: Path) -> None:
    for _ in range(3):
        device.report(COLLECTION, *HERE)
    with pytest.raises(BudgetError, match="the limit that the collection sets"):
        device.report(COLLECTION, *HERE)
    other = Collection.create("another", GRID, 3)
    device.join(other.to_json(), digest=other.digest, max_epsilon=3)
    with pytest.raises(BudgetError, match="the cap over all collections is 8 epsilon: 6 spent"):
        Device.open(folder).report(other, *HERE)


@pytest.mark.parametrize("position", [(875.25, 0.0), (0.0, None), ("875", 0)])
def test_a_bad_position_costs_nothing_and_is_not_repeated(device: Device, position: Any) -> None:
    with pytest.raises(PositionError) as caught:
        device.report(COLLECTION, *position, event="1")
    assert "875" not in str(caught.value)
    assert (device.spent(), device.pending()) == (0, [])
    device.report(COLLECTION, *HERE, event="1")


def test_no_report_without_a_record(device: Device, folder: Path) -> None:
    (folder / "ledger.db").unlink()
    with pytest.raises(LedgerError) as caught:
        device.report(COLLECTION, *HERE)
    assert "5163" not in str(caught.value)


# Readings have names


def test_the_same_event_gives_the_stored_report_and_never_a_second_draw(
    device: Device, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = device.report(COLLECTION, *HERE, event="visit 41")
    monkeypatch.setattr("client_sdk.entropy.system", lambda _: pytest.fail("drawn again"))
    for again in (device, Device.open(folder)):
        assert again.report(COLLECTION, *HERE, event="visit 41") == report
        assert again.report(COLLECTION, -33.9, 18.4, event="visit 41") == report
    assert (device.spent(), device.waiting()) == (2_000_000, 1)


@pytest.mark.parametrize("forget", [Device.acknowledge, Device.discard])
def test_an_event_whose_report_was_dealt_with_gives_none(
    device: Device, folder: Path, forget: Callable[..., None]
) -> None:
    report = device.report(COLLECTION, *HERE, event="visit 41")
    forget(device, report.id)
    for again in (device, Device.open(folder)):
        with pytest.raises(AlreadyGivenError, match="given before"):
            again.report(COLLECTION, *HERE, event="visit 41")
    assert (device.spent(), device.pending()) == (2_000_000, [])
    device.report(COLLECTION, *HERE, event="visit 42")


def test_events_are_told_apart_by_collection_and_text(device: Device) -> None:
    other = Collection.create("another", GRID, 1)
    device.join(other.to_json(), digest=other.digest, max_epsilon=1)
    first = device.report(COLLECTION, *HERE, event="x")
    assert device.report(other, *HERE, event="x").collection == other.digest
    assert device.report(COLLECTION, *HERE, event="x ") != first
    assert device.spent() == 5_000_000


def test_an_event_that_found_no_budget_was_not_given(folder: Path) -> None:
    device = Device.install(folder, cap_epsilon=1)
    device.join(DOCUMENT, digest=DIGEST, max_epsilon=2)
    for _ in range(2):
        with pytest.raises(BudgetError):
            device.report(COLLECTION, *HERE, event="x")
    assert device.pending() == []


def test_a_text_that_writes_itself_otherwise_is_the_text_that_it_is(device: Device) -> None:
    class Visit(str, Enum):
        A = "visit 41"

    class Random(str):
        def __str__(self) -> str:
            return os.urandom(8).hex()

        __format__ = encode = __str__  # type: ignore[assignment]

    report = device.report(COLLECTION, *HERE, event="visit 41")
    for event in (Visit.A, Random("visit 41"), Random("visit 41")):
        assert device.report(COLLECTION, *HERE, event=event) == report
    assert device.report(Random(DIGEST), *HERE, event="visit 41") == report


@pytest.mark.parametrize("bad", ["", 3, b"x", "\ud800"])
def test_a_bad_event_is_refused(device: Device, bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"event must (be a text|not be empty|hold no)"):
        device.report(COLLECTION, *HERE, event=bad)
    assert device.spent() == 0


def test_the_files_hold_no_text_of_an_event_and_no_hash_that_others_could_make(
    device: Device, folder: Path, tmp_path: Path
) -> None:
    other = Device.install(tmp_path / "other", 8)
    other.join(DOCUMENT, digest=DIGEST, max_epsilon=2)
    names = []
    for each, place in ((device, folder), (other, tmp_path / "other")):
        each.report(COLLECTION, *HERE, event="visit 41 at the doctor's")
        assert all(
            b"doctor" not in file.read_bytes() for file in place.rglob("*") if file.is_file()
        )
        names.append(_events(place))
    assert len(names[0]) == len(names[1]) == 1
    assert names[0] != names[1]


def _events(folder: Path) -> list[bytes]:
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        return [name for (name,) in connection.execute("SELECT event FROM events")]


CRASHES = """
import os, sys
from client_sdk import Device, device
folder, digest, moment = sys.argv[1:]
if moment == "while drawing":
    device.draw_report = lambda *_: os._exit(1)
report = Device.open(folder).report(digest, 52.5163, 13.3777, event="visit 41")
os._exit(1)  # before the app could use it
"""


@pytest.mark.parametrize(("moment", "drawn"), [("while drawing", 0), ("after it", 1)])
def test_a_crash_leaves_one_report_of_an_event_or_none(
    device: Device, folder: Path, moment: str, drawn: int
) -> None:
    command = [sys.executable, "-c", CRASHES, str(folder), DIGEST, moment]
    assert subprocess.run(command, check=False, timeout=60).returncode == 1
    waiting = device.pending()
    assert len(waiting) == drawn
    report = device.report(COLLECTION, *HERE, event="visit 41")
    assert (device.spent(), device.waiting()) == (2_000_000, 1)
    assert drawn == 0 or Report.from_json(waiting[0]) == report


def test_threads_that_ask_at_once_get_one_report(folder: Path) -> None:
    device = Device.install(folder, 100)
    device.join(DOCUMENT, digest=DIGEST, max_epsilon=2)
    reports: list[Report] = []
    threads = [
        threading.Thread(target=lambda: reports.append(device.report(DIGEST, *HERE, event="x")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == 8
    assert len(set(reports)) == 1
    assert device.spent() == 2_000_000


# What is not there


def test_a_bad_cap_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="cap_epsilon"):
        Device.install(tmp_path / "device", cap_epsilon=0)
    assert not (tmp_path / "device").exists()


def test_no_way_around_digest_cap_and_ledger() -> None:
    public = {name for name in dir(Device) if not name.startswith("_")}
    assert public == {
        "acknowledge", "discard", "discard_newest", "discarded", "folder", "install", "is_asked",
        "is_pending", "join", "open", "outbox", "pending", "remaining", "report", "spent",
        "waiting", "windows",
    }  # fmt: skip
    names = list(inspect.signature(Device.report).parameters)
    assert names == ["self", "collection", "lat", "lon", "event"]


def test_the_signature_of_spend_is_what_it_was() -> None:
    names = list(inspect.signature(Ledger.spend).parameters)
    assert names == ["self", "collection", "micro_epsilon", "collection_limit", "draw"]


def test_ids_come_from_the_operating_system(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def urandom(n: int) -> bytes:
        asked.append(n)
        return bytes(n)

    monkeypatch.setattr(os, "urandom", urandom)
    assert device.report(COLLECTION, *HERE).id == "0" * 32
    assert asked == [7, 16]


# Emscripten, as far as it can be played elsewhere; tests/client/test_pyodide.py runs there


def test_a_page_installs_only_where_the_app_says_that_the_folder_lasts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "emscripten")
    with pytest.raises(LedgerError, match=r"gone after a reload.*lasting=True.*nothing was"):
        Device.install(folder, 8)
    assert list(folder.iterdir()) == []
    Device.install(folder, 8, lasting=True)
    assert Device.open(folder).remaining() == 8_000_000
