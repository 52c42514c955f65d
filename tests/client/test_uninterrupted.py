"""Calls of a ledger that the handlers of signals interrupt, and where the app's own code runs."""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from client_sdk import (
    Ledger,
    LedgerBusyError,
    LedgerUnavailableError,
    file_lock,
    forks,
    ledger_file,
    uninterrupted,
)
from tests.support.draws import never
from tests.support.scripts import needs_fork, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


INTERRUPTED = """
import os, signal, sys
from client_sdk import Ledger, LedgerError, file_lock
file_lock.LOCK_SECONDS = 1
ledger = Ledger(sys.argv[1])

class Interrupted(Exception):
    pass

def interrupt(*_):
    raise Interrupted

signal.signal(signal.SIGALRM, interrupt)
for k in range(int(sys.argv[2])):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + (k * 37 % 100) * 0.00002)
        while True:
            ledger.spent()
    except Interrupted:  # which is kept, with all that it refers to, until the block is left
        ledger.spent()
print(ledger.spent())
"""


@needs_fork
def test_an_interrupted_call_leaves_no_lock(path: Path) -> None:
    Ledger.create(path, 8)
    assert run(INTERRUPTED, path, 1500) == "0\n"


INTERRUPTED_WHILE_MADE = """
import random, signal, sys
from client_sdk import Ledger, LedgerError

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
rng = random.Random(3)
interrupted = 0
for k in range(int(sys.argv[2])):
    path = f"{sys.argv[1]}/{k}.db"
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.012))
        Ledger.create(path, 8)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
    try:
        ledger = Ledger.create(path, 8)
    except LedgerError:
        ledger = Ledger(path)
    assert ledger.spend("c", 1, None, lambda: ("1", "report 1")) == "report 1"
print(interrupted)
"""


@needs_fork
def test_a_ledger_whose_making_was_interrupted_is_there_in_full_or_can_be_made(
    tmp_path: Path,
) -> None:
    assert int(run(INTERRUPTED_WHILE_MADE, tmp_path, 200)) > 20


INTERRUPTED_WHILE_IT_DRAWS = """
import signal, sys, time
from client_sdk import Ledger, file_lock
file_lock.LOCK_SECONDS = 1
ledger = Ledger(sys.argv[1])

def interrupt(*_):
    raise KeyboardInterrupt

def draw():
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    time.sleep(60)

signal.signal(signal.SIGALRM, interrupt)
try:
    ledger.spend("c", 1, None, draw)
except KeyboardInterrupt as error:
    print(ledger.spent(), ledger.spend("c", 1, None, lambda: ("1", "report 1")))
"""


@needs_fork
def test_a_draw_that_is_interrupted_spends_nothing(path: Path) -> None:
    Ledger.create(path, 8)
    assert run(INTERRUPTED_WHILE_IT_DRAWS, path) == "0 report 1\n"


AT_THE_END = """
import atexit, os, sys
from client_sdk import Ledger, LedgerBusyError, file_lock, forks, ledger_file, uninterrupted
from tests.support.draws import never

class Reports:
    def __init__(self, ledger):
        self.ledger = ledger

    def __del__(self):
        os.write(1, f"deleted {self.ledger.spent()}\\n".encode())

ledger = Ledger(sys.argv[1])
atexit.register(lambda: os.write(1, f"exits {ledger.spent()}\\n".encode()))
sys.modules["keeps it to the end"] = Reports(ledger)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="modules are gone by then: an ImportError")
def test_a_call_while_python_is_ending_is_done(path: Path) -> None:
    Ledger.create(path, 8)
    assert run(AT_THE_END, path) == "exits 0\ndeleted 0\n"


# The app's own code runs in the thread that made the call


@pytest.mark.parametrize("caller", ["the main thread", "another"])
def test_draw_may_take_a_lock_that_its_caller_has(path: Path, caller: str) -> None:
    ledger = Ledger.create(path, 8)
    lock = threading.RLock()
    seen: list[object] = []

    def draw_under_the_lock() -> tuple[str, str]:
        with lock:
            seen.append(threading.current_thread())
            return "1", "report 1"

    def spend() -> None:
        with lock:
            seen.append(threading.current_thread())
            seen.append(ledger.spend("c", 1, None, draw_under_the_lock))

    if caller == "the main thread":
        spend()
    else:
        thread = threading.Thread(target=spend)
        thread.start()
        thread.join()
    assert seen[0] is seen[1]
    assert seen[2] == "report 1"


def test_draw_may_use_what_belongs_to_its_thread_and_context(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    of_thread, of_context = threading.local(), contextvars.ContextVar[str]("of_context")
    of_thread.value = "thread"
    of_context.set("context")

    def draw_from_all() -> tuple[str, str]:
        told = f"{of_thread.value} {of_context.get()} {type(asyncio.get_running_loop()).__name__}"
        of_context.set("set while drawing")
        return "1", told

    async def spend() -> tuple[str, str]:
        return ledger.spend("c", 1, None, draw_from_all), of_context.get()

    report, after = asyncio.run(spend())
    assert report.startswith("thread context ")
    assert report.endswith("EventLoop")
    assert after == "set while drawing"


def test_draw_may_use_another_ledger(path: Path) -> None:
    ledger, other = Ledger.create(path, 8), Ledger.create(path.with_name("other.db"), 8)

    def draw_both() -> tuple[str, str]:
        return "1", other.spend("c", 1, None, lambda: ("2", "report 2")) + " and 1"

    assert ledger.spend("c", 1, None, draw_both) == "report 2 and 1"
    assert (ledger.spent(), other.spent()) == (1, 1)


def test_what_draw_raises_is_raised_as_it_is(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    errors: list[BaseException] = [ValueError("mine"), SystemExit(3), KeyboardInterrupt()]
    for error in errors:

        def fail(error: BaseException = error) -> tuple[str, str]:
            raise error

        with pytest.raises(type(error)) as caught:
            ledger.spend("c", 1, None, fail)
        assert caught.value is error
    assert ledger.spent() == 0


def test_ids_may_come_from_code_that_takes_a_lock_of_the_caller(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    ledger.spend("c", 1, None, lambda: ("1", "report 1"))
    lock = threading.RLock()

    def ids() -> Iterator[str]:
        with lock:
            yield "1"

    with lock:
        ledger.acknowledge(ids())
    assert ledger.waiting() == 0


def start_none(*_: object) -> None:
    """Start a thread that ends before it does anything, as where memory is short."""


def refuse_to_start(*_: object) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("start", [start_none, refuse_to_start])
def test_a_call_is_refused_where_no_thread_can_start(
    path: Path, monkeypatch: pytest.MonkeyPatch, start: Callable[..., None]
) -> None:
    ledger = Ledger.create(path, 8)
    monkeypatch.setattr(uninterrupted, "BEGIN_SECONDS", 0.1)
    monkeypatch.setattr("_thread.start_new_thread", start)
    with pytest.raises(LedgerUnavailableError, match="no thread can start: end other threads"):
        ledger.spend("c", 1, None, never)
    monkeypatch.undo()
    assert ledger.spent() == 0


def test_a_call_whose_thread_ends_early_is_an_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(path, 8)
    monkeypatch.setattr(uninterrupted, "_Outcome", fail)
    monkeypatch.setattr("sys.unraisablehook", lambda _: None)
    with pytest.raises(MemoryError):
        ledger.spent()


# A handler that uses the ledger itself

CALLS_IN_A_HANDLER = """
import random, signal, sys, time
from client_sdk import Ledger, LedgerBusyError

ledger = Ledger(sys.argv[1])
numbers = iter(range(10**9))
given, refused, longest = [], 0, 0.0

def draw():
    k = next(numbers)
    return str(k), f"report {k}"

def report(*_):
    global refused, longest
    began = time.monotonic()
    try:
        given.append(ledger.spend("handler", 1, None, draw))
    except LedgerBusyError as error:  # the signal came while the main thread drew
        assert "locked by the call that this one came in between" in str(error), error
        refused += 1
    longest = max(longest, time.monotonic() - began)

signal.signal(signal.SIGALRM, report)
rng = random.Random(4)
for _ in range(int(sys.argv[2])):
    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0002, 0.004))
    given.append(ledger.spend("main", 1, None, draw))
signal.signal(signal.SIGALRM, signal.SIG_IGN)
print(sorted(given) == sorted(ledger.pending()), len(given) == ledger.spent())
# A draw takes a thousandth of a call: of 300 signals less than one meets it, and 30 none in 1e6.
print(refused <= 30, longest < 20)  # one that waits for the lock takes 20 s
"""


@needs_fork
def test_a_handler_may_use_the_ledger_in_the_middle_of_a_call(path: Path) -> None:
    """It waits for the call, which waits for its draw, which only this thread can do."""
    Ledger.create(path, 8)
    assert run(CALLS_IN_A_HANDLER, path, 300) == "True True\nTrue True\n"


@pytest.mark.parametrize("caller", ["the main thread", "another"])
def test_a_draw_that_uses_its_own_ledger_is_refused_at_once(path: Path, caller: str) -> None:
    ledger = Ledger.create(path, 8)
    told: list[str] = []

    def spend() -> None:
        with pytest.raises(
            LedgerBusyError, match="locked by the call that this one came in between"
        ):
            ledger.spend("c", 1, None, lambda: ("1", ledger.pending()[0]))
        told.append(ledger.spend("c", 1, None, lambda: ("1", "report 1")))

    if caller == "the main thread":
        spend()
    else:
        thread = threading.Thread(target=spend)
        thread.start()
        thread.join()
    assert told == ["report 1"]


@pytest.mark.parametrize("caller", ["the main thread", "another"])
def test_a_finaliser_within_a_call_is_refused_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, caller: str
) -> None:
    """Collected in the middle of a call, an object may want to report its end."""
    ledger = Ledger.create(path, 8)
    told: list[str] = []
    check = ledger_file.check_version

    def use_the_ledger(*arguments: Any) -> None:
        with pytest.raises(LedgerBusyError) as caught:
            ledger.waiting()
        told.append(str(caught.value))
        check(*arguments)

    monkeypatch.setattr(ledger_file, "check_version", use_the_ledger)
    if caller == "the main thread":
        ledger.spent()
    else:
        thread = threading.Thread(target=ledger.spent)
        thread.start()
        thread.join()
    assert len(told) == 1
    assert "locked by the call that this one came in between" in told[0]


def test_memory_that_fails_within_a_call_leaves_no_lock(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps the error, and whatever thread drops it."""
    ledger = Ledger.create(path, 8)
    kept = []
    steps = [
        (file_lock, "holding_off_sqlite"), (ledger_file, "leave_wal"), (ledger_file, "connect"),
        (ledger_file, "Transaction"), (file_lock.HeldLock, "check"),
    ]  # fmt: skip
    for place, name in steps:
        with monkeypatch.context() as patched:
            patched.setattr(place, name, fail)
            with pytest.raises(MemoryError) as caught:
                ledger.spend("c", 1, None, lambda: ("1", "report 1"))
            kept.append(caught.value)
        assert (forks._taken.times, forks._opened) == (0, {}), name
    assert ledger.spend("c", 1, None, lambda: ("1", "report 1")) == "report 1"


def fail(*_: object, **__: object) -> None:
    raise MemoryError
