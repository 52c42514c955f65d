"""The ledger's rules: what is spent, what is refused, what is kept."""

import os
import sqlite3
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from client_sdk import (
    AlreadyGivenError,
    BudgetError,
    ClientError,
    Ledger,
    LedgerError,
    ParameterError,
)
from tests.support.draws import draw, never

EPSILON = 10**6  # micro-epsilons


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


def test_a_report_is_stored_with_its_spending_and_both_survive_a_restart(path: Path) -> None:
    assert Ledger.create(path, 8).spend("c", 3 * EPSILON, None, draw("1")) == "report 1"
    again = Ledger(str(path))
    assert (again.spent(), again.spent("c"), again.spent("other")) == (3 * EPSILON, 3 * EPSILON, 0)
    assert (again.remaining(), again.remaining("c")) == (5 * EPSILON, 5 * EPSILON)
    assert again.pending() == ["report 1"]


def test_many_reports_are_acknowledged_or_discarded_at_once(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    for report_id in "abcdef":
        ledger.spend("c", 1, None, draw(report_id))
    ledger.acknowledge(name for name in ("b", "never seen", "d", "b"))
    ledger.discard(["a", "d"])
    assert ledger.pending() == ["report c", "report e", "report f"]
    assert (ledger.pending(2), ledger.pending(0)) == (["report c", "report e"], [])
    assert (ledger.waiting(), ledger.discarded(), ledger.spent()) == (3, 1, 6)
    assert ledger.discard_newest(2) == 1
    assert (ledger.pending(), ledger.discarded()) == (["report c", "report e"], 2)
    assert ledger.discard_newest(2) == 0
    ledger.acknowledge([])
    for bad in (-1, 1.0, True):
        with pytest.raises(ParameterError, match="limit must be a whole number"):
            ledger.pending(bad)  # type: ignore[arg-type]


def test_one_bad_id_among_many_changes_nothing(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    ledger.spend("c", 1, None, draw("a"))
    with pytest.raises(ParameterError, match=r"report id must (be a text|not be empty|hold no)"):
        ledger.acknowledge(["a", ""])
    assert ledger.pending() == ["report a"]


def test_an_acknowledged_report_is_forgotten_and_its_spending_is_not(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    for report_id in ("b", "a", "c"):
        ledger.spend("c", EPSILON, None, draw(report_id))
    assert ledger.pending() == ["report a", "report b", "report c"]  # not the order of drawing
    for _ in range(2):
        ledger.acknowledge("b")
    ledger.acknowledge("never seen")
    assert (ledger.pending(), ledger.spent()) == (["report a", "report c"], 3 * EPSILON)


@pytest.mark.parametrize(
    ("caps", "collection", "limit", "asked", "message"),
    [
        ((8,), "x", None, 5_000_001, "over all collections is 8 epsilon: 3 spent, 5.000001 asked"),
        ((8, 4), "used", None, 2_000_000, "one collection is 4 epsilon: 3 spent, 2 asked, 1 left"),
        ((8, 4), "x", 500_000, EPSILON, "sets .* is 0.5 epsilon: 0 spent, 1 asked, 0.5 left"),
        ((8,), "used", EPSILON, 1, "sets .* 3 spent, 0.000001 asked, 0 left; no report was given"),
        ((10, 10), "x", None, 10_000_000, "all collections is 10 epsilon: 3 spent, 10 asked"),
    ],
)
def test_a_cap_refuses_before_anything_is_drawn_and_says_which(
    path: Path, caps: tuple[int, ...], collection: str, limit: int | None, asked: int, message: str
) -> None:
    ledger = Ledger.create(path, *caps)
    ledger.spend("used", 3 * EPSILON, None, draw("1"))
    with pytest.raises(BudgetError, match=message):
        ledger.spend(collection, asked, limit, never)
    assert (ledger.spent(), ledger.pending()) == (3 * EPSILON, ["report 1"])


def test_the_last_micro_epsilon_can_be_spent_and_no_more(path: Path) -> None:
    ledger = Ledger.create(path, "0.000003", "0.000002")
    ledger.spend("a", 2, 2, draw("1"))
    assert (ledger.remaining(), ledger.remaining("a"), ledger.remaining("b")) == (1, 0, 1)
    ledger.spend("b", 1, None, draw("2"))
    with pytest.raises(BudgetError):
        ledger.spend("b", 1, None, never)


@pytest.mark.parametrize(
    ("cap", "micro"),
    [
        (8, 8_000_000),
        (0.7, 700_000),  # the float holds less than 7/10
        (0.1 + 0.2, 300_000),
        ("1e-6", 1),
        ("0.0000019", 1),
        (Decimal("1.9999999"), 1_999_999),
        (Decimal("1." + "9" * 60), 1_999_999),
        (1e6, 10**12),
        ("1E+6", 10**12),
        (Fraction(1, 3), 333_333),
    ],
)
def test_a_cap_is_read_as_written_and_rounded_down(path: Path, cap: object, micro: int) -> None:
    assert Ledger.create(path, cap).remaining() == micro


@pytest.mark.parametrize(
    "cap",
    [0, -1, True, None, "x", "", float("nan"), float("inf"), 1e-7, Decimal("0." + "9" * 40 + "e-6"),
     "1000000.000001", 1e7, "1e999999", "1e-999999", Decimal("sNaN"), [1], b"1",
     "1_0", "\u0663", " 3", "3 ", "+3", "-3", "nan"],
)  # fmt: skip
def test_a_bad_cap_is_refused_and_makes_no_file(path: Path, cap: object) -> None:
    with pytest.raises(
        ParameterError, match=r"cap_epsilon must be a number from 0\.000001 to 1000000, got"
    ):
        Ledger.create(path, cap)
    assert not path.exists()


def test_a_collection_cap_above_the_cap_is_refused(path: Path) -> None:
    with pytest.raises(ParameterError, match="collection_cap_epsilon must not exceed cap_epsilon"):
        Ledger.create(path, 1, 1.5)
    with pytest.raises(ParameterError, match="collection_cap_epsilon must be a number"):
        Ledger.create(path, 1, 0)


@pytest.mark.parametrize("micro", [0, -1, 10**9 + 1, 2**63, 1.0, "1", True, None])
def test_bad_spending_is_refused(path: Path, micro: Any) -> None:
    ledger = Ledger.create(path, 10**6)
    with pytest.raises(ParameterError, match="micro_epsilon must be a whole number"):
        ledger.spend("c", micro, None, never)
    assert ledger.spent() == 0


@pytest.mark.parametrize("limit", [-1, 10**18 + 1, 1.0, "1", True])
def test_a_bad_limit_of_a_collection_is_refused(path: Path, limit: Any) -> None:
    with pytest.raises(ParameterError, match="collection_limit must be a whole number"):
        Ledger.create(path, 10**6).spend("c", 1, limit, never)


@pytest.mark.parametrize("name", ["", None, 1, b"c", "\ud800"])
def test_a_bad_name_is_refused(path: Path, name: Any) -> None:
    ledger = Ledger.create(path, 8)
    with pytest.raises(ParameterError, match=r"collection must (be a text|not be empty|hold no)"):
        ledger.spend(name, 1, None, never)
    with pytest.raises(ParameterError, match=r"report id must (be a text|not be empty|hold no)"):
        ledger.acknowledge(name)
    for drawn in ((name, "report"), ("1", name)):
        with pytest.raises(ParameterError, match=r"report.* must (be a text|not be empty|hold no)"):
            ledger.spend("c", 1, None, lambda drawn=drawn: drawn)  # type: ignore[misc]
    assert (ledger.spent(), ledger.pending()) == (0, [])


@pytest.mark.parametrize("error", [ValueError, OSError, sqlite3.Error, KeyboardInterrupt])
def test_a_draw_that_fails_costs_nothing_and_its_error_passes(
    path: Path, error: type[BaseException]
) -> None:
    def broken() -> tuple[str, str]:
        raise error("from the draw")

    ledger = Ledger.create(path, 8)
    with pytest.raises(error, match=r"^from the draw$"):
        ledger.spend("c", 1, None, broken)
    assert (ledger.spent(), ledger.pending()) == (0, [])


def test_a_report_id_that_waits_already_is_refused(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    ledger.spend("c", 1, None, draw("1"))
    with pytest.raises(ParameterError, match="report id must be new"):
        ledger.spend("c", 1, None, lambda: ("1", "another report"))
    assert (ledger.spent(), ledger.pending()) == (1, ["report 1"])


@pytest.mark.parametrize("bad", ["", ":memory:", None, 3, b"ledger.db", "a\0b"])
def test_a_path_that_names_no_file_is_refused(bad: Any) -> None:
    for call in (Ledger, lambda path: Ledger.create(path, 8)):
        with pytest.raises(ParameterError, match="path must name a file"):
            call(bad)


@pytest.mark.parametrize("name", ["a?mode=memory&x=#1", "per%20cent", "Größe 東京.db", "file:x"])
def test_any_file_name_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.create(name, 8)  # a relative path is fixed when the ledger is opened
    monkeypatch.chdir("elsewhere")
    ledger.spend("c", 1, None, draw("1"))
    beside = [name, f"{name}.count", f"{name}.lock", "elsewhere"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(beside)
    os.symlink(tmp_path / name, "link")
    Ledger("link").spend("c", 1, None, draw("2"))
    assert Ledger(tmp_path / name).spent() == 2


def test_create_refuses_whatever_is_there(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "ledger", 8).spend("c", 1, None, draw("1"))
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("ledger", "empty", "folder", "dangling"):
        with pytest.raises(LedgerError, match=f"{name}: File exists; open it by"):
            Ledger.create(tmp_path / name, 8)
    assert Ledger(tmp_path / "ledger").spent() == 1
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(LedgerError, match="No such file or directory"):
        Ledger.create(tmp_path / "missing" / "ledger", 8)


def test_the_file_holds_caps_spending_and_reports_and_nothing_else(path: Path) -> None:
    Ledger.create(path, 8).spend("c", 1, None, draw("1"))
    connection = sqlite3.connect(path)
    columns = {
        table: [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
        ).fetchall()
    }
    connection.close()
    assert columns == {
        "head": [
            "device_cap", "collection_cap", "key", "lock_inode", "lock_changed_ns", "file_inode",
            "file_generation", "count_inode", "count_generation", "commits",
            "spent", "drawn", "waiting", "discarded", "content", "checksum",
        ],
        "spending": ["account", "micro_epsilon", "checksum"],
        "pending": ["report_id", "number", "report", "event", "checksum"],
        "events": ["event", "report_id", "checksum"],
        "joined": ["digest", "document", "windows", "checksum"],
    }  # fmt: skip
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0


class LedgerAgainstModel(RuleBasedStateMachine):
    """Any sequence of calls and restarts answers as two dictionaries would."""

    caps = (5_000, 3_000)
    accounts = ("a", "b", "ü", "unused")
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.file = self.folder / os.urandom(8).hex()
        self.ledger = Ledger.create(self.file, "0.005", "0.003")
        self.spending: dict[str, int] = {}
        self.reports: dict[str, str] = {}
        self.events: dict[tuple[str, str], str | None] = {}  # report id while it waits
        self.discarded = 0
        self.turn = 0

    @rule(
        name=st.sampled_from(["a", "b", "ü"]),
        micro=st.integers(1, 2_000),
        limit=st.none() | st.integers(0, 4_000),
        report_id=st.text(min_size=1, max_size=3),
        report=st.text(min_size=1),
    )
    def spend(self, name: str, micro: int, limit: int | None, report_id: str, report: str) -> None:
        here = self.spending.get(name, 0) + micro
        refused = (
            sum(self.spending.values()) + micro > self.caps[0]
            or here > self.caps[1]
            or (limit is not None and here > limit)
        )
        error = BudgetError if refused else ParameterError if report_id in self.reports else None
        if error is not None:
            with pytest.raises(error):
                self.ledger.spend(name, micro, limit, lambda: (report_id, report))
            return
        assert self.ledger.spend(name, micro, limit, lambda: (report_id, report)) == report
        self.spending[name] = here
        self.reports[report_id] = report

    @rule(
        name=st.sampled_from(["a", "b"]),
        event=st.sampled_from(["1", "12", "a", "\N{BICYCLE}"]),
        micro=st.integers(1, 900),
    )
    def spend_once(self, name: str, event: str, micro: int) -> None:
        new, report_id = (name, event) not in self.events, os.urandom(8).hex()
        here = self.spending.get(name, 0) + micro
        refused = sum(self.spending.values()) + micro > self.caps[0] or here > self.caps[1]

        def call() -> str:
            return self.ledger.spend_once(event, name, micro, None, lambda: (report_id, report_id))

        if new and refused:
            with pytest.raises(BudgetError):
                call()
        elif new:
            assert call() == report_id
            self.spending[name] = here
            self.reports[report_id] = report_id
            self.events[name, event] = report_id
        elif (waits := self.events[name, event]) is not None:
            assert call() == waits
        else:
            with pytest.raises(AlreadyGivenError):
                call()

    @precondition(lambda self: self.reports)
    @rule(data=st.data(), discards=st.booleans())
    def forget(self, data: st.DataObject, discards: bool) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.reports)), min_size=1, unique=True))
        (self.ledger.discard if discards else self.ledger.acknowledge)([*ids, "never seen"])
        for report_id in ids:
            del self.reports[report_id]
        self.discarded += len(ids) if discards else 0
        gone = [key for key, waits in self.events.items() if waits in ids]
        self.events.update(dict.fromkeys(gone))

    @rule()
    def restart(self) -> None:
        self.ledger = Ledger(self.file)

    @invariant()
    def answers_match(self) -> None:
        """Ask for the sums after each call, and for one account and one event in turn."""
        total = sum(self.spending.values())
        assert (self.ledger.spent(), self.ledger.remaining()) == (total, self.caps[0] - total)
        assert self.ledger.pending() == [report for _, report in sorted(self.reports.items())]
        assert self.ledger.waiting() == len(self.reports)
        assert self.ledger.discarded() == self.discarded
        self.turn += 1
        self.account_matches(self.accounts[self.turn % len(self.accounts)])
        if self.events:
            self.event_was_given(*list(self.events)[self.turn % len(self.events)])

    def teardown(self) -> None:
        """Ask for all of them in the end."""
        for account in self.accounts:
            self.account_matches(account)
        for name, event in self.events:
            self.event_was_given(name, event)

    def account_matches(self, name: str) -> None:
        total, here = sum(self.spending.values()), self.spending.get(name, 0)
        assert self.ledger.spent(name) == here
        assert self.ledger.remaining(name) == min(self.caps[0] - total, self.caps[1] - here)

    def event_was_given(self, name: str, event: str) -> None:
        assert not self.ledger.would_draw(event, name, 1, None)


def test_any_sequence_of_calls_matches_the_model(tmp_path: Path) -> None:
    class Machine(LedgerAgainstModel):
        folder = tmp_path

    short = settings(max_examples=20, stateful_step_count=20)
    run_state_machine_as_test(Machine, settings=short)


def test_every_error_of_the_ledger_is_a_client_error() -> None:
    assert issubclass(LedgerError, ClientError)
    assert issubclass(BudgetError, ClientError)


def test_a_report_that_arrived_is_overwritten_in_the_file(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    text = ledger.spend("c", 1, None, lambda: ("01", "planted report 7f3a"))
    assert text.encode() in path.read_bytes()
    ledger.acknowledge("01")
    assert text.encode() not in path.read_bytes()
