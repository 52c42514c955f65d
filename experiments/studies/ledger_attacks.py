"""Attacks on the ledger's lock: other code reads the file, processes race, processes are killed.

Whatever code of a process opens and closes the ledger file drops SQLite's lock on it. So every
process here has a thread that does nothing else, while two processes spend from one ledger.
"""

import json
import random
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from client_sdk import Ledger
from experiments.progress import tracked

# A process with a thread that reads its own ledger file. It appends a line a report, in one write,
# so lines of two processes do not mix.
WORKER = """
import os, sys, threading
from client_sdk import BudgetError, Ledger, LedgerError

path, log, acknowledges = sys.argv[1], sys.argv[2], sys.argv[3] == "1"

def read_the_ledger_file():
    while True:
        with open(path, "rb") as file:
            file.read(16)

threading.Thread(target=read_the_ledger_file, daemon=True).start()
out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
ledger = Ledger(path)
while True:
    report_id = os.urandom(16).hex()
    try:
        ledger.spend("c", 1, None, lambda: (report_id, "report " + report_id))
        os.write(out, (report_id + "\\n").encode())
        if acknowledges and report_id[0] == "0":
            ledger.acknowledge(report_id)
            os.write(out, ("acknowledged " + report_id + "\\n").encode())
    except BudgetError:
        break
    except LedgerError as error:
        os.write(out, ("error " + str(error).replace("\\n", " ") + "\\n").encode())
        break
"""


@dataclass(frozen=True)
class Outcome:
    """What an attack left.

    Attributes
    ----------
    given : int
        Reports that left a process.
    counted : int
        Reports that the ledger counted.
    uncounted : int
        Reports that left a process and are unknown to the ledger.
    errors : tuple of str
        Errors that a process met, and "damaged" where the ledger does not open any more.
    """

    given: int
    counted: int
    uncounted: int
    errors: tuple[str, ...]


def race(folder: Path, cap: int = 100) -> Outcome:
    """Let two processes, each with a reading thread, spend from one ledger up to its cap."""
    path = folder / "ledger.db"
    log = folder / "log"
    Ledger.create(path, f"{cap}e-6")
    workers = [_worker(path, log, acknowledges=False) for _ in range(2)]
    for worker in workers:
        worker.wait(timeout=120)
    return _outcome(path, log)


def kills(folder: Path, number: int, seed: int) -> Outcome:
    """Kill one of two such processes at random moments, ``number`` times, and start it again."""
    path = folder / "ledger.db"
    log = folder / "log"
    Ledger.create(path, 8)
    moments = random.Random(seed)  # noqa: S311  (when to kill)
    workers = [_worker(path, log, acknowledges=True) for _ in range(2)]
    for _ in range(number):
        victim = moments.randrange(2)
        with suppress(subprocess.TimeoutExpired):
            workers[victim].wait(moments.uniform(0.0, 0.25))  # starting takes about half of it
        workers[victim].kill()
        workers[victim].wait()
        workers[victim] = _worker(path, log, acknowledges=True)
    for worker in workers:
        worker.kill()
        worker.wait()
    return _outcome(path, log)


def _worker(path: Path, log: Path, acknowledges: bool) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", WORKER, str(path), str(log), str(int(acknowledges))]
    return subprocess.Popen(command)


def _outcome(path: Path, log: Path) -> Outcome:
    lines = log.read_text().splitlines() if log.exists() else []
    errors = [line.removeprefix("error ") for line in lines if line.startswith("error ")]
    done = {line.removeprefix("acknowledged ") for line in lines if line.startswith("ack")}
    given = [line for line in lines if " " not in line]
    try:
        ledger = Ledger(path)
        stored = {text.removeprefix("report ") for text in ledger.pending()}
        counted = ledger.spent()
    except OSError as error:
        return Outcome(len(given), 0, len(given), (*errors, f"damaged: {error}"))
    # A process may die after it acknowledged and before it said so: such a report is counted.
    unknown = [name for name in given if name not in stored | done and name[0] != "0"]
    missing = max(len(given) - counted, len(unknown), len(given) - len(set(given)))
    return Outcome(len(given), counted, missing, tuple(errors))


@click.command()
@click.option("--races", default=200, show_default=True, help="Races of two processes to a cap.")
@click.option("--kills", "number", default=500, show_default=True, help="Processes to kill.")
@click.option("--seed", default=1, show_default=True, help="Of the moments at which they die.")
def ledger_attacks(races: int, number: int, seed: int) -> None:
    """Race and kill processes that read their own ledger file; count what was not counted.

    Takes about a second a race and a fifth of a second a kill. Fails if a report left that the
    ledger did not count, a cap was passed, a ledger was damaged, or a call failed for no reason.
    """
    cap = 100
    found: list[Outcome] = []
    for _ in tracked(range(races), "races"):
        with tempfile.TemporaryDirectory() as folder:
            found.append(race(Path(folder), cap))
    passed = sum(each.given > cap or each.counted > cap for each in found)
    with tempfile.TemporaryDirectory() as folder:
        killed = kills(Path(folder), number, seed)
    result = {
        "races": races,
        "past the cap": passed,
        "below the cap": sum(each.given < cap for each in found),
        "uncounted in races": sum(each.uncounted for each in found),
        "errors in races": sorted({error for each in found for error in each.errors}),
        "kills": number,
        "given": killed.given,
        "counted": killed.counted,
        "uncounted": killed.uncounted,
        "errors": sorted(set(killed.errors)),
    }
    click.echo(json.dumps(result, indent=1))
    if passed or result["uncounted in races"] or killed.uncounted or result["errors in races"]:
        raise click.ClickException("the lock does not hold")
    if killed.errors:
        raise click.ClickException("a call failed for no reason")
