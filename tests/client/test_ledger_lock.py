"""The ledger's own lock: what other code of the process does to the file does not drop it."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk import BudgetError, Ledger, LedgerError, file_lock
from experiments.studies.ledger_attacks import kills, race
from tests.support.draws import draw, never

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs flock")
UNLOCK = 8  # fcntl.LOCK_UN


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


SPENDS = """
import sys
from client_sdk import Ledger, file_lock
file_lock.LOCK_SECONDS = 0.2
try:
    print("given", Ledger(sys.argv[1]).spend("c", 10**6, None, lambda: ("2", "report 2")))
except OSError as error:
    print("refused", error)
"""


def in_another_process(path: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", SPENDS, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def touches(path: Path) -> dict[str, Callable[[], object]]:
    """What a backup agent, a hash or telemetry may do while a report is drawn."""

    def read_16_bytes() -> None:
        with path.open("rb") as file:
            file.read(16)

    def open_for_writing() -> None:
        os.close(os.open(path, os.O_RDWR))

    def read_everything_beside() -> None:
        for file in path.parent.rglob("*"):
            if file.is_file():
                file.read_bytes()

    def read_in_a_thread() -> None:
        thread = threading.Thread(target=read_16_bytes)
        thread.start()
        thread.join()

    return {
        "reads 16 bytes": read_16_bytes,
        "opens for writing": open_for_writing,
        "reads all files": read_everything_beside,
        "reads in a thread": read_in_a_thread,
    }


@pytest.mark.parametrize("touch", touches(Path()))
def test_code_that_reads_the_ledger_file_lets_no_other_process_in(path: Path, touch: str) -> None:
    ledger = Ledger.create(path, cap_epsilon=1)
    told = []

    def draw_and_touch() -> tuple[str, str]:
        touches(path)[touch]()
        told.append(in_another_process(path))
        return "1", "report 1"

    assert ledger.spend("c", 10**6, None, draw_and_touch) == "report 1"
    assert told[0].startswith("refused")
    assert "locked; another process" in told[0]
    assert "cap over all collections" in in_another_process_budget(path)
    assert (ledger.spent(), ledger.pending()) == (10**6, ["report 1"])


def in_another_process_budget(path: Path) -> str:
    script = SPENDS.replace("except OSError", "except Exception")
    command = [sys.executable, "-c", script, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@posix
def test_two_processes_that_read_their_own_file_spend_exactly_the_cap(tmp_path: Path) -> None:
    """`python -m experiments ledger-attacks` does so 200 times."""
    for k in range(4):
        folder = tmp_path / str(k)
        folder.mkdir()
        outcome = race(folder, cap=60)
        assert (outcome.given, outcome.counted, outcome.uncounted) == (60, 60, 0)
        assert outcome.errors == ()


@posix
def test_processes_killed_at_random_moments_leave_nothing_uncounted(tmp_path: Path) -> None:
    """`python -m experiments ledger-attacks` kills 500."""
    outcome = kills(tmp_path, 25, seed=3)
    assert (outcome.uncounted, outcome.errors) == (0, ())
    assert outcome.given > 0
    assert outcome.counted <= outcome.given + 27


def test_threads_exclude_each_other(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_lock, "LOCK_SECONDS", 0.05)
    ledger = Ledger.create(path, 8)
    told: list[BaseException] = []

    def other() -> None:
        try:
            Ledger(path).spend("c", 1, None, never)
        except LedgerError as error:
            told.append(error)

    def draw_while_another_tries() -> tuple[str, str]:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return "1", "report 1"

    ledger.spend("c", 1, None, draw_while_another_tries)
    assert "locked; another process or thread" in str(told[0])
    assert ledger.spent() == 1


def test_using_the_ledger_while_drawing_is_an_error_and_not_a_report(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "LOCK_SECONDS", 0.05)
    ledger = Ledger.create(path, 8)
    with pytest.raises(LedgerError, match="locked"):
        ledger.spend("c", 1, None, lambda: (str(ledger.spent()), "x"))
    assert ledger.spent() == 0


# The lock file, and what happens to it during a call


def during_a_call(path: Path, act: Callable[[], object], message: str) -> None:
    """Expect that a report which was drawn while something happened is not handed out."""
    ledger = Ledger(path)

    def draw_and_act() -> tuple[str, str]:
        act()
        return "1", "report 1"

    with pytest.raises(LedgerError, match=message):
        ledger.spend("c", 1, None, draw_and_act)


@posix
def test_a_lock_file_that_is_replaced_during_a_call_keeps_the_report_in(path: Path) -> None:
    Ledger.create(path, 8)
    lock = path.with_name("ledger.db.lock")

    def replace() -> None:
        lock.rename(lock.with_name("old"))
        lock.write_bytes(b"\n")

    during_a_call(path, replace, "the lock file was (changed|replaced); keep backup agents")
    with pytest.raises(LedgerError, match="which is then not the one it was made with"):
        Ledger(path)
    lock.unlink()
    with pytest.raises(LedgerError, match="its lock file is missing"):
        Ledger(path)


@posix
def test_a_lock_that_is_dropped_during_a_call_keeps_the_report_in(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    inode = path.with_name("ledger.db.lock").stat().st_ino

    def close_what_is_not_ours() -> None:  # as a daemon does that closes all descriptors
        for number in range(3, 200):
            try:
                if os.fstat(number).st_ino == inode:
                    os.close(number)
            except OSError:
                pass

    during_a_call(path, close_what_is_not_ours, "dropped by a fork or by a foreign close")
    assert (ledger.spent(), ledger.pending()) == (0, [])
    ledger.spend("c", 1, None, draw("1"))


@posix
def test_a_lock_file_can_be_locked_as_soon_as_it_has_its_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two processes that install or upgrade at once: one opens what the other is still making.
    seen = []
    plain = os.open

    def look(name: Path, flags: int, *rest: int) -> int:
        descriptor = plain(name, flags, *rest)
        if flags & os.O_EXCL:
            with file_lock.locked(path) as held:
                seen.append(held.identity)
            time.sleep(0.05)  # longer than the finest step of any time of change
        return descriptor

    monkeypatch.setattr(file_lock.os, "open", look)
    file_lock.make(path)
    monkeypatch.undo()
    assert seen == [file_lock.Identity.of(path.stat())]


def test_a_ledger_written_by_others_during_a_call_keeps_the_report_in(path: Path) -> None:
    Ledger.create(path, 8)

    def write() -> None:
        path.write_bytes(path.read_bytes())

    during_a_call(path, write, "changed by other code during a call; try again: the next call")


def test_a_file_that_was_only_touched_during_a_call_is_used_by_the_next(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    during_a_call(path, lambda: os.utime(path), "changed by other code during a call; try again")
    assert ledger.spend("c", 1, None, lambda: ("1", "report 1")) == "report 1"


@pytest.mark.parametrize("keeps", ["nothing", "until any descriptor is closed"])
@posix
def test_a_file_system_that_keeps_no_lock_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, keeps: str
) -> None:
    """Stand-ins for network file systems: one takes every lock, one has record locks beneath."""
    ledger = Ledger.create(path, 8)
    held: set[tuple[int, int]] = set()

    def flock(descriptor: int, operation: int) -> None:
        if keeps == "nothing":
            return
        inode = os.fstat(descriptor).st_ino
        if operation & UNLOCK:
            held.difference_update({entry for entry in held if entry[0] == inode})
        elif any(entry[0] == inode and entry[1] != descriptor for entry in held):
            raise BlockingIOError
        else:
            held.add((inode, descriptor))

    really = os.close

    def close(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        held.difference_update({entry for entry in held if entry[0] == inode})
        really(descriptor)

    monkeypatch.setattr("fcntl.flock", flock)
    monkeypatch.setattr(os, "close", close)
    with pytest.raises(LedgerError, match="does not keep a lock; put the ledger on a local"):
        ledger.spend("c", 1, None, never)
    with pytest.raises(LedgerError, match="does not keep a lock"):
        Ledger.create(path.with_name("another.db"), 8)
    monkeypatch.undo()
    assert ledger.spent() == 0
    assert not path.with_name("another.db").exists()


@posix
def test_a_file_system_without_locks_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    ledger = Ledger.create(path, 8)
    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(LedgerError, match="not supported"):
        ledger.spend("c", 1, None, never)


def test_a_cap_of_one_is_one_report(path: Path) -> None:
    ledger = Ledger.create(path, 1)
    ledger.spend("c", 10**6, None, draw("1"))
    with pytest.raises(BudgetError):
        ledger.spend("c", 1, None, never)
