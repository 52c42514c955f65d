"""The ledger on a disk that is full, read-only or fails in the middle of a commit."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from client_sdk import Ledger, LedgerUnavailableError, ledger_file
from tests.support.draws import draw

BESIDE = {"ledger.db", "ledger.db.lock", "ledger.db.count"}
ROOM = "check that the file and its folder are writable and that the disk has room; no report"


def run(script: str, path: Path) -> list[str]:
    command = [sys.executable, "-W", "error", "-c", script, str(path)]
    child = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return child.stdout.splitlines()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_commits_are_on_the_disk_before_they_return(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with closing(sqlite3.connect(path)) as connection:
        ledger_file.make_durable(connection)
        mode = connection.execute("PRAGMA journal_mode").fetchone()
        synchronous = connection.execute("PRAGMA synchronous").fetchone()
    assert (mode, synchronous) == (("delete",), (3,))  # 3 is EXTRA
    assert ledger.spend("c", 1, None, draw("1")) == "report 1"


class FailsBeforeCommit(sqlite3.Connection):
    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(statement, *values)


class FailsAfterCommit(sqlite3.Connection):
    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        cursor = super().execute(statement, *values)
        if statement == "COMMIT":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


@pytest.mark.parametrize(("failing", "counted"), [(FailsBeforeCommit, 0), (FailsAfterCommit, 1)])
def test_a_commit_that_fails_hands_nothing_out(
    path: Path, monkeypatch: pytest.MonkeyPatch, failing: type[sqlite3.Connection], counted: int
) -> None:
    ledger = Ledger.create(path, 8)
    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=failing))
        with pytest.raises(LedgerUnavailableError, match=f"disk I/O error; {ROOM}"):
            ledger.spend("c", 1, None, draw("1"))
    assert (ledger.spent(), len(ledger.pending())) == (counted, counted)


FULL_DISK = """
import resource, sys
from client_sdk import Ledger, LedgerError, LedgerUnavailableError

path = sys.argv[1]
ledger = Ledger.create(path, 8)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for i in range(60):
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * i, hard))  # no file may grow beyond this
    try:
        ledger.spend("c", 1, None, lambda: (f"{i:02d}", f"{i:02d}" + "x" * 3000))
        answer = f"{i:02d}"
    except LedgerUnavailableError as error:
        answer = str(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    print(answer)

resource.setrlimit(resource.RLIMIT_FSIZE, (2048, hard))
try:
    Ledger.create(path + "-new", 8)
except LedgerError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the size of files")
def test_a_full_disk_gives_an_error_and_no_report(path: Path) -> None:
    *answers, created = run(FULL_DISK, path)
    given = [answer for answer in answers if len(answer) == 2]
    refused = [answer for answer in answers if len(answer) > 2]
    assert len(given) >= 5
    assert len(refused) >= 20
    assert all(ROOM in answer for answer in [*refused, created])
    assert Ledger(path).spent() == len(given)
    assert [report[:2] for report in Ledger(path).pending()] == [
        i for i in given if int(i) % 2 == 0
    ]
    assert {entry.name for entry in path.parent.iterdir()} == BESIDE


READ_ONLY = """
import os, sys
import urllib.parse  # pathlib imports it late; the next lines may put it out of reach
from client_sdk import Ledger, LedgerError

if os.geteuid() == 0:
    os.seteuid(65534)  # permissions do not bind root
path = sys.argv[1]
for call in (
    lambda: Ledger(path).spend("c", 1, None, lambda: ("1", "report 1")),
    lambda: Ledger.create(path + "-new", 8),
):
    try:
        print("given", call())
    except LedgerError as error:
        print(error)
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, unlike the test's own."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
        os.chmod(name, 0o700)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs permissions of files")
@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o444, 0o555), (0o666, 0o555), (0, 0o555)])
def test_a_read_only_file_or_folder_gives_an_error_and_no_report(
    open_folder: Path, file_mode: int, folder_mode: int
) -> None:
    path = open_folder / "ledger.db"
    ledger = Ledger.create(path, 8)
    path.chmod(file_mode)
    open_folder.chmod(folder_mode)
    answers = run(READ_ONLY, path)
    assert len(answers) == 2
    assert all(ROOM in answer for answer in answers)
    open_folder.chmod(0o700)
    path.chmod(0o600)
    assert (ledger.spent(), ledger.pending()) == (0, [])
    assert {entry.name for entry in open_folder.iterdir()} == BESIDE


NO_DESCRIPTORS = """
import resource, sys
from client_sdk import Ledger, LedgerUnavailableError

ledger = Ledger.create(sys.argv[1], 8)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
for number in range(3, 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))
    try:
        ledger.spend("c", 1, None, lambda: (str(number), f"report {number}"))
    except LedgerUnavailableError as error:
        assert "close files or free memory" in str(error) or "few files are open" in str(error)
        print("refused")
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
print(ledger.spent() == ledger.waiting() > 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on the number of files")
def test_too_many_open_files_are_a_failure_that_passes(path: Path) -> None:
    *refused, right = run(NO_DESCRIPTORS, path)
    assert len(refused) >= 3
    assert right == "True"
