"""The ledger when its file is missing, foreign, cut off or damaged."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from client_sdk import Ledger, LedgerError, ledger_file
from tests.support.draws import never

STOP = "keep the file and stop reporting: a new ledger would refill the budget; no report was given"
SECRET = "secret " * 100  # stands for a report, which no error message may quote


def draw(report_id: str) -> Callable[[], tuple[str, str]]:
    return lambda: (report_id, SECRET)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def used(path: Path) -> Ledger:
    """A ledger with three collections, reports that wait and pages that are free again."""
    ledger = Ledger.create(path, 8)
    for i in range(9):
        ledger.spend_once(f"visit {i}", f"collection {i % 3}", 1_000, None, draw(f"{i:032x}"))
    ledger.acknowledge(f"{i:032x}" for i in range(4))
    return ledger


@pytest.fixture
def whole(used: Ledger, path: Path) -> bytes:
    return path.read_bytes()


def refuses(ledger: Ledger, path: Path, message: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: Ledger(path),
        lambda: ledger.spend("c", 1, None, never),
        lambda: ledger.acknowledge("1"),
        ledger.pending,
        ledger.spent,
        ledger.remaining,
    ]
    for call in calls:
        with pytest.raises(LedgerError, match=message):
            call()


def test_a_deleted_ledger_is_not_made_anew(used: Ledger, path: Path) -> None:
    path.unlink()
    refuses(
        used,
        path,
        "no such file; Device.install .Ledger.create. makes one when the app is",
    )
    assert not path.exists()


def test_a_ledger_deleted_while_it_is_opened_is_not_made_anew(
    used: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.unlink()
    monkeypatch.setattr(
        "client_sdk.ledger_file._is_file", lambda _: True
    )  # it was there a moment ago
    refuses(used, path, "No such file or directory; Device.install .Ledger.create. makes one")
    assert not path.exists()


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_text(path: Path) -> None:
    path.write_text("spent: nothing\n" * 100)


def make_zeros(path: Path) -> None:
    path.write_bytes(bytes(16384))


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def make_newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 3")


def make_foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE caps (device, collection, checksum)")


def make_free_page_in_use(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[32:40] = bytes([0, 0, 0, 3, 0, 0, 0, 1])  # "page 3 is free": the next write takes it
    path.write_bytes(content)


def make_unreadable_schema(path: Path) -> None:
    name = b"tablepending"  # type and name in SQLite's own table
    path.write_bytes(path.read_bytes().replace(name, b"tablepend\xe4ng"))


@pytest.mark.parametrize(
    ("replace", "message"),
    [
        (make_free_page_in_use, f"cut off or damaged; {STOP}"),
        (make_unreadable_schema, STOP),
        (make_empty, f"empty, cut off or not a ledger of version 2; {STOP}"),
        (make_text, f"not a database; {STOP}"),
        (make_zeros, STOP),
        (make_newer, f"not a ledger of version 2; {STOP}"),
        (make_foreign, f"not a ledger of version 2; {STOP}"),
        (make_folder, "no such file"),
        pytest.param(
            make_pipe,
            "no such file",
            marks=pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes"),
        ),
    ],
)
def test_another_kind_of_file_is_refused_and_left_alone(
    used: Ledger, path: Path, replace: Callable[[Path], None], message: str
) -> None:
    replace(path)
    before = path.read_bytes() if path.is_file() else None
    refuses(used, path, message)
    assert before == (path.read_bytes() if path.is_file() else None)


def test_a_ledger_cut_off_anywhere_gives_no_report(used: Ledger, path: Path, whole: bytes) -> None:
    anywhere = np.random.default_rng(7).integers(len(whole), size=50)
    for cut in [*range(0, len(whole), 512), 1, 99, len(whole) - 1, *anywhere]:
        path.write_bytes(whole[:cut])
        refuses(used, path, "stop reporting")
        assert path.stat().st_size == cut
    path.write_bytes(whole + bytes(4096))
    refuses(used, path, "stop reporting")


def is_as_before_or_refuses(path: Path) -> str:
    try:
        ledger = Ledger(path)
        assert (ledger.spent(), ledger.spent("collection 1")) == (9_000, 3_000)
        assert (ledger.remaining(), ledger.remaining("collection 0")) == (7_991_000, 7_991_000)
        assert ledger.pending() == [SECRET] * 5
        ledger.spend("collection 0", 1_000, None, draw("new"))
        assert (ledger.spent(), len(ledger.pending())) == (10_000, 6)
    except LedgerError as error:
        return f"{error} {error.__cause__}"
    return "as before"


def test_a_flipped_bit_is_refused_or_without_effect(path: Path, whole: bytes) -> None:
    rng = np.random.default_rng(8)
    answers = set()
    count = path.with_name("ledger.db.count")
    (commits,) = count.iterdir()
    for place in [*range(100), *rng.integers(100, len(whole), size=100)]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        next(count.iterdir()).rename(commits)
        answers.add(is_as_before_or_refuses(path))
        path.with_name("ledger.db-journal").unlink(missing_ok=True)
    assert "as before" in answers
    refusals = answers - {"as before"}
    assert len(refusals) > 3
    assert all("no report was given" in answer for answer in refusals)
    assert not any("secret" in answer for answer in refusals)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE spending SET micro_epsilon = 1",
        "UPDATE spending SET micro_epsilon = 2.5",
        "UPDATE spending SET micro_epsilon = x'00'",
        "UPDATE spending SET account = 'other' WHERE account = 'collection 1'",
        "DELETE FROM spending WHERE account = 'collection 1'",
        "DELETE FROM events",
        "UPDATE events SET report_id = NULL",
        "UPDATE pending SET number = number + 1",
        "UPDATE pending SET event = NULL",
        "UPDATE head SET waiting = waiting + 1",
        "UPDATE head SET commits = commits - 1",
        "INSERT INTO joined VALUES ('digest', 'text', NULL, x'00')",
        "DELETE FROM pending",
        "UPDATE head SET device_cap = device_cap + 1",
        "UPDATE head SET checksum = NULL",
        "UPDATE pending SET report = CAST(x'ff' AS TEXT)",
        "DELETE FROM head",
        "INSERT INTO head SELECT * FROM head",
        "INSERT INTO spending VALUES ('more', 1, x'00')",
        "DROP TABLE spending",
    ],
)
def test_rows_that_do_not_match_their_checksum_are_refused(
    used: Ledger, path: Path, statement: str
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    refuses(used, path, "stop reporting")


@pytest.mark.parametrize("field", ["spent", "waiting"])
def test_a_head_that_does_not_add_up_is_refused_though_its_checksum_is_right(
    used: Ledger, path: Path, field: str
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        head = ledger_file._read_head(connection)
        other = head._replace(**{field: getattr(head, field) - 1})
        ledger_file._write_head(connection, other)
    refuses(used, path, "stop reporting")
