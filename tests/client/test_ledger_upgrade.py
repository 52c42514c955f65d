"""Ledgers of the first version are read, once, with what they spent."""

import hashlib
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest

from client_sdk import BudgetError, Ledger, LedgerError, Report, ledger_file
from tests.support.draws import never

STOP = "keep the file and stop reporting"
PENDING = {"b": "report b", "a": "report a"}
SPENDING = {"c": 3_000_000, "d": 1}


def first_version(path: Path, pending: Mapping[str, str] = PENDING) -> Path:
    """Write a ledger as the first version did, from the description of its format."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            "CREATE TABLE caps (device INTEGER NOT NULL, collection INTEGER NOT NULL,"
            " checksum TEXT)"
        )
        connection.execute(
            "CREATE TABLE spending (collection TEXT PRIMARY KEY, micro_epsilon INTEGER NOT NULL)"
            " WITHOUT ROWID"
        )
        connection.execute(
            "CREATE TABLE pending (report_id TEXT PRIMARY KEY, report TEXT NOT NULL) WITHOUT ROWID"
        )
        connection.execute(f"PRAGMA application_id = {0x6C647073}")
        connection.execute("PRAGMA user_version = 1")
        connection.executemany("INSERT INTO spending VALUES (?, ?)", SPENDING.items())
        connection.executemany("INSERT INTO pending VALUES (?, ?)", pending.items())
        rows = [*map(ascii, SPENDING.items()), *map(ascii, pending.items())]
        text = "\n".join(["1 8000000 8000000", *sorted(rows)])
        checksum = hashlib.sha256(text.encode()).hexdigest()
        connection.execute("INSERT INTO caps VALUES (8000000, 8000000, ?)", (checksum,))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return first_version(tmp_path / "ledger.db")


def test_what_was_spent_and_what_waits_stays(path: Path) -> None:
    for _ in range(2):
        ledger = Ledger(path)
        assert (ledger.spent(), ledger.spent("c"), ledger.remaining()) == (
            3_000_001, 3_000_000, 4_999_999
        )  # fmt: skip
        assert (ledger.pending(), ledger.waiting()) == (["report a", "report b"], 2)
    ledger.acknowledge("a")
    ledger.spend("c", 4_999_999, None, lambda: ("e", "report e"))
    with pytest.raises(BudgetError):
        ledger.spend("c", 1, None, never)
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "ledger.db", "ledger.db.count", "ledger.db.lock"
    ]  # fmt: skip


def test_a_first_version_that_is_put_back_later_is_refused(path: Path) -> None:
    old = path.read_bytes()
    ledger = Ledger(path)
    ledger.spend("c", 1, None, lambda: ("e", "report e"))
    path.write_bytes(old)
    with pytest.raises(LedgerError, match="an older copy of this ledger"):
        Ledger(path)
    with pytest.raises(LedgerError, match="an older copy of this ledger"):
        ledger.spend("c", 1, None, never)


def test_a_first_version_that_is_put_back_before_anything_was_written_is_refused(
    path: Path,
) -> None:
    """A ledger whose cap is spent is only read from then on."""
    old = path.read_bytes()
    for _ in range(2):
        assert Ledger(path).waiting() == 2
    path.write_bytes(old)
    for _ in range(2):
        with pytest.raises(LedgerError, match="an older copy of this ledger"):
            Ledger(path)


def test_a_first_version_that_another_tool_set_to_a_write_ahead_log_is_read(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    assert Ledger(path).spent() == 3_000_001


def test_a_damaged_first_version_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE spending SET micro_epsilon = 1")
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(LedgerError, match=STOP):
            Ledger(path)
        assert path.read_bytes() == before


DIES = """
import os, sys
from client_sdk import Ledger, commit_count, ledger_file, ledger_upgrade
point = sys.argv[2]
if point == "after the lock":
    commit_count.make = lambda *_: os._exit(0)
elif point == "after the count":
    ledger_file.make_tables = lambda *_: os._exit(0)
else:
    ledger_upgrade._convert = lambda *_: os._exit(0)
Ledger(sys.argv[1])
"""


@pytest.mark.parametrize("point", ["after the lock", "after the count", "before the commit"])
def test_a_process_that_dies_in_between_leaves_a_ledger_of_either_version(
    path: Path, point: str
) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(path), point], check=True, timeout=60)
    assert ledger_file.is_first(path)
    assert path.with_name("ledger.db.lock").exists()
    assert Ledger(path).spent() == 3_000_001


def hot_journal(before: bytes) -> bytes:
    """What SQLite lays beside a file before a commit overwrites it: the pages as they were."""
    size = int.from_bytes(before[16:18], "big")
    pages = [before[at : at + size] for at in range(0, len(before), size)]
    numbers = len(pages), 7, len(pages), 512, size  # records, nonce, pages, sector, page size
    journal = bytes.fromhex("d9d505f920a163d7") + b"".join(n.to_bytes(4, "big") for n in numbers)
    journal = journal.ljust(512, b"\0")
    for number, page in enumerate(pages, start=1):
        check = 7 + sum(page[at] for at in range(size - 200, 0, -200))
        journal += number.to_bytes(4, "big") + page + check.to_bytes(4, "big")
    return journal


def test_a_process_that_dies_within_the_commit_leaves_a_ledger_that_opens(
    path: Path, tmp_path: Path
) -> None:
    """The first bytes are those of this version, until SQLite takes them back."""
    before = path.read_bytes()
    subprocess.run([sys.executable, "-c", DIES, str(path), "before the commit"], check=True)
    other = tmp_path / "other"
    other.mkdir()
    Ledger(first_version(other / "ledger.db"))
    path.write_bytes((other / "ledger.db").read_bytes())
    path.with_name("ledger.db-journal").write_bytes(hot_journal(before))
    assert not ledger_file.is_first(path)
    assert Ledger(path).spent() == 3_000_001
    assert not path.with_name("ledger.db-journal").exists()


def test_what_waits_has_one_length_from_then_on(tmp_path: Path) -> None:
    """The first version stored reports without the spaces that hide the digits of the cell."""
    reports = [Report("a" * 64, f"{k:032x}", cell, -cell) for k, cell in enumerate((0, 7, 123))]
    pending = {report.id: report.to_json() for report in reports}
    assert len({len(text) for text in pending.values()}) == 3
    waiting = Ledger(first_version(tmp_path / "ledger.db", pending)).pending()
    assert waiting == [report.to_body() for report in reports]


def test_two_processes_that_open_it_at_once_agree(path: Path) -> None:
    script = "import sys; from client_sdk import Ledger; print(Ledger(sys.argv[1]).spent())"
    command = [sys.executable, "-W", "error", "-c", script, str(path)]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert [child.communicate(timeout=60)[0] for child in children] == ["3000001\n"] * 4


def test_the_first_version_refuses_what_was_brought_to_this_one(path: Path) -> None:
    Ledger(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (ledger_file.VERSION,)
