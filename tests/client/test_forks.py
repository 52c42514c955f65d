"""A ledger in processes that fork: no lock is left behind, and no report is given twice."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from client_sdk import Ledger, LedgerError, file_lock, forks
from tests.support.draws import draw
from tests.support.scripts import needs_fork, run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@needs_fork
@pytest.mark.parametrize("parent_waits", [True, False])
@pytest.mark.parametrize("caller", ["the main thread", "another"])
def test_a_fork_during_a_call_gives_one_report_and_not_two(
    path: Path, tmp_path: Path, caller: str, parent_waits: bool
) -> None:
    ledger = Ledger.create(path, 8)
    told = tmp_path / "child"

    def fork() -> tuple[str, str]:
        child = os.fork()
        if child:
            children.append(child)
            if parent_waits:
                os.waitpid(child, 0)
            return "1", "report 1"
        return "2", "report 2"

    children: list[int] = []
    parent = os.getpid()
    given: list[str] = []

    def spend() -> None:
        try:
            report = ledger.spend("c", 1, None, fork)
        except LedgerError as error:
            if os.getpid() == parent:
                raise
            told.write_text(str(error))
            os._exit(0)
        if os.getpid() != parent:
            told.write_text("given")
            os._exit(0)
        given.append(report)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside a thread
        if caller == "the main thread":
            spend()
        else:
            thread = threading.Thread(target=spend)
            thread.start()
            thread.join()
    if not parent_waits:
        os.waitpid(children[0], 0)
    assert given == ["report 1"]
    assert "dropped by a fork" in told.read_text()
    assert (ledger.spent(), ledger.pending()) == (1, ["report 1"])


FORKED = """
import os, signal, sys, threading, time
from client_sdk import Ledger, file_lock
if sys.argv[3] == "record locks":  # as on macOS: SQLite's own, which it notes in its memory
    file_lock._OFD_SETLK = None
path = sys.argv[1]
ledger = Ledger(path)
drawing, forked = threading.Event(), threading.Event()

def draw():
    drawing.set()
    forked.wait()
    return "1", "report 1"

thread = threading.Thread(target=lambda: ledger.spend("c", 1, None, draw))
thread.start()
drawing.wait()
file_lock.LOCK_SECONDS = 0.5  # the fork waits in vain for the call to end
child = os.fork()
file_lock.LOCK_SECONDS = 20
if child == 0:
    if sys.argv[2] == "uses it":
        ledger.spend("c", 1, None, lambda: ("2", "report 2"))
    else:
        sys.stdin.read()
    os._exit(0)
if sys.argv[2] == "uses it":
    forked.set()
    thread.join()
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@needs_fork
@pytest.mark.parametrize("locks", ["locks of the open file", "record locks"])
def test_a_child_forked_while_a_thread_draws_can_use_the_ledger(path: Path, locks: str) -> None:
    ledger = Ledger.create(path, 8)
    run(FORKED, path, "uses it", locks)
    assert ledger.pending() == ["report 1", "report 2"]


@needs_fork
def test_a_forked_child_keeps_no_lock_of_a_parent_that_died(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "LOCK_SECONDS", 2.0)
    ledger = Ledger.create(path, 8)
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(path), "idles", ""]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE)
    parent.wait(timeout=60)
    try:
        assert ledger.spend("c", 1, None, draw("3")) == "report 3"
    finally:
        assert parent.stdin is not None
        parent.stdin.close()


SPENDS_AND_FORKS = """
import os, sys, threading, warnings
from client_sdk import Ledger

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
ledger = Ledger(sys.argv[1])
over = threading.Event()

def spend():
    report_id = os.urandom(16).hex()
    ledger.spend("c", 1, None, lambda: (report_id, "report " + report_id))

def spend_on():
    while not over.is_set():
        spend()

threads = [threading.Thread(target=spend_on) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(int(sys.argv[2])):
    child = os.fork()
    if child == 0:
        spend()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
over.set()
for thread in threads:
    thread.join()
print(ledger.spent() - ledger.waiting())
"""


@needs_fork
def test_children_forked_while_threads_spend_find_no_lock_of_theirs(path: Path) -> None:
    """Neither ours nor SQLite's own, which a thread that is not there would never give back."""
    Ledger.create(path, 8)
    assert run(SPENDS_AND_FORKS, path, 60) == "0\n"


READS = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN")
connection.execute("SELECT * FROM head").fetchall()
print("reads", flush=True)
time.sleep(60)
"""


@needs_fork
@pytest.mark.parametrize("waits_for", ["a reader", "the lock"])
def test_a_child_that_is_forked_while_a_call_waits_keeps_no_lock(
    path: Path, waits_for: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_lock, "LOCK_SECONDS", 5.0)
    ledger = Ledger.create(path, 8)
    held, other, done = contextlib.ExitStack(), None, []
    if waits_for == "a reader":
        other = subprocess.Popen(
            [sys.executable, "-c", READS, str(path)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "reads\n"
    else:
        held.enter_context(file_lock.locked(path.with_name("ledger.db.lock")))
    call = threading.Thread(target=lambda: done.append(ledger.spend("c", 1, None, draw("1"))))
    call.start()
    time.sleep(0.2)  # it waits now; if it did not, there would be nothing to find
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside a thread
        child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        held.close()
        if other is not None:
            other.kill()
            other.communicate(timeout=60)
        call.join(60)
        assert done == ["report 1"]
        assert ledger.spend("c", 1, None, draw("2")) == "report 2"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


# A signal in the middle of a fork

FORKS_UNDER_ALARMS = """
import os, random, signal, sys, threading, warnings
from client_sdk import Ledger, LedgerError

warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
sys.unraisablehook = lambda error: None  # Python says that it swallowed what a handler raised
ledger = Ledger(sys.argv[1])
over = threading.Event()

class Interrupted(Exception):
    pass

def interrupt(*_):
    raise Interrupted

def spend():
    report_id = os.urandom(16).hex()
    ledger.spend("c", 1, None, lambda: (report_id, "report " + report_id))

def spend_on():
    while not over.is_set():
        spend()

signal.signal(signal.SIGALRM, interrupt if sys.argv[2] == "raises" else lambda *_: ledger.spent())
thread = threading.Thread(target=spend_on)
if sys.argv[4] == "beside a thread":
    thread.start()
rng = random.Random(8)
parent = os.getpid()
for _ in range(int(sys.argv[3])):
    child = None
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00001, 0.002))
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            try:
                spend()
            except LedgerError as error:  # the fork was interrupted and did not wait
                assert "dropped by a fork" in str(error), error
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except Interrupted:
        if os.getpid() != parent:
            os._exit(0)
    while child:
        try:
            assert os.waitpid(child, 0)[1] == 0
            child = None
        except Interrupted:
            pass
    try:
        spend()
    except Interrupted:
        pass
over.set()
if thread.ident:
    thread.join()
print("done")
"""


@needs_fork
@pytest.mark.parametrize("beside", ["alone", "beside a thread"])
@pytest.mark.parametrize("handler", ["raises", "calls"])
def test_a_signal_during_a_fork_stops_no_later_call(path: Path, handler: str, beside: str) -> None:
    """Random moments: one in eight forks of the first 600 was interrupted."""
    ledger = Ledger.create(path, 8)
    number = 150 if beside == "alone" else 60  # which take longer there
    assert run(FORKS_UNDER_ALARMS, path, handler, number, beside) == "done\n"
    assert ledger.spent() == ledger.waiting() > 0


FORKED_WITHOUT_WAITING = """
import os, signal, sys, threading, warnings
from client_sdk import Ledger, LedgerError, forks

warnings.simplefilter("ignore", DeprecationWarning)
sys.unraisablehook = lambda error: None
ledger = Ledger(sys.argv[1])
reads, over = threading.Event(), threading.Event()

def read():
    with forks.held_off():
        reads.set()
        over.wait()

def interrupt(*_):
    raise InterruptedError

threads = [threading.Thread(target=read)]
threads[0].start()
reads.wait()
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2)
child = os.fork()  # waits for the thread until the alarm
if child:
    over.set()
    assert os.waitpid(child, 0)[1] == 0
    ledger.spent()
    os._exit(0)
told = []

def spend():
    try:
        ledger.spend("c", 1, None, lambda: ("1", "report 1"))
        told.append("given")
    except LedgerError as error:
        told.append(str(error))

# New threads get the identifier of the one that was not forked.
threads = [threading.Thread(target=spend) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
spend()
os.write(1, "\\n".join(told).encode())
os._exit(0)
"""


@needs_fork
def test_a_child_that_was_forked_in_the_middle_of_a_call_is_refused(path: Path) -> None:
    """It would wait for ever for a lock of SQLite that a thread has which it lacks."""
    Ledger.create(path, 8)
    told = run(FORKED_WITHOUT_WAITING, path).splitlines()
    assert len(told) == 4
    assert all("dropped by a fork while a thread was in a call" in text for text in told)


FORKS_TWICE = """
import os, sys, warnings
from client_sdk import Ledger
ledger = Ledger(sys.argv[1])
for depth in range(3):
    child = os.fork()
    ledger.spend("c", 1, None, lambda: (f"{os.getpid()}-{depth}", f"report {os.getpid()}-{depth}"))
    if child:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@needs_fork
def test_children_of_children_use_the_ledger(path: Path) -> None:
    ledger = Ledger.create(path, 8)
    run(FORKS_TWICE, path)
    assert ledger.spent() == ledger.waiting() == 6


@needs_fork
def test_a_descriptor_that_other_code_closes_is_not_taken_for_ours(path: Path) -> None:
    path.touch()
    with forks.Opened(path) as first:
        os.close(first.descriptor)
        with forks.Opened(path) as second:
            assert second.descriptor == first.descriptor
            first.close()
            assert second.is_ours()
            assert not first.is_ours()
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(second.descriptor)


# In the thread that draws; whatever the child does first is left out, or cut short.
SILENT_FORK = """
import ctypes, functools, os, signal, sys, threading, time
how, path, child_s, parent_s = sys.argv[1:]
libc = ctypes.PyDLL(None)  # keeps the lock of the interpreter, for which the child would wait
if how == "a handler that raises":
    # In one step of the interpreter: Python then runs the handler before the next hook.
    interrupt = functools.partial(getattr(libc, "raise"), int(signal.SIGUSR1))
    os.register_at_fork(after_in_child=interrupt)  # before those of the client
import client_sdk

def handler(*_):
    raise RuntimeError("the app is late")

signal.signal(signal.SIGUSR1, handler)
made = client_sdk.Ledger(path)

def draw():
    # Until the other thread waits for this one: while it waits for the interpreter it may have what
    # guards the interpreter's lock, and nobody would give that back in the child.
    time.sleep(0.1)
    is_child = not (libc.fork() if how == "C code" else os.fork())
    time.sleep(float(child_s if is_child else parent_s))
    who.append("child" if is_child else "parent")
    return f"id of {who[0]}", f"report of {who[0]}"

def work():
    try:
        told = made.spend("c", 1_000_000, None, draw)
    except client_sdk.LedgerError as error:
        told = f"refused: {error}"
    os.write(1, f"{who[0]}|{told}\\n".encode())  # at once: parent and child write to one pipe
    if who[0] == "child":
        os._exit(0)

who = []
thread = threading.Thread(target=work)
thread.start()
thread.join()
time.sleep(float(child_s) + 0.3)
"""


@needs_fork
@pytest.mark.skipif(sys.platform == "darwin", reason="fork of C code ends threads' locks there")
@pytest.mark.parametrize("how", ["a handler that raises", "C code"])
@pytest.mark.parametrize(("child_s", "parent_s"), [(0.0, 0.0), (0.0, 0.2), (0.2, 0.0)])
def test_a_child_that_nobody_told_of_the_fork_is_refused(
    path: Path, how: str, child_s: float, parent_s: float
) -> None:
    Ledger.create(path, 1)
    told = dict(
        line.split("|", 1)
        for line in run(SILENT_FORK, how, path, child_s, parent_s).splitlines()
        if "|" in line
    )
    assert told["child"].startswith("refused:")
    assert told["parent"] == "report of parent"
    assert Ledger(path).pending() == ["report of parent"]
