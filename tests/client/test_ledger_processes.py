"""The ledger among threads and processes, and when a process dies in the middle of a call."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from client_sdk import BudgetError, Ledger, LedgerError, ledger_file

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def draw(report_id: str) -> Callable[[], tuple[str, str]]:
    return lambda: (report_id, f"report {report_id}")


def never() -> tuple[str, str]:
    raise AssertionError("drawn although refused")


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-W", "error", "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_threads_cannot_spend_more_than_the_cap(path: Path) -> None:
    ledger = Ledger.create(path, "0.000040")
    reports: list[str] = []

    def work() -> None:
        for _ in range(20):
            with contextlib.suppress(BudgetError):
                reports.append(ledger.spend("c", 1, None, draw(os.urandom(16).hex())))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(reports)) == len(reports) == ledger.spent() == 40
    assert ledger.pending() == sorted(reports)


RACE = """
import os, sys
from client_sdk import BudgetError, Ledger

path, forks = sys.argv[1], int(sys.argv[2])
ledger = Ledger(path)
children = []
for _ in range(forks):
    child = os.fork()
    if child == 0:
        children.clear()
        break
    children.append(child)
for _ in range(50):
    report_id = os.urandom(16).hex()
    try:
        report = ledger.spend("c", 1, None, lambda: (report_id, "report " + report_id))
    except BudgetError:
        continue
    os.write(1, (report + "\\n").encode())  # one write a line: lines of processes do not mix
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize(("processes", "forks"), [(4, 0), pytest.param(1, 3, marks=needs_fork)])
def test_four_processes_at_once_spend_exactly_the_cap(
    path: Path, processes: int, forks: int
) -> None:
    ledger = Ledger.create(path, "0.000060")
    command = [sys.executable, "-c", RACE, str(path), str(forks)]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)
    ]
    outputs = [child.communicate(timeout=60)[0] for child in children]
    assert all(child.returncode == 0 for child in children)
    reports = sorted("".join(outputs).splitlines())
    assert len(set(reports)) == len(reports) == 60 == ledger.spent()
    assert ledger.pending() == reports
    with pytest.raises(BudgetError):
        ledger.spend("other", 1, None, never)


def test_a_ledger_locked_by_another_is_an_error_and_not_a_report(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.01)
    ledger = Ledger.create(path, 8)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for call in (lambda: ledger.spend("c", 1, None, never), ledger.pending, lambda: Ledger(path)):
        with pytest.raises(LedgerError, match=r"locked; another process .* no report was given"):
            call()
    other.close()
    assert ledger.spend("c", 1, None, draw("1")) == "report 1"


def test_a_reader_that_keeps_the_commit_out_keeps_the_report_in(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.01)
    ledger = Ledger.create(path, 8)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM head").fetchall()
    with pytest.raises(LedgerError, match="locked"):
        ledger.spend("c", 1, None, draw("1"))
    reader.close()
    assert (ledger.spent(), ledger.pending()) == (0, [])


KILLED = """
import os, random, signal, sys
from client_sdk import Ledger

path, rounds = sys.argv[1], int(sys.argv[2])
rng = random.Random(20)
for _ in range(rounds):
    wait = rng.uniform(0.0005, 0.015)  # seconds; a spending takes about 0.001
    if os.fork() == 0:
        # The default action of the alarm ends the process on the spot, as SIGKILL would.
        signal.setitimer(signal.ITIMER_REAL, wait)
        ledger = Ledger(path)
        while True:
            report_id = os.urandom(16).hex()
            report = ledger.spend("c", 1, None, lambda: (report_id, report_id + "x" * 5000))
            os.write(1, (report[:32] + "\\n").encode())
    _, status = os.wait()
    assert os.WTERMSIG(status) == signal.SIGALRM, status
"""


@needs_fork
def test_a_process_killed_at_any_moment_never_hands_out_an_uncounted_report(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    rounds = 40
    handed_out = run(KILLED, path, rounds).split()
    stored = [report[:32] for report in ledger.pending()]
    assert set(handed_out) <= set(stored)
    assert len(handed_out) <= ledger.spent() == len(stored) <= len(handed_out) + rounds
    assert ledger.spend("c", 1, None, draw("1")) == "report 1"


DIES_IN_DRAW = """
import os, sys
from client_sdk import Ledger
Ledger(sys.argv[1]).spend("c", 1, None, lambda: os._exit(0))
"""


def test_a_process_that_dies_while_drawing_spends_nothing_and_leaves_no_lock(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    run(DIES_IN_DRAW, path)
    assert (ledger.spent(), ledger.pending()) == (0, [])


def half_written(path: Path) -> tuple[bytes, bytes]:
    """Return ledger and journal as they lie on the disk while a commit is on its way."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")  # pages go to the file before the commit
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE spending SET micro_epsilon = micro_epsilon - 5")
    rows = [(f"{i:04d}", "x" * 500) for i in range(200)]
    writer.executemany("INSERT INTO pending VALUES (?, 1, ?, NULL, x'00')", rows)
    halves = path.read_bytes(), journal_of(path).read_bytes()
    writer.close()
    return halves


def journal_of(path: Path) -> Path:
    return path.with_name(path.name + "-journal")


def test_a_half_written_commit_is_rolled_back_by_the_next_call(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    for report_id in ("1", "2"):
        ledger.spend("c", 10, None, draw(report_id))
    before = path.read_bytes()
    half, journal = half_written(path)
    assert half != before
    path.write_bytes(half)
    journal_of(path).write_bytes(journal)
    restarted = Ledger(path)
    assert (restarted.spent(), restarted.pending()) == (20, ["report 1", "report 2"])
    assert path.read_bytes() == before


def test_a_half_written_commit_without_its_journal_is_noticed(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    ledger.spend("c", 10, None, draw("1"))
    half, _ = half_written(path)
    path.write_bytes(half)
    for call in (lambda: Ledger(path), ledger.spent, ledger.pending):
        with pytest.raises(LedgerError, match="stop reporting"):
            call()


def test_the_journal_of_a_deleted_ledger_does_not_reach_its_successor(path: Path) -> None:
    Ledger.create(path, 8).spend("c", 10, None, draw("1"))
    _, journal = half_written(path)
    for file in list(path.parent.iterdir()):
        file.unlink()
    journal_of(path).write_bytes(journal)
    assert Ledger.create(path, 4).remaining() == 4_000_000
    assert not journal_of(path).exists()


@pytest.mark.parametrize("left", ["ledger.db.lock", "ledger.db.count"])
def test_a_ledger_is_not_made_where_one_was(path: Path, left: str) -> None:
    Ledger.create(path, 8)
    for file in list(path.parent.iterdir()):
        if file.name != left:
            file.unlink()
    with pytest.raises(LedgerError, match="File exists"):
        Ledger.create(path, 8)
    assert [file.name for file in path.parent.iterdir()] == [left]
