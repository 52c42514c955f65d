"""Speed of the device's ledger, with few and with many reports waiting."""

import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

from client_sdk import Ledger
from experiments.benchmarks.timing import Table

FEW, MANY = 10, 10_000
ROUNDS = 61
AT_ONCE = 2000
BODY = "x" * 192


def ledger() -> Table:
    """Time calls at 10 and at 10,000 waiting reports in turn, and a bare SQLite insert beside them.

    The alternative writes a row of the same size with the same durability and nothing else: no
    lock of its own, no checksum, no budget, no event.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        few, few_ids = _filled(folder / "few.db", FEW)
        many, many_ids = _filled(folder / "many.db", MANY)
        calls: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "`Ledger.spend_once`": (lambda: _spend(few, few_ids), lambda: _spend(many, many_ids)),
            "`Ledger.acknowledge`, one report": (
                lambda: few.acknowledge(few_ids.pop()), lambda: many.acknowledge(many_ids.pop())
            ),
            "`Ledger.pending(10)`": (lambda: few.pending(10), lambda: many.pending(10)),
        }  # fmt: skip
        bare = folder / "bare.db"
        with closing(sqlite3.connect(bare)) as connection:
            connection.execute("CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID")
        taken: dict[str, list[list[float]]] = {call: [[], []] for call in calls}
        inserts = []
        for _ in range(ROUNDS):
            for call, pair in calls.items():
                for side, each in zip(taken[call], pair, strict=True):
                    side.append(_once(each))
            inserts.append(_once(lambda: _insert(bare)))
        rows: list[list[object]] = []
        for call, (at_few, at_many) in taken.items():
            rows.append(
                [call, _ms(at_few), _ms(at_many), f"{median(at_many) / median(at_few):.2f}",
                 _ms(inserts) if "pending" not in call else ""]
            )  # fmt: skip
        whole = _once(lambda: many.acknowledge(many_ids[:AT_ONCE]))
        rows.append([f"`Ledger.acknowledge`, {AT_ONCE} reports in one call", "",
                     f"{whole * 1e3:.0f} ms", "", _ms(inserts)])  # fmt: skip
    return ["what", f"{FEW} waiting", f"{MANY} waiting", "ratio", "a bare SQLite insert"], rows


def _filled(path: Path, waiting: int) -> tuple[Ledger, list[str]]:
    ledger = Ledger.create(path, 10**6)
    ids: list[str] = []
    for _ in range(waiting):
        _spend(ledger, ids)
    return ledger, ids


def _spend(ledger: Ledger, ids: list[str]) -> None:
    report_id = os.urandom(16).hex()
    ledger.spend_once(report_id, "c", 1, None, lambda: (report_id, BODY))
    ids.append(report_id)


def _insert(path: Path) -> None:
    """Open the file anew, as the ledger does, and commit one row with the same durability."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("INSERT INTO t VALUES (?, ?)", (os.urandom(16).hex(), BODY))


def _once(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _ms(times: list[float]) -> str:
    return f"{median(times) * 1e3:.1f} ms"
