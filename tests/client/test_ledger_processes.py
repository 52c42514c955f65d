"""The ledger among threads and processes, and when a process dies in the middle of a call."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from client_sdk import (
    BudgetError,
    Ledger,
    LedgerBusyError,
    LedgerError,
    ledger_file,
)
from tests.support.draws import draw, never
from tests.support.scripts import needs_fork, run


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


OUTSIDER = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in sys.argv[2:]:
    other.execute(statement).fetchall()
print("holds it", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_user_of_sqlite(path: Path, *statements: str) -> Iterator[None]:
    """Let another process hold SQLite's lock on the file after some statements."""
    child = subprocess.Popen(
        [sys.executable, "-c", OUTSIDER, str(path), *statements],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "holds it\n"
    try:
        yield
    finally:
        child.communicate(timeout=60)


@pytest.mark.parametrize("statements", [["BEGIN IMMEDIATE"], ["BEGIN", "SELECT * FROM head"]])
def test_a_ledger_locked_by_another_user_of_sqlite_is_an_error_and_not_a_report(
    path: Path, monkeypatch: pytest.MonkeyPatch, statements: list[str]
) -> None:
    monkeypatch.setattr(ledger_file, "BUSY_SECONDS", 0.01)
    ledger = Ledger.create(path, 8)
    with (
        another_user_of_sqlite(path, *statements),
        pytest.raises(LedgerBusyError, match=r"locked; another process .* no report was"),
    ):
        ledger.spend("c", 1, None, draw("1"))
    assert (ledger.spent(), ledger.pending()) == (0, [])
    assert ledger.spend("c", 1, None, draw("1")) == "report 1"


READS_FOR_EVER = """
import sqlite3, sys
while True:
    other = sqlite3.connect(sys.argv[1], timeout=0)
    try:
        other.execute("SELECT * FROM pending").fetchall()
    except sqlite3.OperationalError as error:
        assert "locked" in str(error), error
    other.close()
"""


@needs_fork
def test_a_reader_with_sqlite_takes_no_commit_back_whatever_other_code_closes(
    path: Path,
) -> None:
    """It would find a journal without SQLite's lock, which our thread drops, and roll it back."""
    ledger = Ledger.create(path, 8)
    given = []
    reader = subprocess.Popen([sys.executable, "-c", READS_FOR_EVER, str(path)])
    stop = threading.Event()

    def read_own_file() -> None:
        while not stop.is_set():
            with path.open("rb") as file:
                file.read(16)

    thread = threading.Thread(target=read_own_file)
    thread.start()
    try:
        for _ in range(150):
            given.append(ledger.spend("c", 1, None, draw(os.urandom(8).hex())))
            assert Ledger(path).waiting() == len(given)
    finally:
        stop.set()
        thread.join()
        assert reader.poll() is None  # it met no error but "locked"
        reader.kill()
        reader.wait()
    assert sorted(given) == sorted(Ledger(path).pending())
    assert ledger.spent() == 150


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
    path.unlink()
    path.with_name("ledger.db.lock").unlink()
    shutil.rmtree(path.with_name("ledger.db.count"))
    journal_of(path).write_bytes(journal)
    assert Ledger.create(path, 4).remaining() == 4_000_000
    assert not journal_of(path).exists()


def test_a_ledger_is_not_made_where_one_was_used(path: Path) -> None:
    Ledger.create(path, 8).spend("c", 1, None, draw("1"))
    path.unlink()
    with pytest.raises(LedgerError, match="a ledger was here: its count exists"):
        Ledger.create(path, 8)
    assert not path.exists()


KILLED_WHILE_MADE = """
import os, signal, sys
from client_sdk import Ledger
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[2]))
Ledger.create(sys.argv[1], 8)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


@needs_fork
def test_a_ledger_whose_making_was_killed_is_there_in_full_or_can_be_made(tmp_path: Path) -> None:
    made = 0
    for k in range(30):
        folder = tmp_path / str(k)
        folder.mkdir()
        path = folder / "ledger.db"
        command = [sys.executable, "-c", KILLED_WHILE_MADE, str(path), str(0.0002 + k * 0.0003)]
        subprocess.run(command, check=False, timeout=60)
        made += path.exists()
        ledger = Ledger(path) if path.exists() else Ledger.create(path, 8)
        assert ledger.spend("c", 1, None, draw("1")) == "report 1"
        assert len(list(folder.iterdir())) == 3
    assert made < 30


def test_no_ledger_is_deleted_for_its_name(tmp_path: Path) -> None:
    """Another ledger may have the name under which a new one is made."""
    other = Ledger.create(tmp_path / "ledger.db.new", 8)
    other.spend("c", 1, None, draw("1"))
    with pytest.raises(LedgerError, match=r"ledger\.db\.new exists"):
        Ledger.create(tmp_path / "ledger.db", 8)
    assert other.pending() == ["report 1"]


def test_two_processes_that_make_one_ledger_get_one(path: Path) -> None:
    script = (
        "import sys; from client_sdk import Ledger, LedgerError\n"
        "try: Ledger.create(sys.argv[1], 8); print('made')\n"
        "except LedgerError as error: print('File exists' in str(error))"
    )
    command = [sys.executable, "-c", script, str(path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    told = sorted(child.communicate(timeout=60)[0] for child in children)
    assert told == ["True\n"] * 3 + ["made\n"]
    assert Ledger(path).remaining() == 8_000_000
