"""Processes that play for one that was killed end by themselves, and set its folder free."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ldpspatial.files.folder_lock import locked

ROOT = Path(__file__).parents[3]
HELD = """
import os, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from ldpspatial.comparison.folder import RunFolder
from ldpspatial.comparison.workers import end_with

def nap(folder):
    Path(folder, f"{os.getpid()}.pid").touch()
    time.sleep(600)

if __name__ == "__main__":
    runs, pids, start = sys.argv[1:]
    with (
        RunFolder(runs, {}, "root").held(),
        ProcessPoolExecutor(2, get_context(start), end_with, (os.getpid(),)) as pool,
    ):
        list(pool.map(nap, [pids] * 2))
"""
COMPARED = """
import os, sys, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import numpy as np
from client_sdk import Grid
from ldpspatial.comparison import compare
from tests.support.blurs import Blur

@dataclass(frozen=True)
class Nap(Blur):
    name: ClassVar[str] = "nap"
    pids: str = ""

    def release(self, users, epsilon, rng):
        Path(self.pids, f"{os.getpid()}.pid").touch()
        time.sleep(600)

if __name__ == "__main__":
    runs, pids, _ = sys.argv[1:]
    rng = np.random.default_rng(1)
    people = rng.random((9, 2))
    plane = Grid.plane(0, 0, 1, 4)
    compare(people, plane, [1.0], [Nap(pids=pids)], 2, rng, metrics=["l1"], folder=runs, jobs=2)
"""
PATIENCE = 60.0  # seconds, of which a few are needed

in_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="processes are looked for in /proc"
)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_there(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rsplit(")", 1)[1].split()[0] != "Z"


@in_proc
@pytest.mark.parametrize(
    ("script", "start"),
    [(HELD, "fork"), (HELD, "spawn"), (HELD, "forkserver"), (COMPARED, "loky")],
)
def test_processes_end_with_the_one_that_was_killed(
    tmp_path: Path, script: str, start: str
) -> None:
    (tmp_path / "script.py").write_text(script)
    runs, named = tmp_path / "runs", tmp_path / "pids"
    named.mkdir()
    caller = subprocess.Popen(
        [sys.executable, tmp_path / "script.py", runs, named, start],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    with caller:
        until(lambda: len(list(named.iterdir())) == 2)
        pids = [int(each.stem) for each in named.iterdir()]
        assert all(map(is_there, pids))
        caller.send_signal(signal.SIGKILL)
    until(lambda: not any(map(is_there, pids)))
    lock = locked(runs, wait=False)
    assert lock is not None
    os.close(lock)


def test_a_process_that_another_one_started_goes_on() -> None:
    code = "import time; from ldpspatial.comparison import workers; workers.LOOKED = 0; "
    code += "workers.end_with(1); time.sleep(0.1); print('there')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "there"
