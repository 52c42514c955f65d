"""What a second process of a comparison costs."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from experiments.benchmarks.timing import Table

HEADER = ["what", "two processes", "one process", "ratio"]
USERS, CELLS = 10_000, 32
RUNS = {5: 60, 1: 12}  # by repeats; the first are the command's default
PAIRS = 5
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}


def comparison() -> Table:
    """Count the CPU time of the same comparison with one process and with two: medians of pairs.

    Libraries take one thread a process: threads that wait for each other would count as work.
    """
    rng = np.random.default_rng(1)
    people = np.vstack([rng.normal(3, 0.5, (USERS // 2, 2)), rng.normal(5, 1.2, (USERS // 2, 2))])
    with TemporaryDirectory() as folder:
        file = Path(folder) / "people.csv"
        np.savetxt(file, people, "%.6f", ",", header="lat,lon", comments="")
        rows = [_row(file, repeats) for repeats in RUNS]
    return HEADER, rows


def _row(file: Path, repeats: int) -> list[str]:
    pairs = []
    for number in range(PAIRS):
        order = (1, 2) if number % 2 == 0 else (2, 1)  # other work of the machine comes and goes
        cpu = {jobs: _cpu_seconds(file, jobs, repeats) for jobs in order}
        pairs.append((cpu[2], cpu[1], cpu[2] / cpu[1]))
    two, one, ratio = np.median(pairs, axis=0)
    what = f"`compare` with its defaults, {RUNS[repeats]} runs, {CELLS} x {CELLS} cells: CPU time"
    return [what, f"{two:.0f} s", f"{one:.0f} s", f"{ratio:.2f}"]


def _cpu_seconds(file: Path, jobs: int, repeats: int) -> float:
    """Return the CPU seconds of a comparison and of all processes that it started."""
    command = [sys.executable, "-m", "ldpspatial", "compare", file, "--plane", "0,0,8"]
    command += ["--cells", CELLS, "--seed", 1, "--jobs", jobs]
    with TemporaryDirectory() as out:
        command += ["--repeats", repeats, "--out", out]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            list(map(str, command)),
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | ONE_THREAD,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
